"""Which Arrow types give the values that DuckDB gives, and what DuckDB cannot read as it stands."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

#: Of dates and moments DuckDB makes values sooner, and infinity has another one in Arrow.
_SAME = (
    pa.types.is_integer, pa.types.is_string, pa.types.is_floating, pa.types.is_boolean,
    pa.types.is_decimal128, pa.types.is_binary, pa.types.is_null,
)  # fmt: skip

#: What Python and DuckDB print alike.
_PRINTED_ALIKE = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean)
_FEW_VALUES = 1_000
#: From the year 1 to 9999, in days since 1970, and how long one is.
_DAYS = (-719_162, 2_932_897)
_MICROSECONDS = 86_400_000_000


def extended(type_: pa.DataType) -> bool:
    """Whether a type is, or holds, one that DuckDB gives to Arrow as an extension."""
    if isinstance(type_, pa.BaseExtensionType):
        return True
    return any(extended(type_.field(i).type) for i in range(type_.num_fields))


def same(type_: pa.DataType) -> bool:
    """Whether Arrow gives the Python values that DuckDB gives; it then does so sooner."""
    return any(is_one(type_) for is_one in _SAME)


def are_same(rows: pa.Table) -> bool:
    """Whether Arrow gives the Python values of some rows that DuckDB gives, and sooner."""
    few = rows.num_rows * rows.num_columns <= _FEW_VALUES
    known = (same(c.type) or (few and _is_finite(c)) for c in rows.columns)
    return bool(rows.num_columns) and all(known)


def _is_finite(column: pa.ChunkedArray) -> bool:
    """Whether these are dates or moments of Python's years, which infinity is beyond."""
    type_ = column.type
    if pa.types.is_date32(type_):
        low, high = _DAYS
    elif type_ == pa.timestamp("us"):
        low, high = (day * _MICROSECONDS for day in _DAYS)
    else:
        return False
    numbers = (
        chunk.view(pa.int32() if type_.bit_width == 32 else pa.int64()) for chunk in column.chunks
    )
    return all(
        low <= number < high
        for part in numbers
        for number in part.to_pylist()
        if number is not None
    )


def texts(rows: pa.Table) -> list[tuple[str | None, ...]] | None:
    """The values as DuckDB prints them, or None if only DuckDB knows: a few integers, texts and
    truth values need no DuckDB, whose first Arrow table costs as much as a small statement.
    """
    if rows.num_rows * rows.num_columns > _FEW_VALUES or not rows.num_columns:
        return None
    if not all(any(is_one(field.type) for is_one in _PRINTED_ALIKE) for field in rows.schema):
        return None
    columns = [[_text(value) for value in column.to_pylist()] for column in rows.columns]
    return list(zip(*columns, strict=True))


def _text(value: object) -> str | None:
    if value is None:
        return None
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def described(done: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Names and types of an answer in DuckDB's words: Arrow has no ENUM of its own."""
    return [(item[0], str(item[1])) for item in done.description or ()]


def register(connection: duckdb.DuckDBPyConnection, name: str, rows: object) -> None:
    """Let a DuckDB read rows under a name."""
    connection.register(name, readable(rows))


def readable(rows: Any) -> Any:
    """Rows that DuckDB can read. Labels of an ENUM in lists it takes for others, and gives up its
    whole database where lists have no element; so there they become texts.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch):
        for position, field in enumerate(rows.schema):
            if not field.type.num_fields:
                continue
            type_ = _without_labels(field.type, in_list=False)
            if type_ != field.type:
                texts = rows.column(position).cast(type_)
                rows = rows.set_column(position, field.with_type(type_), texts)
    return rows


def _without_labels(type_: pa.DataType, *, in_list: bool) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return type_.value_type if in_list else type_
    if pa.types.is_list(type_):
        element = type_.value_field
        return pa.list_(element.with_type(_without_labels(element.type, in_list=True)))
    if pa.types.is_fixed_size_list(type_):
        element = type_.value_field
        element = element.with_type(_without_labels(element.type, in_list=True))
        return pa.list_(element, type_.list_size)
    if pa.types.is_map(type_):
        key, item = (
            field.with_type(_without_labels(field.type, in_list=True))
            for field in (type_.key_field, type_.item_field)
        )
        return pa.map_(key, item)
    if pa.types.is_struct(type_):
        fields = (field.with_type(_without_labels(field.type, in_list=in_list)) for field in type_)
        return pa.struct(list(fields))
    return type_
