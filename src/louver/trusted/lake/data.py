"""Data files: write rows as encrypted Parquet and read them back; files are never overwritten."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from louver import errors
from louver.trusted.lake import bounds, parquet
from louver.trusted.lake.bounds import Bound
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.index_keys import LakeKeys, map_bounds, mappable
from louver.untrusted.lake.files import File
from louver.untrusted.lake.objects import Objects
from louver.wire.prune import FileEntry

#: Files written in parallel, and files fetched and decrypted in parallel.
THREADS = 4
READERS = 8
ROW_ID = "row_id"
#: Files up to this size are fetched in one request.
WHOLE_BYTES = 128 << 10
#: A row id is the number of its file shifted by this many bits, plus the row's position in it.
POSITION_BITS = 32

#: The Arrow type of a DuckDB type.
ArrowType = Callable[[str], pa.DataType]
Written = tuple[File, dict[int, Bound]]


def write(
    objects: Objects,
    table: Table,
    keys: LakeKeys,
    batches: Iterator[pa.Table],
    rows_per_file: int,
) -> Iterator[Written]:
    """Write rows (declared columns) as files of `rows_per_file` rows; the last has the remainder.

    Only a few files' rows are in memory at a time.
    """
    pending: deque[Future[Written]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for rows in sized(batches, rows_per_file):
                pending.append(pool.submit(write_one, objects, table, keys, rows, new_id()))
                if len(pending) >= THREADS:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            # The consumer stopped, so nothing will refer to these files.
            for job in pending:
                if not job.cancel() and job.exception() is None:
                    objects.delete(f"louver/t{table.id}/{job.result()[0].path}")


def new_id() -> bytes:
    """The id of a new file. Files written in parallel get their ids beforehand, in the order of
    their rows, so that thread scheduling decides only when a file arrives.
    """
    return secrets.token_bytes(16)


def write_one(
    objects: Objects, table: Table, keys: LakeKeys, rows: pa.Table, file_id: bytes
) -> Written:
    """Write one file."""
    columns = [c for c in table.columns if c.name in rows.column_names]
    named = rows.select([c.name for c in columns]).rename_columns([f"c{c.id}" for c in columns])
    bounds_of = {c.id: _bound(rows.column(c.name), c) for c in columns}
    try:
        data, wrapped, count = parquet.write_parquet(keys, file_id, named)
    except ValueError as error:
        raise errors.make("lake.type", table=table.label, detail=str(error)) from error
    file = File(file_id, len(data), count, wrapped)
    objects.create(f"louver/t{table.id}/{file.path}", data)
    return file, bounds_of


def read(
    objects: Objects,
    table: Table,
    keys: LakeKeys,
    files: Sequence[FileEntry],
    columns: Sequence[Column],
    arrow: ArrowType,
    row_ids: bool,
) -> Iterator[pa.Table]:
    """The rows of each file, in order; the next few files are prefetched."""
    schema = pa.schema([pa.field(c.name, arrow(c.type)) for c in columns])
    pending: deque[Future[pa.Table]] = deque()

    def fetch(entry: FileEntry) -> pa.Table:
        rows = _opened(objects, table, keys, entry, columns, schema)
        return _numbered(rows, entry) if row_ids else rows

    with ThreadPoolExecutor(READERS) as pool:
        try:
            for entry in files:
                pending.append(pool.submit(fetch, entry))
                if len(pending) >= READERS:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def sized(batches: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows; the last may be shorter, and none is empty."""
    held: list[pa.Table] = []
    count = 0
    for batch in batches:
        at = 0
        while batch.num_rows - at:
            taken = batch.slice(at, rows - count)
            held.append(taken)
            count, at = count + taken.num_rows, at + taken.num_rows
            if count == rows:
                yield pa.concat_tables(held)
                held, count = [], 0
    if count:
        yield pa.concat_tables(held)


def _bound(values: pa.ChunkedArray, column: Column) -> Bound:
    if not mappable(column.type):
        return Bound(bounds.UNKNOWN)
    try:
        low, high, nulls = map_bounds(values, column.type)
    except ValueError:
        # Values in a representation other than their type's: the file is never skipped.
        return Bound(bounds.UNKNOWN)
    flags = bounds.NULLS if nulls else 0
    if low is None or high is None:
        return Bound(flags)
    return Bound(flags | bounds.VALUES, low, high)


def _opened(
    objects: Objects,
    table: Table,
    keys: LakeKeys,
    entry: FileEntry,
    columns: Sequence[Column],
    schema: pa.Schema,
) -> pa.Table:
    """One file's columns with their names and types; missing columns are NULL."""
    path = f"louver/t{table.id}/data/{entry.file_id.hex()}.parquet"
    if entry.path != path:
        raise errors.make("lake.tampered", path=path, detail="its path differs")
    rows = parquet.read_parquet(
        keys,
        entry.file_id,
        entry.key_metadata,
        entry.size,
        _fetcher(objects, path, entry.size),
        [f"c{c.id}" for c in columns],
    )
    if rows.num_rows != entry.rows:
        raise errors.make("lake.tampered", path=path, detail="its number of rows differs")
    arrays = []
    for column, item in zip(columns, schema, strict=True):
        name = f"c{column.id}"
        if name not in rows.column_names:
            arrays.append(pa.nulls(entry.rows, item.type))
        else:
            values = rows.column(name)
            arrays.append(values if values.type == item.type else values.cast(item.type))
    if not arrays:
        return pa.table({"": pa.nulls(entry.rows)}).select([])
    return pa.Table.from_arrays(arrays, schema=schema)


def _fetcher(objects: Objects, path: str, size: int) -> parquet.Fetch:
    """Read ranges of a file; a small file is read once and whole, since a request costs more."""
    held: list[bytes] = []

    def fetch(ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        if size > WHOLE_BYTES:
            return objects.read_many([(path, *each) for each in ranges])
        if not held:
            held.append(objects.read(path, 0, size))
        return [held[0][start : start + length] for start, length in ranges]

    return fetch


def _numbered(rows: pa.Table, entry: FileEntry) -> pa.Table:
    first = entry.number << POSITION_BITS
    ids = np.arange(first, first + entry.rows, dtype=np.int64)
    return rows.append_column(ROW_ID, pa.array(ids))
