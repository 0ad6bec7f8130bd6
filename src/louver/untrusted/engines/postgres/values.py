"""Arrow columns as PostgreSQL takes them, and its answers as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.untrusted.engines.postgres.type_numbers import number_of, numbers
from louver.wire.fixed_width import bytes_of, numbers_of

#: The number and the name of the type of a column with this Arrow type.
_TYPES: tuple[tuple[Any, int, str], ...] = (
    (pa.types.is_boolean, 16, "boolean"),
    (pa.types.is_int8, 21, "smallint"),
    (pa.types.is_uint8, 21, "smallint"),
    (pa.types.is_int16, 21, "smallint"),
    (pa.types.is_uint16, 23, "integer"),
    (pa.types.is_int32, 23, "integer"),
    (pa.types.is_uint32, 20, "bigint"),
    (pa.types.is_int64, 20, "bigint"),
    (pa.types.is_float32, 700, "real"),
    (pa.types.is_float64, 701, "double precision"),
    (pa.types.is_date32, 1082, "date"),
    (pa.types.is_decimal128, 1700, "numeric"),
    (pa.types.is_string, 25, "text"),
    (pa.types.is_large_string, 25, "text"),
    (pa.types.is_string_view, 25, "text"),
    (pa.types.is_binary, 17, "bytea"),
    (pa.types.is_large_binary, 17, "bytea"),
    (pa.types.is_fixed_size_binary, 17, "bytea"),
)
_UUID = (2950, "uuid")
_TIMESTAMP, _ZONED = (1114, "timestamp"), (1184, "timestamptz")
_TIME = (1083, "time")
_NUMERIC = 1700
_MODIFIER_OFFSET = 4
_MOST_PRECISION = 38
#: Types of which a column can be bound as an array: not arrays, which have no arrays, nor types
#: that the wire client knows no array of. Rows with any other column go by COPY.
BOUND = frozenset(
    (16, 17, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802)
)
#: By the numbers of the arrays of these, the numbers of the elements.
ARRAYS = {array: number for number, array in numbers() if number in BOUND}


def sent(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, int, str]:
    """A column in one piece, and the number and name of the type that it is sent as."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ExtensionArray):
        if isinstance(array.type, pa.UuidType):
            return array.storage, *_UUID
        if isinstance(array.type, pa.OpaqueType):
            name = array.type.type_name
            number = number_of(name)
            return (array.storage, number, name) if number else sent(array.storage)
        bits = isinstance(array.type, pa.Bool8Type)
        array = array.storage.cast(pa.bool_()) if bits else array.storage
    type_ = array.type
    if pa.types.is_uint64(type_):
        # The same 64 bits: the sum sees by the sign what is above 2^63.
        return array.view(pa.int64()), 20, "bigint"
    if pa.types.is_timestamp(type_):
        return array.cast(pa.timestamp("us", type_.tz)), *(_ZONED if type_.tz else _TIMESTAMP)
    if pa.types.is_time64(type_):
        return bytes_of(array.cast(pa.time64("us")).view(pa.int64()), ">i8"), *_TIME
    for is_one, number, name in _TYPES:
        if is_one(type_):
            return array, number, name
    raise errors.make("engine.type", engine="postgresql", type=str(type_))


def is_bound(schema: pa.Schema) -> bool:
    """Whether each column of such rows can be bound as one array."""
    return all(sent(pa.array([], field.type))[1] in BOUND for field in schema)


def with_inputs(
    sql: str, constants: Sequence[Any], tables: Mapping[str, pa.Table]
) -> tuple[str, list[Any]]:
    """A statement before which its Arrow inputs stand as queries of bound arrays."""
    values = list(map(_signed, constants))
    queries = [
        f"{name} ({_names(rows)}) AS (SELECT * FROM {_unnested(rows, values)})"
        for name, rows in tables.items()
    ]
    return (f"WITH {', '.join(queries)} {sql}" if queries else sql), values


def _signed(value: Any) -> Any:
    """A number of 64 bits as the one that is stored, see `sent`."""
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value


def insertion(table: str, rows: pa.Table) -> tuple[str, list[Any]]:
    """INSERT of Arrow rows, whose text does not depend on how many there are."""
    values: list[Any] = []
    rows_of = _unnested(rows, values)
    return f"INSERT INTO {table} ({_names(rows)}) SELECT * FROM {rows_of}", values


def _names(rows: pa.Table) -> str:
    return ", ".join(map(quoted, rows.column_names))


def _unnested(rows: pa.Table, values: list[Any]) -> str:
    """Rows as arrays that are bound behind the ``values`` so far."""
    arrays = []
    for column in rows.columns:
        array, number, type_ = sent(column)
        values.append((array, number))
        arrays.append(f"${len(values)}::{type_}[]")
    return f"unnest({', '.join(arrays)})"


def answer(
    columns: Sequence[tuple[str, int, int, int, int]], arrays: Sequence[pa.Array]
) -> pa.Table:
    """An answer as a table; numbers with a declared scale as such."""
    read = [
        _read(array, type_, modifier)
        for (_, type_, modifier, _, _), array in zip(columns, arrays, strict=True)
    ]
    return pa.Table.from_arrays(read, [column[0] for column in columns])


def _read(array: pa.Array, type_: int, modifier: int) -> pa.Array:
    if type_ == _NUMERIC:
        return _number(array, modifier)
    if type_ == _TIME[0]:
        return numbers_of(array, 8, ">i8").view(pa.time64("us"))
    return array


def _number(text: pa.Array, modifier: int) -> pa.Array:
    precision, scale = divmod(modifier - _MODIFIER_OFFSET, 1 << 16)
    # Scales below zero, and beyond the digits, look like large ones.
    if modifier < _MODIFIER_OFFSET or precision > _MOST_PRECISION or scale > precision:
        return text
    try:
        return text.cast(pa.decimal128(precision, scale))
    except (pa.ArrowInvalid, ValueError) as error:
        raise errors.make("reply.format", detail="a number beyond its type") from error
