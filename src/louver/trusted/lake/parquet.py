"""Data files: encrypted Parquet; each has its own data key, bound to its table and file id.

Spec: spec/lake-files.md. Columns are named c<column id>. A reader fetches only the footer and the
column chunks that it needs. Any alteration by the store raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa

from louver import errors
from louver.trusted.vault import native

#: Fetches (offset, length) ranges of one file, in order.
Fetch = Callable[[Sequence[tuple[int, int]]], Sequence[bytes]]


def write_parquet(
    keys: Any, file_id: bytes, table: pa.Table, level: int = 1
) -> tuple[bytes, bytes, int]:
    """Return the bytes of a file, its key metadata, and its number of rows.

    `keys` are the table's (`KeyRing.lake_table`), `file_id` 16 bytes unique to the file; the
    table's columns are named c<column id>. `level` is zstd's. ValueError for another name, for a
    type that Parquet cannot store, and for rows without columns.
    """
    if table.num_rows and not table.num_columns:
        raise ValueError("rows to be written have columns")
    result = native.module().parquet.write_parquet(_handle(keys), file_id, table, level)
    return cast(tuple[bytes, bytes, int], result)


def read_parquet(
    keys: Any,
    file_id: bytes,
    key_metadata: bytes,
    size: int,
    fetch: Fetch,
    names: Sequence[str],
) -> pa.Table:
    """The columns with these names (c<column id>), in this order; columns missing in the file are
        left out.

    Makes two fetches, the footer and the column chunks; three if the footer is large.
    VerificationError (lake.tampered) unless the file is complete and was written by `write_parquet`
    with these keys, this file id and this key metadata.
    """
    columns = [int(name.removeprefix("c")) for name in names]
    module = native.module()
    with _verified(file_id):
        file = module.parquet.ParquetFile(_handle(keys), file_id, key_metadata, size)
        length = file.tail_length()
        # The tail contains the footer's length, so a second fetch suffices for any footer.
        for _ in range(2):
            (tail,) = _fetched(fetch, [(size - length, length)])
            length = file.open(tail)
            if not length:
                break
        ranges = file.ranges(columns)
        parts = _fetched(fetch, ranges) if ranges else []
        starts = [start for start, _ in ranges]
        table = file.read(columns, list(zip(starts, parts, strict=True))).read_all()
        if table.num_columns:
            return cast(pa.Table, table)
        return pa.table({"": pa.nulls(sum(file.row_groups))}).select([])


def read_type(type_: pa.DataType, inner: bool = False) -> pa.DataType:
    """The type that `read_parquet` returns for a column written with this type.

    Dictionaries nested in other types are returned as their values: DuckDB 1.5 overruns its memory
    when it reads nested dictionaries, even its own.
    """
    if pa.types.is_dictionary(type_):
        return type_.value_type if inner else type_
    if isinstance(type_, pa.BaseExtensionType) or not type_.num_fields:
        return type_
    of_map = pa.types.is_map(type_)
    fields = [type_.field(i) for i in range(type_.num_fields)]
    if of_map:
        fields = [type_.key_field, type_.item_field]
    fields = [field.with_type(read_type(field.type, True)) for field in fields]
    if of_map:
        return pa.map_(*fields, keys_sorted=type_.keys_sorted)
    if pa.types.is_union(type_):
        return pa.union(fields, type_.mode, type_.type_codes)
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(fields[0], type_.list_size)
    if pa.types.is_large_list(type_):
        return pa.large_list(fields[0])
    return pa.list_(fields[0]) if pa.types.is_list(type_) else pa.struct(fields)


def _fetched(fetch: Fetch, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
    parts = fetch(ranges)
    if [len(part) for part in parts] != [length for _, length in ranges]:
        raise native.module().VerifyError("the store gave fewer bytes than were asked for")
    return parts


def _handle(keys: Any) -> Any:
    """The compiled module's handle for the keys."""
    return getattr(keys, "native", keys)


@contextmanager
def _verified(file_id: bytes) -> Iterator[None]:
    """Translate a verification failure of the compiled module to Louver's error."""
    try:
        yield
    except native.module().VerifyError as error:
        path = f"data/{file_id.hex()}.parquet"
        raise errors.make("lake.tampered", path=path, detail=str(error)) from None
