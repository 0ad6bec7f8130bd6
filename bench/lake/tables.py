"""Plaintext Iceberg tables of very many files, written fast, for DuckDB-Iceberg to plan over.

Schema, header, manifest list and metadata come from PyIceberg. The entries of a manifest are one
entry that PyIceberg encoded, repeated, with its varying bytes (path, sizes, bounds) written over
in place: 1,000,000 files take seconds. Data files need not exist for planning.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, LongType, NestedField

BATCH = 1_000
"""Files per manifest: the thesis' size."""
#: What stands for the varying bytes in the entry that is repeated.
_NAME = "0123456789abcdef" * 2
_ROWS, _SIZE = 1_012_345, 7_654_321
_SNAPSHOT = 4_242_424_242

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Column:
    """A column and the bounds that each file's entry bears: files x width bytes, or none."""

    name: str
    type: IcebergType
    lows: Bytes | None = None
    highs: Bytes | None = None


def long_column(name: str, lows: Ints, highs: Ints) -> Column:
    """A BIGINT column: eight bytes, the lowest first."""
    return Column(name, LongType(), little(lows, 8), little(highs, 8))


def little(values: Ints, width: int) -> Bytes:
    """Whole numbers as Iceberg keeps a bound of int, date (4) or long (8)."""
    return values.astype(f"<i{width}").view(np.uint8).reshape(len(values), width)


def big(values: Ints) -> Bytes:
    """Unscaled decimals; always eight bytes, so that every entry has the same length."""
    return values.astype(">i8").view(np.uint8).reshape(len(values), 8)


@dataclass(slots=True)
class PlainTable:
    """A table on disk: its folder, its metadata file, the paths of its data files."""

    folder: Path
    metadata: Path
    names: NDArray[Any]
    manifest_bytes: int

    def path(self, number: int) -> Path:
        """Where a data file belongs."""
        return self.folder / "data" / f"{self.names[number].decode()}.parquet"


def write(
    folder: Path,
    columns: list[Column],
    *,
    batch: int = BATCH,
    codec: str = "gzip",
    full: bool = False,
    sizes: tuple[Ints, Ints] | None = None,
) -> PlainTable:
    """A table of as many files as the columns have bounds, in manifests of `batch` entries.

    `codec`: gzip (Iceberg's default) or null. `full`: counts and sizes of the columns beside the
    bounds, as PyIceberg writes them; otherwise only what pruning needs. `sizes`: rows and bytes of
    every file where it exists; made up otherwise.
    """
    (folder / "metadata").mkdir(parents=True)
    (folder / "data").mkdir()
    files = max(len(column.lows) for column in columns if column.lows is not None)
    names = _names(files)
    rows, lengths = sizes or _made_up(files)
    template = _Template(folder, columns, codec, full)
    manifests = []
    for start in range(0, files, batch):
        part = slice(start, min(start + batch, files))
        path = folder / "metadata" / f"manifest-{start:08d}.avro"
        path.write_bytes(template.manifest(names, rows, lengths, part))
        manifests.append(template.listed(path, rows[part]))
    metadata = _metadata(folder, columns, manifests, codec)
    size = sum(manifest.manifest_length for manifest in manifests)
    return PlainTable(folder, metadata, names, size)


class _Template:
    """One entry in Avro, and where its varying bytes lie."""

    def __init__(self, folder: Path, columns: list[Column], codec: str, full: bool) -> None:
        self._io = PyArrowFileIO()
        self._codec, self._columns = codec, columns
        plain = self._written(folder, "null", full)
        whole = self._written(folder, codec, full)
        sync, self._sync = plain[-16:], whole[-16:]
        self._header = whole[: whole.index(self._sync) + 16]
        count, rest = _unvarint(plain[plain.index(sync) + 16 : -16])
        size, entry = _unvarint(rest)
        entry = entry[:size]
        assert count == 1
        self._entry = np.frombuffer(entry, np.uint8)
        self._name = entry.index(_NAME.encode())
        self._rows = entry.index(_varint(_ROWS))
        self._size = entry.index(_varint(_SIZE))
        self._bounds: list[tuple[int, Bytes]] = []
        for position, column in enumerate(columns):
            for mark, values in zip(
                _marks(position, column), (column.lows, column.highs), strict=True
            ):
                if values is not None:
                    self._bounds.append((entry.index(mark), values))

    def manifest(self, names: NDArray[Any], rows: Ints, sizes: Ints, part: slice) -> bytes:
        """A manifest file of these data files."""
        n = part.stop - part.start
        out = np.tile(self._entry, (n, 1))
        name = np.frombuffer(names[part].tobytes(), np.uint8).reshape(n, 32)
        patches = [
            (self._name, name),
            (self._rows, _varints(rows[part], 3)),
            (self._size, _varints(sizes[part], 4)),
        ]
        patches += [(position, values[part]) for position, values in self._bounds]
        for position, values in patches:
            out[:, position : position + values.shape[1]] = values
        data = out.tobytes()
        if self._codec == "gzip":
            packer = zlib.compressobj(6, wbits=-15)
            data = packer.compress(data) + packer.flush()
        return b"".join([self._header, _varint(n), _varint(len(data)), data, self._sync])

    def listed(self, path: Path, rows: Ints) -> ManifestFile:
        """The manifest as the manifest list tells of it."""
        return ManifestFile.from_args(
            manifest_path=str(path),
            manifest_length=path.stat().st_size,
            partition_spec_id=0,
            content=self._listed.content,
            sequence_number=1,
            min_sequence_number=1,
            added_snapshot_id=_SNAPSHOT,
            added_files_count=len(rows),
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=int(rows.sum()),
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=[],
            key_metadata=None,
        )

    def _written(self, folder: Path, codec: Any, full: bool) -> bytes:
        path = folder / "metadata" / "template.avro"
        file = self._io.new_output(str(path))
        schema, spec = _schema(self._columns), UNPARTITIONED_PARTITION_SPEC
        with write_manifest(2, spec, schema, file, _SNAPSHOT, codec) as writer:
            writer.add_entry(_entry(folder, self._columns, full))
        self._listed = writer.to_manifest_file()
        data = path.read_bytes()
        path.unlink()
        return data


def _marks(position: int, column: Column) -> tuple[bytes, bytes]:
    """Bytes that occur once in the entry that is repeated."""
    width = 0 if column.lows is None else column.lows.shape[1]
    return bytes([0xC0 + position] * width), bytes([0xE0 + position] * width)


def _entry(folder: Path, columns: list[Column], full: bool) -> ManifestEntry:
    ids = range(1, len(columns) + 1)
    marks = {
        position: _marks(position - 1, column)
        for position, column in enumerate(columns, 1)
        if column.lows is not None
    }
    counts: dict[str, Any] = {
        "column_sizes": dict.fromkeys(ids, 4_000),
        "value_counts": dict.fromkeys(ids, 1_000),
        "null_value_counts": dict.fromkeys(ids, 0),
        "nan_value_counts": {},
        "split_offsets": [4],
    }
    data = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{folder}/data/{_NAME}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=_ROWS,
        file_size_in_bytes=_SIZE,
        lower_bounds={position: low for position, (low, _) in marks.items()},
        upper_bounds={position: high for position, (_, high) in marks.items()},
        **(counts if full else {}),
    )
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=_SNAPSHOT,
        sequence_number=None,
        file_sequence_number=None,
        data_file=data,
    )


def _schema(columns: list[Column]) -> Schema:
    return Schema(
        *(NestedField(i, column.name, column.type) for i, column in enumerate(columns, 1))
    )


def _metadata(
    folder: Path, columns: list[Column], manifests: list[ManifestFile], codec: Any
) -> Path:
    listing = folder / "metadata" / "snap-1.avro"
    output = PyArrowFileIO().new_output(str(listing))
    with write_manifest_list(2, output, _SNAPSHOT, None, 1, codec) as writer:
        writer.add_manifests(manifests)
    empty = new_table_metadata(
        _schema(columns), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), {}
    )
    snapshot = Snapshot(
        snapshot_id=_SNAPSHOT,
        sequence_number=1,
        timestamp_ms=1_700_000_000_000,
        manifest_list=str(listing),
        summary=Summary(Operation.APPEND),
        schema_id=0,
    )
    content = json.loads(empty.model_dump_json())
    content["snapshots"] = [json.loads(snapshot.model_dump_json())]
    content["current-snapshot-id"] = _SNAPSHOT
    content["last-sequence-number"] = 1
    path = folder / "metadata" / "v1.metadata.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _made_up(files: int) -> tuple[Ints, Ints]:
    rng = np.random.default_rng(files)
    return rng.integers(1 << 13, 1 << 20, files), rng.integers(1 << 20, 1 << 27, files)


def _names(files: int) -> NDArray[Any]:
    """32 hexadecimal digits per file."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    picked = digits[np.random.default_rng(files + 1).integers(0, 16, (files, 32), dtype=np.uint8)]
    return picked.view("S32").reshape(files)


def _varint(value: int) -> bytes:
    """Avro's long, of a number that is not negative: doubled, seven bits at a time."""
    value <<= 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _unvarint(data: bytes) -> tuple[int, bytes]:
    """Such a number, and what follows it."""
    value = shift = position = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value >> 1, data[position:]


def _varints(values: Ints, width: int) -> Bytes:
    """The same for many values; shorter ones are filled up with continued zeros."""
    doubled = values << 1
    parts = [(doubled >> (7 * position)) & 0x7F for position in range(width)]
    out = np.stack(parts, axis=1).astype(np.uint8)
    out[:, :-1] |= 0x80
    return out
