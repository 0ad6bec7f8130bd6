"""Encoding of private questions, shares and replies.

Every message begins with a version byte and a byte that identifies the message. Numbers have fixed
widths and are big endian, texts and byte strings have length prefixes, lists have counts; all are
bounded, and the bound is checked before anything is allocated. Each value has exactly one encoding:
bytes that decode are those that the value encodes to. Malformed bytes raise `wire.format`. See
spec/splinter-wire.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from louver.wire import questions as q
from louver.wire.binary import Reader, malformed

VERSION = 1

#: The longest encodings, in bytes.
MAX_SHAPE_BYTES = 256 << 10
MAX_ASK_BYTES = 64 << 20
MAX_REPLY_BYTES = 256 << 20
MAX_PREPARED_BYTES = 64 << 20
MAX_DATASET_BYTES = 16 << 20
MAX_SHARES = 65_536
MAX_SHARE_BYTES = 32 << 20
MAX_VERSIONS = 64

_MAX_TEXT_BYTES = 64 << 10
_MAX_NAME_BYTES = 4 << 10
_MAX_EXPRESSIONS = 1_024
_MAX_TABLES = 4_096
_MAX_COLUMNS = 16_384
_MAX_FORM = 1 << 20
_MAX_ROWS = (1 << 31) - 1
#: Units of 128-bit integers, signed or not, fit into seventeen bytes.
_UNIT_BYTES = 17

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a preparation: the current stage, and a share from 0 to 1."""

    stage: str
    share: float


@dataclass(frozen=True, slots=True)
class Preparation:
    """The request to prepare a shape on one version of the data."""

    version: bytes
    shape: q.Shape


@dataclass(frozen=True, slots=True)
class Form(Generic[_Value]):
    """How a value is written and read."""

    put: Callable[[list[bytes], _Value], None]
    take: Callable[[Reader], _Value]


def _number(size: int, low: int = 0, high: int | None = None, *, signed: bool = False) -> Form[int]:
    """A whole number from `low` to `high` in `size` bytes."""
    most = (1 << 8 * size - signed) - 1 if high is None else high
    least = -(1 << 8 * size - 1) if signed else low

    def put(out: list[bytes], value: int) -> None:
        if not least <= value <= most:
            raise malformed("a number out of range")
        out.append(value.to_bytes(size, "big", signed=signed))

    def take(reader: Reader) -> int:
        value = int.from_bytes(reader.take(size), "big", signed=signed)
        if not least <= value <= most:
            raise malformed("a number out of range")
        return value

    return Form(put, take)


_FLAG = _number(1, 0, 1)
_BOOL: Form[bool] = Form(
    lambda out, value: _FLAG.put(out, int(value)), lambda reader: bool(_FLAG.take(reader))
)


def _exact(size: int) -> Form[bytes]:
    """Exactly `size` bytes."""

    def put(out: list[bytes], value: bytes) -> None:
        if len(value) != size:
            raise malformed("a byte string of another length")
        out.append(bytes(value))

    return Form(put, lambda reader: bytes(reader.take(size)))


def _blob(most: int) -> Form[bytes]:
    """At most `most` bytes, with a length prefix."""
    length = _number(4, 0, most)

    def put(out: list[bytes], value: bytes) -> None:
        length.put(out, len(value))
        out.append(bytes(value))

    return Form(put, lambda reader: bytes(reader.take(length.take(reader))))


#: All bytes up to the end of the message.
_REST: Form[bytes] = Form(
    lambda out, value: out.append(bytes(value)), lambda reader: bytes(reader.rest())
)


def _text(most: int) -> Form[str]:
    """UTF-8 of at most `most` bytes."""
    blob = _blob(most)

    def put(out: list[bytes], value: str) -> None:
        try:
            blob.put(out, value.encode())
        except UnicodeEncodeError as error:
            raise malformed("a text that is not Unicode") from error

    def take(reader: Reader) -> str:
        try:
            return blob.take(reader).decode()
        except UnicodeDecodeError as error:
            raise malformed("a text that is not UTF-8") from error

    return Form(put, take)


def _many(form: Form[_Value], most: int) -> Form[tuple[_Value, ...]]:
    """At most `most` values of one form, with a count."""
    count = _number(4, 0, most)

    def put(out: list[bytes], values: tuple[_Value, ...]) -> None:
        count.put(out, len(values))
        for value in values:
            form.put(out, value)

    # No form is empty, so truncated input ends the loop before memory is filled.
    return Form(put, lambda reader: tuple(form.take(reader) for _ in range(count.take(reader))))


def _maybe(form: Form[_Value]) -> Form[_Value | None]:
    """A value, or None."""

    def put(out: list[bytes], value: _Value | None) -> None:
        _BOOL.put(out, value is not None)
        if value is not None:
            form.put(out, value)

    return Form(put, lambda reader: form.take(reader) if _BOOL.take(reader) else None)


def _record(cls: type[_Value], *forms: Form[Any]) -> Form[_Value]:
    """A dataclass: its fields in their order."""
    kind: Any = cls
    members = tuple(zip((member.name for member in fields(kind)), forms, strict=True))

    def put(out: list[bytes], value: _Value) -> None:
        for name, form in members:
            form.put(out, getattr(value, name))

    def take(reader: Reader) -> _Value:
        value: _Value = kind(*[form.take(reader) for _, form in members])
        return value

    return Form(put, take)


_PROTOCOLS = tuple(q.Protocol)
_PROTOCOL_NUMBER = _number(1, 0, len(_PROTOCOLS) - 1)
_PROTOCOL: Form[q.Protocol] = Form(
    lambda out, value: _PROTOCOL_NUMBER.put(out, _PROTOCOLS.index(value)),
    lambda reader: _PROTOCOLS[_PROTOCOL_NUMBER.take(reader)],
)


def _put_share(out: list[bytes], value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise malformed("a progress value out of range")
    out.append(struct.pack(">d", value + 0.0))


def _take_share(reader: Reader) -> float:
    (value,) = struct.unpack(">d", reader.take(8))
    if not 0.0 <= value <= 1.0 or str(value) == "-0.0":
        raise malformed("a progress value out of range")
    return float(value)


def _put_column(out: list[bytes], pair: tuple[str, str]) -> None:
    _NAME.put(out, pair[0])
    _SQL.put(out, pair[1])


_SQL = _text(_MAX_TEXT_BYTES)
_NAME = _text(_MAX_NAME_BYTES)
_SQLS = _many(_SQL, _MAX_EXPRESSIONS)
_DIGEST = _exact(32)
_ID = _exact(16)
_U32 = _number(4)
_U64 = _number(8)
_BITS = _number(1, 0, 64)
_PARTIAL = _record(q.Partial, _NAME, _SQLS, _SQL)
_ORDER = _record(q.Order, _SQL, _BOOL, _BOOL)
_SHAPE = _record(
    q.Shape, _PROTOCOL, _SQL, _SQL, _SQLS, _SQL, _SQLS, _many(_PARTIAL, _MAX_EXPRESSIONS), _SQLS,
    _many(_ORDER, _MAX_EXPRESSIONS), _number(4, 0, _MAX_ROWS),
)  # fmt: skip
_CODE = _record(
    q.Code, _SQL, _NAME, _number(_UNIT_BYTES, signed=True), _number(_UNIT_BYTES, 1),
    _number(1, 0, 128), _number(4, 0, _MAX_ROWS),
)  # fmt: skip
_CODES = _record(q.KeyCodes, _many(_CODE, _MAX_EXPRESSIONS), _maybe(_CODE), _blob(64), _BOOL, _BITS)
_FIELD = _record(q.Field, _NAME, _SQL)
_SLOT = _record(q.Slot, _number(4, 0, _MAX_ROWS), _BOOL)
_LEVEL = _record(
    q.Level, _U64, _BITS, _number(4, 0, _MAX_ROWS), _number(4, 0, _MAX_ROWS), _BOOL,
    _many(_SLOT, _MAX_COLUMNS),
)  # fmt: skip
_SUM = _record(q.SumColumn, _number(4, 0, _MAX_EXPRESSIONS), _number(1, 0, 16))
_PREPARED = _record(
    q.Prepared, _DIGEST, _DIGEST, _DIGEST, _CODES, _many(_FIELD, _MAX_COLUMNS),
    _many(_LEVEL, 128), _U64, _blob(MAX_PREPARED_BYTES), _U32, _many(_SUM, _MAX_COLUMNS), _BITS,
)  # fmt: skip
_ASK = _record(
    q.Ask, _ID, _DIGEST, _DIGEST, _number(2), _many(_blob(MAX_SHARE_BYTES), MAX_SHARES),
    _many(_U64, _MAX_FORM),
)  # fmt: skip
_REPLY = _record(q.Reply, _REST)
_COLUMN: Form[tuple[str, str]] = Form(
    _put_column, lambda reader: (_NAME.take(reader), _SQL.take(reader))
)
_TABLE = _record(q.TableFacts, _NAME, _many(_COLUMN, _MAX_COLUMNS), _U64)
_TABLES = _many(_TABLE, _MAX_TABLES)
_DATASET = _record(
    q.Dataset, _ID, _many(_DIGEST, MAX_VERSIONS), _TABLES, _many(_TABLES, MAX_VERSIONS)
)
_PROGRESS = _record(Progress, _NAME, Form(_put_share, _take_share))
_PREPARATION = _record(Preparation, _DIGEST, _SHAPE)

#: The kinds of messages: byte, form, longest encoding.
_MESSAGES: dict[type, tuple[int, Form[Any], int]] = {
    q.Shape: (1, _SHAPE, MAX_SHAPE_BYTES),
    Preparation: (2, _PREPARATION, MAX_SHAPE_BYTES + 64),
    Progress: (3, _PROGRESS, _MAX_NAME_BYTES + 64),
    q.Prepared: (4, _PREPARED, MAX_PREPARED_BYTES),
    q.Ask: (5, _ASK, MAX_ASK_BYTES),
    q.Reply: (6, _REPLY, MAX_REPLY_BYTES),
    q.Dataset: (7, _DATASET, MAX_DATASET_BYTES),
}

Message = q.Shape | Preparation | Progress | q.Prepared | q.Ask | q.Reply | q.Dataset
_Message = TypeVar(
    "_Message", q.Shape, Preparation, Progress, q.Prepared, q.Ask, q.Reply, q.Dataset
)


def encode(message: Message) -> bytes:
    """Encode a message; `wire.format` if it exceeds a bound."""
    kind, form, most = _MESSAGES[type(message)]
    _check(message)
    out = [bytes((VERSION, kind))]
    form.put(out, message)
    data = b"".join(out)
    if len(data) > most:
        raise malformed("longer than allowed")
    return data


def decode(cls: type[_Message], data: bytes | memoryview) -> _Message:
    """Decode the message of `encode`; `wire.format` for any other bytes.

    Args:
        cls: the expected message.
        data: untrusted bytes.
    """
    kind, form, most = _MESSAGES[cls]
    if memoryview(data).nbytes > most:
        raise malformed("longer than allowed")
    reader = Reader(data)
    if reader.byte() != VERSION:
        raise malformed("another version")
    if reader.byte() != kind:
        raise malformed("another kind of message")
    message: _Message = form.take(reader)
    reader.end()
    _check(message)
    return message


def decode_prepare(data: bytes | memoryview) -> Progress | q.Prepared:
    """One message of a preparation: its progress, or its result."""
    kind = bytes(memoryview(data)[1:2])
    if kind == bytes((_MESSAGES[Progress][0],)):
        return decode(Progress, data)
    return decode(q.Prepared, data)


def shape_id(shape: q.Shape) -> bytes:
    """A shape's name: SHA-256 of its encoding, 32 bytes."""
    return hashlib.sha256(encode(shape)).digest()


def _check(message: Message) -> None:
    """Checks that span several fields."""
    if isinstance(message, q.Prepared):
        if message.codes.bits > 64:
            raise malformed("a point of more than 64 bits")
        if message.codes.hashed and not message.codes.equal:
            raise malformed("a hash without an expression")
        if any(not level.bits for level in message.levels):
            raise malformed("a table of impossible figures")
