"""Encoding of messages: a version byte, a kind, and parts with length prefixes.

Every length is bounded before anything is allocated, so arbitrary bytes either are a message or
raise `wire.format`. Tables are encoded as Arrow IPC streams.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import cast

import pyarrow as pa

from louver.wire.arrow import read_table
from louver.wire.binary import Reader, Writer, malformed
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
MAX_COUNT = (1 << 64) - 1

_STATEMENT, _APPEND, _CONTROL, _ROWS, _COUNT, _FAILURE = range(1, 7)
_NONE, _FALSE, _TRUE, _INTEGER, _FLOAT, _TEXT, _BYTES = range(7)
_KINDS: tuple[Kind, ...] = ("query", "write", "ddl")
_VERBS = ("begin", "commit", "rollback")


def encode(message: Message) -> bytes:
    """A message as bytes."""
    out = Writer()
    out.byte(VERSION)
    match message:
        case Statement():
            out.byte(_STATEMENT)
            _put_statement(out, message)
        case Append(table, rows):
            out.byte(_APPEND)
            out.text(table, MAX_NAME_BYTES, lead=8)
            _put_table(out, rows)
        case Control(verb):
            out.byte(_CONTROL)
            out.byte(_VERBS.index(verb))
        case Rows(table):
            out.byte(_ROWS)
            _put_table(out, table)
        case Count(rows):
            out.byte(_COUNT)
            out.long(rows)
        case Failure(code, text):
            out.byte(_FAILURE)
            out.text(code, MAX_NAME_BYTES, lead=8)
            out.text(text, MAX_TEXT_BYTES, lead=8)
    return out.finish()


def decode(data: bytes) -> Message:
    """The message of `encode`; `wire.format` for any other bytes."""
    reader = Reader(data)
    if reader.byte() != VERSION:
        raise malformed("another version")
    read = _READERS.get(reader.byte())
    if read is None:
        raise malformed("an unknown kind of message")
    message = read(reader)
    reader.end()
    return message


def _put_table(out: Writer, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    out.part(memoryview(sink.getvalue()), MAX_TABLE_BYTES)


def _table(reader: Reader) -> pa.Table:
    return read_table(reader.part(MAX_TABLE_BYTES))


def _put_statement(out: Writer, statement: Statement) -> None:
    out.byte(_KINDS.index(statement.kind))
    out.text(statement.sql, MAX_TEXT_BYTES, lead=8)
    if len(statement.constants) > MAX_CONSTANTS or len(statement.tables) > MAX_TABLES:
        raise malformed("more parts than allowed")
    out.long(len(statement.constants))
    for constant in statement.constants:
        _put_constant(out, constant)
    out.long(len(statement.tables))
    for name, table in statement.tables.items():
        out.text(name, MAX_NAME_BYTES, lead=8)
        _put_table(out, table)


def _put_constant(out: Writer, constant: Constant) -> None:
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
            out.text(constant, MAX_CONSTANT_BYTES, lead=8)
        case bytes():
            out.byte(_BYTES)
            out.part(constant, MAX_CONSTANT_BYTES)


def _constant(reader: Reader) -> Constant:
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
        return reader.text(MAX_CONSTANT_BYTES, lead=8)
    if tag == _BYTES:
        return bytes(reader.part(MAX_CONSTANT_BYTES))
    raise malformed("an unknown kind of constant")


def _statement(reader: Reader) -> Statement:
    kind = _pick(_KINDS, reader.byte())
    sql = reader.text(MAX_TEXT_BYTES, lead=8)
    constants = tuple(_constant(reader) for _ in range(reader.count(MAX_CONSTANTS, lead=8)))
    count = reader.count(MAX_TABLES, lead=8)
    tables = {reader.text(MAX_NAME_BYTES, lead=8): _table(reader) for _ in range(count)}
    if len(tables) != count:
        raise malformed("two tables of one name")
    return Statement(sql, constants, cast(Kind, kind), tables)


def _append(reader: Reader) -> Append:
    return Append(reader.text(MAX_NAME_BYTES, lead=8), _table(reader))


def _control(reader: Reader) -> Control:
    match _pick(_VERBS, reader.byte()):
        case "begin":
            return Control("begin")
        case "commit":
            return Control("commit")
        case _:
            return Control("rollback")


def _rows(reader: Reader) -> Rows:
    return Rows(_table(reader))


def _count(reader: Reader) -> Count:
    return Count(reader.long(MAX_COUNT))


def _failure(reader: Reader) -> Failure:
    return Failure(reader.text(MAX_NAME_BYTES, lead=8), reader.text(MAX_TEXT_BYTES, lead=8))


def _pick(words: tuple[str, ...], index: int) -> str:
    if index >= len(words):
        raise malformed("an unknown word")
    return words[index]


_READERS: dict[int, Callable[[Reader], Message]] = {
    _STATEMENT: _statement,
    _APPEND: _append,
    _CONTROL: _control,
    _ROWS: _rows,
    _COUNT: _count,
    _FAILURE: _failure,
}
