"""Values of PostgreSQL as Arrow, and back: without loss, whatever the type.

| PostgreSQL | Arrow |
|---|---|
| boolean, smallint, integer, bigint, oid, real, double precision | the same width |
| numeric(p, s) with p up to 38 | decimal128(p, s); NaN there is refused |
| any other numeric | opaque: its text |
| text, varchar, char, name | string |
| bytea | binary |
| uuid | arrow.uuid |
| date, time, timestamp, timestamptz | date32, time64[us], timestamp[us], timestamp[us, UTC] |
| everything else, with interval and timetz | opaque: its binary form |

`arrow.opaque` is Arrow's own extension type for what it has no type of: it names PostgreSQL's type.
The infinities of dates and timestamps are the limits of Arrow's integers, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from louver import errors
from louver.wire.fixed_width import bytes_of, numbers_of

Column = tuple[str, int, int, int, int]
"""A column of an answer: name, number of its type, modifier, table, place in the table."""
VENDOR = "PostgreSQL"
NUMERIC, TEXT, TIME, OID = 1700, 25, 1083, 26
TEXTS = frozenset({19, 25, 1042, 1043})
#: Types that the wire client gives as Arrow's own, by their numbers.
_ARROW: dict[int, pa.DataType] = {
    16: pa.bool_(), 17: pa.binary(), 19: pa.string(), 20: pa.int64(), 21: pa.int16(),
    23: pa.int32(), 25: pa.string(), OID: pa.uint32(), 700: pa.float32(), 701: pa.float64(),
    1042: pa.string(), 1043: pa.string(), 1082: pa.date32(), TIME: pa.time64("us"),
    1114: pa.timestamp("us"), 1184: pa.timestamp("us", "UTC"), 2950: pa.uuid(),
}  # fmt: skip
#: Names of types for what Arrow has a type of.
_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"), (pa.types.is_int8, "smallint"),
    (pa.types.is_uint8, "smallint"), (pa.types.is_int16, "smallint"),
    (pa.types.is_uint16, "integer"), (pa.types.is_int32, "integer"),
    (pa.types.is_uint32, "bigint"), (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "real"), (pa.types.is_float64, "double precision"),
    (pa.types.is_date32, "date"), (pa.types.is_time64, "time"),
    (pa.types.is_binary, "bytea"), (pa.types.is_large_binary, "bytea"),
    (pa.types.is_string, "text"), (pa.types.is_large_string, "text"),
    (pa.types.is_null, "text"),
)  # fmt: skip
_MOST_PRECISION = 38
_HEAD = 4  # of a modifier


def is_opaque(type_: pa.DataType) -> bool:
    """Whether a type is of PostgreSQL alone."""
    return isinstance(type_, pa.OpaqueType)


def numeric_of(modifier: int) -> tuple[int, int] | None:
    """Precision and scale of a numeric, if Arrow has decimals like that."""
    if modifier < _HEAD:
        return None
    precision, scale = (modifier - _HEAD) >> 16 & 0xFFFF, (modifier - _HEAD) & 0x7FF
    scale = (scale ^ 1024) - 1024
    return (precision, scale) if precision <= _MOST_PRECISION and 0 <= scale <= precision else None


def arrow_type(type_: int, modifier: int, name: str) -> pa.DataType:
    """The Arrow type of a type by its number, modifier and name."""
    if type_ in _ARROW:
        return _ARROW[type_]
    if type_ == NUMERIC:
        known = numeric_of(modifier)
        return pa.decimal128(*known) if known else pa.opaque(pa.string(), "numeric", VENDOR)
    return pa.opaque(pa.binary(), name, VENDOR)


def answer(columns: Sequence[Column], arrays: Sequence[pa.Array], names: Sequence[str]) -> pa.Table:
    """What a statement answered, given the names of its columns' types."""
    read = [
        _read(array, arrow_type(column[1], column[2], name))
        for column, array, name in zip(columns, arrays, names, strict=True)
    ]
    return pa.Table.from_arrays(read, [column[0] for column in columns])


def _read(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if array.type == type_:
        return array
    if pa.types.is_decimal(type_):
        try:
            return array.cast(type_)
        except pa.ArrowInvalid:
            # NaN, which a decimal of Arrow's is not.
            raise errors.make("postgres.nan") from None
    if pa.types.is_time64(type_):
        return numbers_of(array, 8, ">i8").view(type_)
    if isinstance(type_, pa.OpaqueType):
        return pa.ExtensionArray.from_storage(type_, array)
    return array.cast(type_)


def sent(column: pa.Array | pa.ChunkedArray, type_: int) -> pa.Array:
    """A column as the wire client takes it for a type of this number."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ExtensionArray):
        array = array.cast(pa.bool_()) if isinstance(array.type, pa.Bool8Type) else array.storage
    kind = array.type
    if pa.types.is_null(kind):
        return array.cast(pa.string() if type_ in TEXTS else _nulls(type_))
    if pa.types.is_dictionary(kind):
        return sent(array.dictionary_decode(), type_)
    if type_ == TIME and pa.types.is_time(kind):
        return bytes_of(array.cast(pa.time64("us")).view(pa.int64()), ">i8")
    if type_ == OID and pa.types.is_integer(kind):
        return bytes_of(array.cast(pa.uint32()), ">u4")
    if type_ == NUMERIC and not pa.types.is_decimal128(kind):
        # Of floats the text is another number, so they are none.
        if pa.types.is_floating(kind) or pa.types.is_binary(kind):
            raise errors.make("postgres.value", detail=f"{kind} cannot be sent as numeric")
        return array.cast(pa.string())
    if type_ in (1114, 1184) and pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz))
    if type_ == 700 and pa.types.is_float64(kind):
        return array.cast(pa.float32())
    if type_ == 701 and pa.types.is_float32(kind):
        return array.cast(pa.float64())
    return array


def _nulls(type_: int) -> pa.DataType:
    known = _ARROW.get(type_, pa.binary())
    if isinstance(known, pa.UuidType):
        return pa.binary(16)
    return pa.binary() if type_ in (TIME, OID) else pa.string() if type_ == NUMERIC else known


def declared(type_: pa.DataType) -> str:
    """The name of PostgreSQL's type for an Arrow type, for a table that rows are put into."""
    if isinstance(type_, pa.OpaqueType):
        return str(type_.type_name)
    if isinstance(type_, pa.UuidType):
        return "uuid"
    if isinstance(type_, pa.Bool8Type):
        return "boolean"
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    if pa.types.is_dictionary(type_):
        return declared(type_.value_type)
    for is_one, name in _NAMES:
        if is_one(type_):
            return name
    raise errors.make("postgres.value", detail=f"no type of PostgreSQL's for Arrow's {type_}")


def same(first: Any, second: Any) -> bool:
    """Whether two tables are the very same, bit by bit: NaN is NaN, and -0.0 is not 0.0."""
    if first.column_names != second.column_names or first.schema.types != second.schema.types:
        return False
    return all(
        _bits(left).equals(_bits(other))
        for left, other in zip(first.columns, second.columns, strict=True)
    )


def _bits(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_floating(array.type):
        array = array.view(pa.int64() if array.type == pa.float64() else pa.int32())
    return array
