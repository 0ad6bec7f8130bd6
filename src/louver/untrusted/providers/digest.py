"""The version of a data set: a digest of its schema and of all its content, in order.

It is the same on every machine that loads the same files, whatever the number of threads and the
sizes of batches: columns are split into pieces of a fixed number of rows, each piece is normalized
(values below a NULL do not count) and hashed separately, and the version is the hash of all hashes.
See spec/splinter-wire.md.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.untrusted.providers.loading import POSITION, Told
from louver.wire.questions import TableFacts

#: Rows of a piece. Part of the format: another number gives other versions.
PIECE_ROWS = 1 << 17
_DOMAIN = b"louver data set 1"
#: Types whose Arrow representation is a fixed number of bytes, or their text or bytes.
_PLAIN = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS",
    "VARCHAR", "BLOB",
}  # fmt: skip


def digest(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[str], progress: Told | None,
    check: Callable[[], None],
) -> tuple[tuple[TableFacts, ...], bytes]:  # fmt: skip
    """The facts of tables, and the version of all of them (32 bytes).

    Args:
        connection: a database whose tables have the column `louver_position`.
        tables: their names, sorted.
        progress: receives the share of the work done.
        check: called between pieces; what it raises ends the work.
    """
    rows = [_count(connection, name) for name in tables]
    total, done = max(sum(rows), 1), 0
    facts: list[TableFacts] = []
    whole = hashlib.sha256(_DOMAIN + struct.pack(">I", len(tables)))
    with ThreadPoolExecutor(os.cpu_count() or 1, "digest") as pool:
        for name, count in zip(tables, rows, strict=True):
            described = connection.execute(f"DESCRIBE {quoted(name)}").fetchall()
            columns = tuple((row[0], row[1]) for row in described if row[0] != POSITION)
            facts.append(TableFacts(name, columns, count))
            for text in (name, *(part for column in columns for part in column)):
                whole.update(struct.pack(">I", len(text.encode())) + text.encode())
            whole.update(struct.pack(">QI", count, len(columns)))
            for hashes in _pieces(connection, facts[-1], pool, check):
                whole.update(b"".join(hashes))
                done += PIECE_ROWS
                if progress is not None:
                    progress(f"hashing {name}", min(1.0, done / total))
    return tuple(facts), whole.digest()


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    (counts,) = connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchall()
    return int(counts[0])


def _pieces(
    connection: duckdb.DuckDBPyConnection, table: TableFacts, pool: ThreadPoolExecutor,
    check: Callable[[], None],
) -> Iterator[list[bytes]]:  # fmt: skip
    """The hashes of every column, piece by piece; two pieces are in progress at a time."""
    chosen = ", ".join(_chosen(name, kind) for name, kind in table.columns)
    query = f"SELECT {POSITION}, {chosen} FROM {quoted(table.name)}"
    reader = connection.execute(query).to_arrow_reader(PIECE_ROWS)
    waiting: list[list[Future[bytes]]] = []
    for number, piece in enumerate(_aligned(reader)):
        check()
        _require_order(piece, number * PIECE_ROWS)
        arrays = [piece.column(number) for number in range(1, piece.num_columns)]
        waiting.append([pool.submit(_hash, array) for array in arrays])
        if len(waiting) > 1:
            yield [future.result() for future in waiting.pop(0)]
    for futures in waiting:
        yield [future.result() for future in futures]


def _chosen(name: str, kind: str) -> str:
    """How a column is read: directly or, if Arrow has several representations of it, as text."""
    if kind in _PLAIN or kind.startswith("DECIMAL("):
        return quoted(name)
    if kind == "BOOLEAN":
        return f"{quoted(name)}::UTINYINT"
    return f"{quoted(name)}::VARCHAR"


def _aligned(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Pieces of exactly `PIECE_ROWS` rows, except for the last."""
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        while rows >= PIECE_ROWS:
            table = pa.Table.from_batches(batches)
            yield table.slice(0, PIECE_ROWS)
            batches = table.slice(PIECE_ROWS).to_batches()
            rows -= PIECE_ROWS
    if rows:
        yield pa.Table.from_batches(batches)


def _require_order(piece: pa.Table, first: int) -> None:
    numbers = _values(_joined(piece.column(0)), np.dtype(np.int64))
    if not np.array_equal(numbers, np.arange(first, first + len(numbers))):
        raise errors.make("internal", detail="rows out of their order")


def _hash(column: pa.ChunkedArray) -> bytes:
    """SHA-256 of one normalized piece of one column."""
    hasher = hashlib.sha256()
    absent = column.null_count
    hasher.update(struct.pack(">QQ", len(column), absent))
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if absent:
        # Arrow's functions are imported on demand, so that a provider starts faster.
        flags = _values(_joined(column.is_null().cast(pa.uint8())), np.dtype(np.uint8))
        hasher.update(np.packbits(flags).tobytes())
        column = column.fill_null(_filling(kind))
    array = _joined(column)
    if is_text:
        _, places, content = array.buffers()
        offsets = np.frombuffer(places, np.int32)[array.offset : array.offset + len(array) + 1]
        hasher.update(np.diff(offsets).tobytes())
        if content is not None:
            hasher.update(memoryview(content)[int(offsets[0]) : int(offsets[-1])])
        return hasher.digest()
    width = kind.bit_width // 8
    hasher.update(_values(array, np.dtype((np.void, width))).tobytes())
    return hasher.digest()


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """One array without gaps."""
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _values(array: pa.Array, kind: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """Fixed-width values as they are in memory. (Arrow's own method imports pandas.)"""
    values = np.frombuffer(array.buffers()[1], kind)
    return values[array.offset : array.offset + len(array)]


def _filling(kind: pa.DataType) -> pa.Scalar:
    """The replacement for NULLs: an empty text, or zero."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar(b"", pa.binary()).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    if pa.types.is_temporal(kind):
        return pa.scalar(0, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.scalar(0, kind)
