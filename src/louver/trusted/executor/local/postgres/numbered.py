"""Binary forms that hold numbers of types: of arrays, composites and ranges of users' types. Values
bear those of the database where they were made; clients know the binder's.

The forms are those of `array_send`, `record_send`, `range_send` and `multirange_send` in
PostgreSQL's sources (src/backend/utils/adt).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from louver import errors
from louver.trusted.executor.local.postgres.connection import PostgresConnection

Kind = Literal["plain", "array", "record", "range", "multirange"]
_RECORD, _RECORDS, _FIRST_OF_USERS = 2249, 2287, 16_384
_EMPTY, _NO_LOWER, _NO_UPPER = 0x01, 0x08, 0x10
_FORM = """
SELECT CASE WHEN t.typcategory = 'A' AND t.typlen = -1 AND t.typelem <> 0 THEN 'array'
    WHEN t.typtype = 'c' THEN 'record' WHEN t.typtype = 'r' THEN 'range'
    WHEN t.typtype = 'm' THEN 'multirange' WHEN t.typtype = 'd' THEN 'domain' ELSE 'plain' END,
    CASE WHEN t.typtype = 'c' THEN coalesce((SELECT string_agg(a.atttypid::text, ' '
        ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped), '')
    WHEN t.typtype = 'r' THEN (SELECT rngsubtype::text FROM pg_catalog.pg_range
        WHERE rngtypid = t.oid)
    WHEN t.typtype = 'm' THEN (SELECT rngtypid::text FROM pg_catalog.pg_range
        WHERE rngmultitypid = t.oid)
    WHEN t.typtype = 'd' THEN t.typbasetype::text ELSE t.typelem::text END
FROM pg_catalog.pg_type AS t WHERE t.oid = $1::oid
"""


@dataclass(frozen=True, slots=True)
class Form:
    """What a type's binary form is, and the types of its parts with their numbers."""

    kind: Kind
    parts: tuple[tuple[int, Form], ...] = ()

    @property
    def holds_numbers(self) -> bool:
        """Whether a value has numbers of types in it."""
        own = self.kind in ("array", "record")
        return own or any(form.holds_numbers for _, form in self.parts)


_PLAIN = Form("plain")


class Forms:
    """The forms of one binder's types."""

    def __init__(self, binder: PostgresConnection) -> None:
        """None is known at first."""
        self._binder = binder
        self._known: dict[int, Form] = {}

    def of(self, number: int) -> Form:
        """The form of a type of this number."""
        if number not in self._known:
            kind, listed = self._binder.fetchone(_FORM, [number]) or ("plain", "")
            numbers = [int(word) for word in str(listed or "").split()] if kind != "plain" else []
            parts = tuple((part, self.of(part)) for part in numbers)
            if kind == "domain":
                self._known[number] = parts[0][1]
            else:
                self._known[number] = Form(kind, parts)
        return self._known[number]

    def with_own(self, array: pa.Array, number: int) -> pa.Array:
        """Binary values of a type with the binder's numbers in them."""
        form = self.of(number)
        if not form.holds_numbers:
            return array
        values = (
            None if value is None else _renumbered(value, form) for value in array.to_pylist()
        )
        return pa.array(list(values), pa.binary())


def require_known(records: pa.Array) -> None:
    """Raise for records without a type, in binary form, that have values of users' types in them:
    what clients know their numbers as is not said.
    """
    for value in records.to_pylist():
        if value is not None:
            _require_known(value)


def _require_known(record: bytes) -> None:
    (count,) = struct.unpack_from(">i", record)
    at = 4
    for _ in range(count):
        type_, length = struct.unpack_from(">Ii", record, at)
        at += 8
        if type_ >= _FIRST_OF_USERS or type_ == _RECORDS:
            raise errors.make("postgres.refused", statement="The binary form of such a record")
        if type_ == _RECORD and length >= 0:
            _require_known(record[at : at + length])
        at += max(length, 0)


def _renumbered(data: bytes, form: Form) -> bytes:
    if form.kind == "array":
        return _array(data, *form.parts[0])
    if form.kind == "record":
        return _record(data, form)
    if form.kind == "range":
        return _range(data, form)
    if form.kind == "multirange":
        (count,) = struct.unpack_from(">i", data)
        return data[:4] + _values(data, 4, [form.parts[0][1]] * count)
    return data


def _array(data: bytes, number: int, element: Form) -> bytes:
    dimensions, flags = struct.unpack_from(">ii", data)
    head = struct.pack(">iiI", dimensions, flags, number)
    start, count = 12 + 8 * dimensions, 1 if dimensions else 0
    for at in range(dimensions):
        count *= struct.unpack_from(">i", data, 12 + 8 * at)[0]
    return head + data[12:start] + _values(data, start, [element] * count)


def _record(data: bytes, form: Form) -> bytes:
    (count,) = struct.unpack_from(">i", data)
    if count != len(form.parts):
        raise ValueError("a record of another type")
    pieces, at = [data[:4]], 4
    for number, part in form.parts:
        piece, end = _value(data, at + 4, part)
        pieces += [struct.pack(">I", number), piece]
        at = end
    return b"".join(pieces)


def _range(data: bytes, form: Form) -> bytes:
    flags = data[0]
    bounds = 0 if flags & _EMPTY else 2 - bool(flags & _NO_LOWER) - bool(flags & _NO_UPPER)
    return data[:1] + _values(data, 1, [form.parts[0][1]] * bounds)


def _values(data: bytes, at: int, forms: list[Form]) -> bytes:
    pieces = []
    for form in forms:
        piece, at = _value(data, at, form)
        pieces.append(piece)
    return b"".join(pieces)


def _value(data: bytes, at: int, form: Form) -> tuple[bytes, int]:
    """A value behind its length, and where the next one begins."""
    (length,) = struct.unpack_from(">i", data, at)
    if length < 0:
        return data[at : at + 4], at + 4
    end = at + 4 + length
    value = _renumbered(data[at + 4 : end], form)
    return struct.pack(">i", len(value)) + value, end
