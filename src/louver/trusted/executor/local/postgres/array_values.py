"""Arrays of PostgreSQL, by their binary form, as Python's lists: as psycopg 3 gives them.

The form (PostgreSQL's `array_send`): dimensions, a flag for NULLs, the number of the elements'
type, for each dimension its length and lower bound, then each element's length and its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from math import prod
from typing import Any
from uuid import UUID

_HEAD, _DIMENSION, _LENGTH = struct.Struct(">iii"), struct.Struct(">ii"), struct.Struct(">i")
_DAY_0, _MOMENT_0 = date(2000, 1, 1), datetime(2000, 1, 1)
_MOST_DIMENSIONS = 6
_NULL = -1


def _number(form: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(form).unpack
    return lambda value: unpack(value)[0]


_days, _us = _number(">i"), _number(">q")
#: By the number of the type, what reads one element; arrays of others stay texts.
_ELEMENTS: dict[int, Callable[[bytes], Any]] = {
    16: _number(">?"), 17: bytes, 19: bytes.decode, 20: _number(">q"), 21: _number(">h"),
    23: _number(">i"), 25: bytes.decode, 26: _number(">I"), 700: _number(">f"),
    701: _number(">d"), 1042: bytes.decode, 1043: bytes.decode,
    1082: lambda value: _DAY_0 + timedelta(days=_days(value)),
    1114: lambda value: _MOMENT_0 + timedelta(microseconds=_us(value)),
    2950: lambda value: UUID(bytes=value),
}  # fmt: skip


def is_known(value: bytes) -> bool:
    """Whether the elements of an array are of a type that is read."""
    return len(value) >= _HEAD.size and _HEAD.unpack_from(value)[2] in _ELEMENTS


def read(value: bytes) -> list[Any]:
    """An array as nested lists.

    Raises:
        ValueError: for other bytes than those of an array, and dates that Python has not.
    """
    try:
        dimensions, _, type_ = _HEAD.unpack_from(value)
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise ValueError("an array of so many dimensions")
        at = _HEAD.size
        lengths = [
            _DIMENSION.unpack_from(value, at + _DIMENSION.size * number)[0]
            for number in range(dimensions)
        ]
        if any(length < 1 for length in lengths) or prod(lengths) * _LENGTH.size > len(value):
            raise ValueError("an array that ends early")
        elements = _elements(value, at + _DIMENSION.size * dimensions, _ELEMENTS[type_])
        nested = _nested(lengths, elements) if lengths else []
        if any(True for _ in elements):
            raise ValueError("an array with more elements than it says")
    except (struct.error, StopIteration) as error:
        raise ValueError("an array that ends early") from error
    return nested


def _elements(value: bytes, at: int, decode: Callable[[bytes], Any]) -> Iterator[Any]:
    while at < len(value):
        (length,) = _LENGTH.unpack_from(value, at)
        at += _LENGTH.size
        if length == _NULL:
            yield None
            continue
        if not 0 <= length <= len(value) - at:
            raise ValueError("an element beyond its array")
        yield decode(value[at : at + length])
        at += length


def _nested(lengths: list[int], elements: Iterator[Any]) -> list[Any]:
    length, *inner = lengths
    if inner:
        return [_nested(inner, elements) for _ in range(length)]
    return [next(elements) for _ in range(length)]
