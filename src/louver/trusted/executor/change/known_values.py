"""Values of which it is known without DuckDB what a column stores: Python's own, and literals, that
a cast to the column's type takes as they are. Of all others (what is rounded, what may be refused,
what a setting decides) only DuckDB tells.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache, partial
from struct import pack, unpack

import pyarrow as pa

from louver.trusted.planner.sql.postgres_types import blank_padded
from louver.trusted.vault.types import decimal_width, is_integer

_Convert = Callable[..., object]
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_POINTED = re.compile(r"-?(?:0|[1-9][0-9]{0,36})(?:\.[0-9]{1,37})?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{6})?"
)
#: Whole numbers up to these are DOUBLE and FLOAT as they are, and decimals of so many digits.
_DOUBLE_WHOLE, _FLOAT_WHOLE, _DOUBLE_DIGITS = 1 << 53, 1 << 24, 15


class _UnknownError(Exception):
    """Only DuckDB tells."""


def array(type_: str, field_type: pa.DataType, values: Sequence[object]) -> pa.Array | None:
    """Values as a column of a type, which is ``field_type`` in Arrow, takes them; None where only
    DuckDB tells.
    """
    rules = _rules(type_)
    if rules is None:
        return None
    try:
        ways = {kind: rules[kind] for kind in {*map(type, values)}}
        if field_type == pa.bool_():
            ways.pop(bool, None)
        if set(ways.values()) - {None}:
            values = [way(v) if (way := ways.get(type(v))) else v for v in values]
        if not isinstance(field_type, pa.BaseExtensionType):
            return pa.array(values, field_type)
        return pa.ExtensionArray.from_storage(field_type, pa.array(values, field_type.storage_type))
    except (_UnknownError, KeyError, ValueError, ArithmeticError, pa.ArrowException):
        return None  # a text that is not Unicode is a ValueError


@lru_cache(256)
def _rules(type_: str) -> Mapping[type, _Convert | None] | None:
    """How values of each of Python's types become a column's; None for one that is taken as it is,
    and of a column of which only DuckDB tells.
    """
    rules = _RULES.get(type_)
    if is_integer(type_) and "HUGE" not in type_:
        rules = {int: None, str: _whole}
    elif (decimal := decimal_width(type_)) is not None:
        width, scale = decimal
        rules = {
            int: partial(_decimal_of_whole, width - scale),
            Decimal: partial(_decimal, width - scale, scale),
            str: partial(_decimal_of_text, width - scale, scale),
            float: partial(_decimal_of_double, width, scale),
        }
    elif (length := blank_padded(type_)) is not None:
        rules = {str: partial(_filled_up, length)}
    return None if rules is None else {type(None): None, **rules}


def _whole(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise _UnknownError
    return int(text)


def _decimal_of_whole(digits: int, value: int) -> Decimal:
    if abs(value) >= 10**digits:
        raise _UnknownError
    return Decimal(value)


def _decimal(digits: int, scale: int, value: Decimal) -> Decimal:
    """A decimal whose digits all have a place; DuckDB misreads one with an exponent above 0."""
    _, _, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -scale <= exponent <= 0 or abs(value) >= 10**digits:
        raise _UnknownError
    return value


def _decimal_of_text(digits: int, scale: int, text: str) -> Decimal:
    if _POINTED.fullmatch(text) is None:
        raise _UnknownError
    return _decimal(digits, scale, Decimal(text))


def _decimal_of_double(width: int, scale: int, value: float) -> Decimal:
    """DuckDB multiplies by a power of ten and takes the nearest whole number: known where only one
    is near.
    """
    scaled = value * 10.0**scale
    nearest = round(scaled)
    if abs(scaled - nearest) > 0.25 or abs(nearest) >= min(10**width, _DOUBLE_WHOLE):
        raise _UnknownError
    return Decimal(nearest).scaleb(-scale)


def _double_of_whole(value: int) -> float:
    if abs(value) > _DOUBLE_WHOLE:
        raise _UnknownError
    return float(value)


def _double_of_decimal(value: Decimal) -> float:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) > _DOUBLE_DIGITS:
        raise _UnknownError
    if not -_DOUBLE_DIGITS <= exponent <= 0:
        raise _UnknownError
    return float(value) if value else 0.0  # a decimal has no zero below zero


def _float_of_whole(value: int) -> float:
    if abs(value) > _FLOAT_WHOLE:
        raise _UnknownError
    return float(value)


def _float(value: float) -> float:
    if unpack("f", pack("f", value))[0] != value:
        raise _UnknownError
    return value


def _day(text: str) -> date:
    if _DAY.fullmatch(text) is None:
        raise _UnknownError
    return date.fromisoformat(text)


def _moment(text: str) -> datetime:
    if _DAY.fullmatch(text) is None and _MOMENT.fullmatch(text) is None:
        raise _UnknownError
    return datetime.fromisoformat(text)


def _moment_of_day(value: date) -> datetime:
    return datetime(value.year, value.month, value.day)


def _without_zone(value: datetime | time) -> datetime | time:
    if value.tzinfo is not None:
        raise _UnknownError
    return value


def _bytes_of_text(text: str) -> bytes:
    if _UUID.fullmatch(text) is None:
        raise _UnknownError
    return uuid.UUID(text).bytes


def _with_zone(value: datetime) -> datetime:
    offset = value.utcoffset()
    # Arrow leaves out what is less than a second.
    if offset is None or offset.microseconds:
        raise _UnknownError
    return value


def _filled_up(length: int, text: str) -> str:
    if len(text) > length:
        raise _UnknownError
    return text.ljust(length)


def _bytes(value: uuid.UUID) -> bytes:
    return value.bytes


_RULES: dict[str, Mapping[type, _Convert | None]] = {
    "VARCHAR": {str: None},
    "BLOB": {bytes: None},
    "BOOLEAN": {bool: int},
    "UUID": {uuid.UUID: _bytes, str: _bytes_of_text},
    "DOUBLE": {float: None, int: _double_of_whole, Decimal: _double_of_decimal},
    "FLOAT": {float: _float, int: _float_of_whole},
    "DATE": {date: None, str: _day},
    "TIME": {time: _without_zone},
    "TIMESTAMP WITH TIME ZONE": {datetime: _with_zone},
    "TIMESTAMP": {datetime: _without_zone, date: _moment_of_day, str: _moment},
}
