"""Values of a statement's parameters, from their text or binary form to Python's.

What Python has no value for goes on as the text that PostgreSQL prints of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from louver.trusted.apps.pgproxy.failures import failed

Printed = Callable[[bytes, int], str]
"""The text of a value in its binary form, by the number of its type."""
_INTEGERS = {20: ">q", 21: ">h", 23: ">i", 26: ">I"}
_LIMITS = {21: (1 << 15, "smallint"), 23: (1 << 31, "integer"), 20: (1 << 63, "bigint")}
_FLOATS = {700: ">f", 701: ">d"}
_TEXTS = frozenset((0, 18, 19, 25, 114, 142, 705, 1042, 1043))
_BOOL, _BYTEA, _UUID, _JSONB = 16, 17, 2950, 3802
_DATE, _TIMESTAMP, _TIMESTAMPTZ = 1082, 1114, 1184
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,100}\s*")
_DAY, _MOMENT = date(2000, 1, 1), datetime(2000, 1, 1)


def value(data: bytes | None, form: int, type_: int, printed: Printed) -> object:
    """One value; ``form`` is 0 for text and 1 for binary."""
    if data is None:
        return None
    try:
        if form == 0:
            return _of_text(data.decode(), type_)
        return _of_binary(data, type_, printed)
    except UnicodeDecodeError:
        raise failed("22021", 'invalid byte sequence for encoding "UTF8"') from None
    except (struct.error, ValueError, OverflowError):
        raise failed("22P03", f"incorrect binary data format of type {type_}") from None


def _of_text(text: str, type_: int) -> object:
    if "\0" in text:
        raise failed("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    # A number finds its row without a word of SQL.
    if type_ in _INTEGERS and _WHOLE.fullmatch(text):
        number, limits = int(text), _LIMITS.get(type_)
        if limits is not None and not -limits[0] <= number < limits[0]:
            raise failed("22003", f'value "{text}" is out of range for type {limits[1]}')
        return number
    return text


def _of_binary(data: bytes, type_: int, printed: Printed) -> object:
    if type_ in _INTEGERS:
        return struct.unpack(_INTEGERS[type_], data)[0]
    if type_ in _TEXTS:
        return _of_text(data.decode(), type_)
    if type_ in _FLOATS:
        return struct.unpack(_FLOATS[type_], data)[0]
    if type_ == _BOOL:
        return struct.unpack(">?", data)[0]
    if type_ == _BYTEA:
        return data
    if type_ == _UUID:
        # As its text, by which a key finds its row.
        return str(UUID(bytes=data))
    if type_ == _JSONB and data[:1] == b"\x01":
        return _of_text(data[1:].decode(), type_)
    known = _of_time(data, type_)
    return printed(data, type_) if known is None else known


def _of_time(data: bytes, type_: int) -> object:
    """A date or a time stamp that Python has; None of others."""
    if type_ == _DATE:
        days = struct.unpack(">i", data)[0]
        return _DAY + timedelta(days=days) if -730_119 <= days <= 2_921_939 else None
    if type_ in (_TIMESTAMP, _TIMESTAMPTZ):
        us = struct.unpack(">q", data)[0]
        if not -62_000_000_000_000_000 <= us <= 250_000_000_000_000_000:
            return None
        moment = _MOMENT + timedelta(microseconds=us)
        return moment if type_ == _TIMESTAMP else moment.replace(tzinfo=UTC)
    return None
