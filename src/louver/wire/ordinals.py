"""The values of a condition's expressions as whole numbers, in DuckDB's order.

A value's *unit* is an integer: integers are their own, a DECIMAL is its scaled integer, a DATE
counts days and a TIME or TIMESTAMP its own resolution since 1970, BOOLEAN is 0 or 1, and a text of
at most 8 bytes is its bytes, big endian, padded with zeros. Two values of a type have the same unit
only if they are equal, and units are ordered as DuckDB orders the values. See spec/splinter.md.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: The longest text, in bytes, that an interval may be over.
MAX_TEXT_BYTES = 8

Words = npt.NDArray[np.uint64]

_WHOLE = frozenset(
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT"
    " DATE TIME".split()
)
_MICROSECONDS = {
    "TIMESTAMP": Fraction(1),
    "TIMESTAMP WITH TIME ZONE": Fraction(1),
    "TIMESTAMP_S": Fraction(1, 1_000_000),
    "TIMESTAMP_MS": Fraction(1, 1_000),
    "TIMESTAMP_NS": Fraction(1_000),
}
_DECIMAL = re.compile(r"DECIMAL\((\d{1,2}),(\d{1,2})\)")
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
#: Greater than every unit of every type.
_FAR = 1 << 200


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a constant among units: ``unit`` is the greatest that is not above it.

    ``exact``: the constant is that unit's value; otherwise it lies between it and the next.
    """

    unit: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a column without NULLs: modulo 2**64, with the least and the greatest."""

    wrapped: Words
    low: int
    high: int


def has_units(type_name: str) -> bool:
    """Whether all values of DuckDB type `type_name` have units (texts do not)."""
    return type_name in _WHOLE or type_name in _MICROSECONDS or scale(type_name) is not None


def scale(type_name: str) -> int | None:
    """Digits after the point of DECIMAL(width,scale); None for other types."""
    match = _DECIMAL.fullmatch(type_name)
    return None if match is None else int(match[2])


def unit(value: object, type_name: str, length: int = 0) -> int:
    """The unit of `value` as `type_name`; ValueError if it is not a value of the type."""
    ordinal = position(value, type_name, length)
    if not ordinal.exact:
        raise ValueError("not a value of the type")
    return ordinal.unit


def position(value: object, type_name: str, length: int = 0) -> Position:
    """The position of a constant among the units of `type_name`.

    Args:
        value: a number, text, date, time or date with time, as DuckDB's Python client returns it;
            an integer for a DATE, TIME or TIMESTAMP is a unit.
        type_name: DuckDB's name of the type.
        length: for VARCHAR, the longest text of the table in bytes, at most 8.

    Raises:
        ValueError: the value cannot be compared with the type.
    """
    if type_name == "VARCHAR":
        return _text_position(value, length)
    if not has_units(type_name):
        raise ValueError("the type has no units")
    if isinstance(value, float) and math.isinf(value):
        return Position(_FAR if value > 0 else -_FAR, False)
    exact = _fraction(value, type_name)
    floor = math.floor(exact)
    return Position(floor, floor == exact)


def units(column: pa.Array | pa.ChunkedArray, type_name: str, length: int = 0) -> Units:
    """The units of a column of DuckDB type `type_name`, as DuckDB exports it without loss.

    Raises:
        ValueError: the column has NULLs, its texts are longer than `length` or contain a zero
            byte, or the type has no units.
    """
    array = whole(column)
    if array.null_count:
        raise ValueError("a condition over NULL")
    if len(array) == 0:
        return Units(np.zeros(0, np.uint64), 0, -1)
    if type_name == "VARCHAR":
        words = _text_words(array, length)
        return Units(words, int(words.min()), int(words.max()))
    if not has_units(type_name):
        raise ValueError("the type has no units")
    if pa.types.is_decimal128(array.type) or pa.types.is_fixed_size_binary(array.type):
        return _wide(array, signed=type_name != "UHUGEINT")
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    values = fixed(array)
    return Units(
        values.astype(np.uint64)
        if values.dtype.kind == "u"
        else values.astype(np.int64).view(np.uint64),
        int(values.min()),
        int(values.max()),
    )


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array with the content of an array or its chunks; an extension type as its storage."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # what does not fit in one array stays in chunks
        raise ValueError("a column of too many bytes")
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array


def fixed(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an array of whole numbers of up to 8 bytes; NULLs have arbitrary values."""
    kind = array.type
    signed = not pa.types.is_unsigned_integer(kind)
    size = kind.bit_width // 8
    flat = np.frombuffer(array.buffers()[1], dtype=f"<{'i' if signed else 'u'}{size}")
    return flat[array.offset : array.offset + len(array)]


def text_parts(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """The offsets of the texts or blobs of `array` (count + 1), and all bytes."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype="<i8" if wide else "<i4")
    ends = ends[array.offset : array.offset + len(array) + 1].astype(np.int64)
    payload = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return ends, payload


def _wide(array: pa.Array, signed: bool) -> Units:
    """The units of 16-byte integers."""
    pairs = np.frombuffer(array.buffers()[1], dtype="<u8")
    pairs = pairs.reshape(-1, 2)[array.offset : array.offset + len(array)]
    low_words = np.ascontiguousarray(pairs[:, 0])
    tops: npt.NDArray[Any] = pairs[:, 1].view(np.int64) if signed else pairs[:, 1]
    ends = []
    for pick in (np.min, np.max):
        top = pick(tops)
        ends.append((int(top) << 64) + int(pick(low_words[tops == top])))
    return Units(low_words, ends[0], ends[1])


def _text_words(array: pa.Array, length: int) -> Words:
    ends, data = text_parts(array)
    sizes = np.diff(ends)
    if length > MAX_TEXT_BYTES or int(sizes.max()) > length:
        raise ValueError("a text is too long for an interval")
    if (data[ends[0] : ends[-1]] == 0).any():
        raise ValueError("a text with a zero byte")
    words = np.zeros(len(array), np.uint64)
    for at in range(length):
        words <<= np.uint64(8)
        there = sizes > at
        words[there] |= data[ends[:-1][there] + at]
    return words


def _text_position(value: object, length: int) -> Position:
    if not isinstance(value, str):
        raise ValueError("not a text")
    data = value.encode()
    cut = data[:length]
    # After truncation or with a zero byte, the constant is just above the truncated text: texts of
    # the table are not longer than `length` and have no zero bytes.
    exact = len(data) <= length and b"\0" not in data
    return Position(int.from_bytes(cut.ljust(length, b"\0"), "big"), exact)


def _fraction(value: object, type_name: str) -> Fraction:
    """A constant in units, not rounded."""
    if isinstance(value, dt.datetime | dt.date):
        return _moment(value, type_name)
    if isinstance(value, dt.time):
        if type_name != "TIME" or value.tzinfo is not None:
            raise ValueError("a time of the day beside another type")
        return Fraction(
            (dt.datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND,
        )
    if not isinstance(value, int | float | Decimal | Fraction):
        raise ValueError("not a number")
    try:
        return Fraction(value) * Fraction(10 ** (scale(type_name) or 0))
    except (OverflowError, ValueError) as error:
        raise ValueError("not a number") from error


def _moment(value: dt.date, type_name: str) -> Fraction:
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    microseconds = Fraction((value - _EPOCH) // _MICROSECOND)
    if type_name == "DATE":
        return microseconds / 86_400_000_000
    if type_name not in _MICROSECONDS:
        raise ValueError("a date beside another type")
    return microseconds * _MICROSECONDS[type_name]
