"""Messages as bytes: a version byte, a kind, and parts each led by its length.

Every length is bounded before anything is allocated, so bytes from anywhere either are a
message or raise `wire.format`. Tables travel as Arrow IPC streams.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import cast

import pyarrow as pa

from louver.wire.arrow import read_table
from louver.wire.binary import Reader, malformed
from louver.wire.messages import (
    Append,
    Constant,
    Control,
    Count,
    Failure,
    Kind,
    Message,
    Rows,
    Statement,
)

VERSION = 1
MAX_TEXT_BYTES = 16 << 20
MAX_CONSTANTS = 65_535
MAX_CONSTANT_BYTES = 1 << 30
MAX_TABLES = 1_024
MAX_TABLE_BYTES = 8 << 30
MAX_NAME_BYTES = 4_096
MAX_INTEGER_BYTES = 4_096

_STATEMENT, _APPEND, _CONTROL, _ROWS, _COUNT, _FAILURE = range(1, 7)
_NONE, _FALSE, _TRUE, _INTEGER, _FLOAT, _TEXT, _BYTES = range(7)
_KINDS: tuple[Kind, ...] = ("query", "write", "ddl")
_VERBS = ("begin", "commit", "rollback")


def encode(message: Message) -> bytes:
    """A message as bytes."""
    out = _Writer()
    match message:
        case Statement():
            out.byte(_STATEMENT)
            _put_statement(out, message)
        case Append(table, rows):
            out.byte(_APPEND)
            out.text(table, MAX_NAME_BYTES)
            out.table(rows)
        case Control(verb):
            out.byte(_CONTROL)
            out.byte(_VERBS.index(verb))
        case Rows(table):
            out.byte(_ROWS)
            out.table(table)
        case Count(rows):
            out.byte(_COUNT)
            out.long(rows)
        case Failure(code, text):
            out.byte(_FAILURE)
            out.text(code, MAX_NAME_BYTES)
            out.text(text, MAX_TEXT_BYTES)
    return out.finish()


def decode(data: bytes) -> Message:
    """The message of `encode`; `wire.format` for any other bytes."""
    reader = _Reader(data)
    if reader.byte() != VERSION:
        raise malformed("another version")
    read = _READERS.get(reader.byte())
    if read is None:
        raise malformed("an unknown kind of message")
    message = read(reader)
    reader.end()
    return message


class _Writer:
    def __init__(self) -> None:
        self._parts: list[bytes] = [bytes((VERSION,))]

    def finish(self) -> bytes:
        return b"".join(self._parts)

    def byte(self, value: int) -> None:
        self._parts.append(bytes((value,)))

    def long(self, value: int) -> None:
        self._parts.append(struct.pack(">Q", value))

    def part(self, data: bytes | memoryview, limit: int) -> None:
        if len(data) > limit:
            raise malformed("a part is too long to be sent")
        self.long(len(data))
        self._parts.append(bytes(data))

    def text(self, value: str, limit: int) -> None:
        try:
            self.part(value.encode(), limit)
        except UnicodeEncodeError as error:
            raise malformed("text that is not Unicode") from error

    def table(self, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        self.part(memoryview(sink.getvalue()), MAX_TABLE_BYTES)


class _Reader(Reader):
    def long(self) -> int:
        found: int = struct.unpack(">Q", self.take(8))[0]
        return found

    def count(self, limit: int) -> int:
        found = self.long()
        if found > limit:
            raise malformed("more parts than allowed")
        return found

    def part(self, limit: int) -> memoryview:
        length = self.long()
        if length > limit:
            raise malformed("a part is longer than allowed")
        return self.take(length)

    def text(self, limit: int) -> str:
        try:
            return str(self.part(limit), "utf-8")
        except UnicodeDecodeError as error:
            raise malformed("text that is not UTF-8") from error

    def table(self) -> pa.Table:
        return read_table(self.part(MAX_TABLE_BYTES))


def _put_statement(out: _Writer, statement: Statement) -> None:
    out.byte(_KINDS.index(statement.kind))
    out.text(statement.sql, MAX_TEXT_BYTES)
    if len(statement.constants) > MAX_CONSTANTS or len(statement.tables) > MAX_TABLES:
        raise malformed("more parts than allowed")
    out.long(len(statement.constants))
    for constant in statement.constants:
        _put_constant(out, constant)
    out.long(len(statement.tables))
    for name, table in statement.tables.items():
        out.text(name, MAX_NAME_BYTES)
        out.table(table)


def _put_constant(out: _Writer, constant: Constant) -> None:
    match constant:
        case None:
            out.byte(_NONE)
        case bool():
            out.byte(_TRUE if constant else _FALSE)
        case int():
            out.byte(_INTEGER)
            size = constant.bit_length() // 8 + 1
            out.part(constant.to_bytes(size, "big", signed=True), MAX_INTEGER_BYTES)
        case float():
            out.byte(_FLOAT)
            out.part(struct.pack(">d", constant), 8)
        case str():
            out.byte(_TEXT)
            out.text(constant, MAX_CONSTANT_BYTES)
        case bytes():
            out.byte(_BYTES)
            out.part(constant, MAX_CONSTANT_BYTES)


def _constant(reader: _Reader) -> Constant:
    tag = reader.byte()
    if tag in (_NONE, _FALSE, _TRUE):
        return (None, False, True)[tag]
    if tag == _INTEGER:
        return int.from_bytes(reader.part(MAX_INTEGER_BYTES), "big", signed=True)
    if tag == _FLOAT:
        data = reader.part(8)
        if len(data) != 8:
            raise malformed("a number of another size")
        return cast(float, struct.unpack(">d", data)[0])
    if tag == _TEXT:
        return reader.text(MAX_CONSTANT_BYTES)
    if tag == _BYTES:
        return bytes(reader.part(MAX_CONSTANT_BYTES))
    raise malformed("an unknown kind of constant")


def _statement(reader: _Reader) -> Statement:
    kind = _pick(_KINDS, reader.byte())
    sql = reader.text(MAX_TEXT_BYTES)
    constants = tuple(_constant(reader) for _ in range(reader.count(MAX_CONSTANTS)))
    count = reader.count(MAX_TABLES)
    tables = {reader.text(MAX_NAME_BYTES): reader.table() for _ in range(count)}
    if len(tables) != count:
        raise malformed("two tables of one name")
    return Statement(sql, constants, cast(Kind, kind), tables)


def _append(reader: _Reader) -> Append:
    return Append(reader.text(MAX_NAME_BYTES), reader.table())


def _control(reader: _Reader) -> Control:
    match _pick(_VERBS, reader.byte()):
        case "begin":
            return Control("begin")
        case "commit":
            return Control("commit")
        case _:
            return Control("rollback")


def _rows(reader: _Reader) -> Rows:
    return Rows(reader.table())


def _count(reader: _Reader) -> Count:
    return Count(reader.long())


def _failure(reader: _Reader) -> Failure:
    return Failure(reader.text(MAX_NAME_BYTES), reader.text(MAX_TEXT_BYTES))


def _pick(words: tuple[str, ...], index: int) -> str:
    if index >= len(words):
        raise malformed("an unknown word")
    return words[index]


_READERS: dict[int, Callable[[_Reader], Message]] = {
    _STATEMENT: _statement,
    _APPEND: _append,
    _CONTROL: _control,
    _ROWS: _rows,
    _COUNT: _count,
    _FAILURE: _failure,
}
