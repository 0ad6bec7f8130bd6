"""Values of PostgreSQL as Python's, as psycopg 3 gives them; other types by their text form."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors

Texts = Callable[[pa.ChunkedArray], list[str | None]]
"""The text forms of values of a type that only PostgreSQL has."""
_DAY_US = 86_400_000_000
_INTERVAL, _TIMETZ = struct.Struct(">qii"), struct.Struct(">qi")


def rows(table: pa.Table, zone: str, texts: Texts) -> list[tuple[Any, ...]]:
    """Rows as tuples; timestamps with a zone in the session's."""
    columns = [values(column, zone, texts) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def values(column: pa.ChunkedArray, zone: str, texts: Texts) -> list[Any]:
    """One column."""
    type_ = column.type
    try:
        if isinstance(type_, pa.OpaqueType):
            return _opaque(column, type_.type_name, texts)
        if pa.types.is_timestamp(type_) and type_.tz:
            local_zone = zone_of(zone)
            return [v and v.astimezone(local_zone) for v in column.to_pylist()]
        if pa.types.is_time64(type_) and _has_24_hours(column):
            raise ValueError("24:00")
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError, pa.ArrowInvalid) as error:
        # Infinity, years before 1 and after 9999, 24:00:
        raise errors.make("postgres.python", type=str(type_), detail=str(error)) from None


def _has_24_hours(column: pa.ChunkedArray) -> bool:
    """Whether a time is the end of the day, which Python would take for its begin."""
    most = pc.max(column.cast(pa.int64())).as_py()
    return most is not None and most >= _DAY_US


def _opaque(column: pa.ChunkedArray, name: str, texts: Texts) -> list[Any]:
    stored = column.combine_chunks().storage.to_pylist()
    read = _READ.get(name)
    if name.endswith("[]"):
        from louver.trusted.executor.local.postgres import array_values

        known = all(value is None or array_values.is_known(value) for value in stored)
        read = array_values.read if known else None
    if read is None:
        return list(texts(column))
    return [None if value is None else read(value) for value in stored]


def _interval(value: bytes) -> timedelta:
    us, days, months = _INTERVAL.unpack(value)
    years, left = divmod(abs(months), 12)
    more = 365 * years + 30 * left
    return timedelta(days=days + (more if months > 0 else -more), microseconds=us)


def _time_with_zone(value: bytes) -> time:
    us, west = _TIMETZ.unpack(value)
    moment = datetime(1, 1, 1) + timedelta(microseconds=us)
    if us >= _DAY_US:
        raise ValueError("24:00")
    return moment.time().replace(tzinfo=timezone(timedelta(seconds=-west)))


_READ: dict[str, Callable[[Any], Any]] = {
    "numeric": Decimal,
    "void": lambda _: "",
    "interval": _interval,
    "time with time zone": _time_with_zone,
    "json": json.loads,
    "jsonb": lambda value: json.loads(value[1:]),
}


def zone_of(name: str) -> tzinfo:
    """The zone of a session, as far as Python knows it; else UTC, which is the same moment."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC
