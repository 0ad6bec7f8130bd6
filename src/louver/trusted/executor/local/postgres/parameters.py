"""Values of a statement's parameters: each is sent as text, for PostgreSQL to read as the type that
it finds for the parameter. Where it finds none, which it says by `text`, the value's own type
counts, as with psycopg 3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from louver import errors
from louver.trusted.executor.local.postgres.values import TEXT

Sent = None | str | tuple[str, int]
_LIMITS = ((1 << 15, 21), (1 << 31, 23), (1 << 63, 20))
_NUMERIC, _BOOL, _FLOAT, _BYTES = 1700, 16, 701, 17
_TYPES: tuple[tuple[type, int], ...] = (
    (bool, _BOOL), (float, _FLOAT), (Decimal, _NUMERIC), (datetime, 1114), (date, 1082),
    (time, 1083), (timedelta, 1186), (UUID, 2950), (bytes, _BYTES), (bytearray, _BYTES),
    (memoryview, _BYTES), (dict, 3802),
)  # fmt: skip
_ZONED = {1114: 1184, 1083: 1266}


def listed(parameters: Sequence[object] | Mapping[str, object]) -> list[object]:
    """The values by position; PostgreSQL has no named ones."""
    if isinstance(parameters, Mapping):
        if any(not name.isdigit() for name in parameters):
            raise errors.make("local.feature", feature="parameters by name")
        return [parameters[str(ordinal + 1)] for ordinal in range(len(parameters))]
    return list(parameters)


def own_types(values: Sequence[object], inferred: Sequence[int]) -> list[int]:
    """The types to say, 0 for none: of values where PostgreSQL inferred `text`, unless they are."""
    return [
        own_type(value) if type_ == TEXT and not isinstance(value, str) else 0
        for value, type_ in zip(values, inferred, strict=False)
    ]


def own_type(value: object) -> int:
    """The number of the type that psycopg 3 gives a value; 0 where it gives none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return next((type_ for most, type_ in _LIMITS if -most <= value < most), _NUMERIC)
    type_ = next((number for kind, number in _TYPES if isinstance(value, kind)), 0)
    if type_ in _ZONED and getattr(value, "tzinfo", None) is not None:
        return _ZONED[type_]
    return type_


def sent(values: Sequence[object], types: Sequence[int]) -> list[Any]:
    """The values as they go, with the types that are said."""
    results: list[Sent] = []
    for ordinal, value in enumerate(values):
        text = text_of(value)
        type_ = types[ordinal] if ordinal < len(types) else 0
        results.append(text if text is None or not type_ else (text, type_))
    return results


def text_of(value: object) -> str | None:
    """A value as PostgreSQL reads it; None is NULL."""
    if value is None or isinstance(value, str):
        return value
    for kind, text in _TEXTS:
        if isinstance(value, kind):
            return text(value)
    raise errors.make("postgres.value", detail=f"a value of Python's {type(value).__name__}")


def _bytes(value: Any) -> str:
    return "\\x" + bytes(value).hex()


def _interval(value: timedelta) -> str:
    return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"


def _array(value: Sequence[object]) -> str:
    return "{" + ",".join(map(_item, value)) + "}"


def _item(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return _array(value)
    text = text_of(value)
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_TEXTS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (bool, lambda value: "t" if value else "f"), (int, str),
    # Not the value's own repr: numpy's numbers are floats too.
    (float, lambda value: repr(float(value))), (Decimal, str),
    (datetime, str), (date, str), (time, str), (timedelta, _interval), (UUID, str),
    ((bytes, bytearray, memoryview), _bytes), (dict, json.dumps), ((list, tuple), _array),
)  # fmt: skip
