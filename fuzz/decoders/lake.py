"""Files of lakes: roots, side files, lists of files, bounds, and the metadata of tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from fuzz.decoders import Target
from louver.trusted.lake import bounds
from louver.untrusted.lake import files, root, side, warehouse
from louver.untrusted.lake.files import File, FileList
from louver.untrusted.lake.root import Ancestor, Blob, Part, Root, Segment

_PATH = f"metadata/louver-{'0' * 32}.puffin"


def _root(data: bytes) -> None:
    decoded = root.decode(data)
    if root.encode(decoded) != data:
        raise AssertionError("a root with two encodings")


def _root_seeds() -> list[bytes]:
    segment = Segment(b"i" * 16, b"s" * 12, Blob(0, 64, 128))
    part = Part(9, Blob(0, 4, 60), b"d" * 32, Blob(0, 300, 9), b"\xff\x00", (segment,))
    whole = Part(3, Blob(0, 400, 60), b"e" * 32, None, b"", ())
    plain = Root(5, 1, 7, 1000, 0, 0, 0, (), (), (), (), b"m" * 32)
    full = Root(
        5, 2, -8, 2000, 11, 99, 4096, (b"i" * 16,), (_PATH,), (part, whole),
        (Ancestor(7, 1000, b"r" * 32),), b"m" * 32, b"note",
    )  # fmt: skip
    return [root.encode(plain), root.encode(full)]


def _list(data: bytes) -> None:
    """A list whose digests fit: what lies behind the checks must hold by itself, too."""
    count = int.from_bytes(data[:2], "little")
    blob = _digested(data[2:], count)

    def fetch(ranges: list[tuple[int, int]]) -> Sequence[bytes]:
        return [blob[start : start + size] for start, size in ranges]

    listed = FileList(fetch, count, len(blob), files.digest(blob, count), "list")
    for file in listed.files(range(min(count, 300))):
        if len(file.file_id) != 16 or len(file.key_metadata) > files.MAX_KEY_BYTES:
            raise AssertionError("a file of impossible figures")


def _digested(blob: bytes, count: int) -> bytes:
    """The list with the digests of its pages put right, which no mutation can do."""
    out, size, start = bytearray(blob), files.head_length(count), 0
    for entry in range(size - 36 * -(-count // files.PAGE_FILES), min(size, len(blob) - 35), 36):
        end = int.from_bytes(blob[entry : entry + 4], "big")
        out[entry + 4 : entry + 36] = hashlib.sha256(blob[size + start : size + end]).digest()
        start = end
    return bytes(out)


def _list_seeds() -> list[bytes]:
    def listed(count: int) -> bytes:
        result = [File(n.to_bytes(16, "big"), n, 2 * n, b"k" * (n % 5)) for n in range(count)]
        return count.to_bytes(2, "little") + files.encode(result)

    return [listed(1), listed(7), listed(130)]


def _bounds(data: bytes) -> None:
    decoded = bounds.decode(data, "bounds")
    if bounds.encode(decoded) != data:
        duplicate = len(decoded.columns) != int.from_bytes(data[5:9], "big")
        if not duplicate:
            raise AssertionError("bounds with two encodings")


def _bounds_seeds() -> list[bytes]:
    import numpy as np

    def extent(count: int) -> bounds.Extent:
        numbers = np.arange(count, dtype=np.uint64)
        return bounds.Extent(np.ones(count, np.uint8), numbers, numbers + np.uint64(5))

    result = [bounds.Bounds(0, {}), bounds.Bounds(3, {1: extent(3), 9: extent(3)})]
    return [bounds.encode(item) for item in result]


def _metadata(data: bytes) -> None:
    """A table's metadata in JSON: PyIceberg reads it, and we say what it stumbled over."""
    from pyiceberg.table.metadata import TableMetadataUtil

    with warehouse.translated("lake:///fuzz"):
        read = TableMetadataUtil.parse_raw(data.decode())
        snapshot = read.snapshot_by_id(read.current_snapshot_id or 0)
        table = SimpleNamespace(
            name=lambda: ("louver", "t1"), current_snapshot=lambda: snapshot,
            snapshot_by_id=read.snapshot_by_id,
        )  # fmt: skip
    path = warehouse.root_path(cast("Any", table))
    if path is not None and not root.is_root_path(path):
        raise AssertionError("a root outside of its table")


def _metadata_seeds() -> list[bytes]:
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import new_table_metadata
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
    from pyiceberg.types import BinaryType, NestedField

    schema = Schema(NestedField(1, "c1", BinaryType(), required=False))
    result = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "file:///w/louver/t1"
    )
    text = result.model_dump_json()
    path = f"metadata/louver-{hashlib.md5(b'', usedforsecurity=False).hexdigest()}.root"
    snapshot = (
        '"snapshots":[{"snapshot-id":5,"sequence-number":1,"timestamp-ms":1,'
        '"manifest-list":"m","summary":{"operation":"append","louver.root":"' + path + '"}}],'
        '"current-snapshot-id":5'
    )
    return [text.encode(), text.replace('"snapshots":[]', snapshot).encode()]


def _side_seeds() -> list[bytes]:
    blobs = [(side.FILES, b"list"), (side.BOUNDS, b"sealed"), (side.INDEX, b"rows")]
    return [side.encode([]), side.encode(blobs)]


TARGETS = [
    Target("root", _root, _root_seeds),
    Target("side_file", side.decode, _side_seeds),
    Target("file_list", _list, _list_seeds),
    Target("bounds", _bounds, _bounds_seeds),
    Target("metadata", _metadata, _metadata_seeds),
]
