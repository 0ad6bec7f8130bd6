"""A relay between a door and its server, which keeps every byte that crosses.

What crossed can be compared with what crossed elsewhere: bytes are cut into messages, and what is
random by design is masked by a number, the same one wherever it comes again. That are pseudonyms,
names of databases and statements, numbers of tables, ciphertexts (of which the length stays), and
the order of tags of keys in a list, which is that of their bytes.
"""

from __future__ import annotations

import re
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.postgres import servers
from tests.worlds.crossing import key_lists, masked_constants

_ENCRYPTIONS = (80_877_103, 80_877_104)
_CHUNK = 1 << 16
_RANDOM = re.compile(
    r"(?<![0-9a-z])([a-z]_)?("
    r"(?<=_)[0-9a-f]{12}|[a-z]?[0-9a-f]{16,}|louver_\d+|door_\d+_\d+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}"
    r")(?![0-9a-z])"
)
#: Numbers of rows: an epoch, and a count. Rows that come together get theirs in random order.
_ROW_NUMBERS = range(1 << 32, 1 << 48)
_FIRST_OWN = 16_384
#: What says how many bytes follow, whatever they are.
_ONLY_LENGTHS = "dpRK"


@dataclass
class Crossed:
    """One connection: the bytes of each direction."""

    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)


class Relay:
    """Listens where a server of PostgreSQL's would, and hands on to the shared server."""

    def __init__(self) -> None:
        self.connections = list[Crossed]()
        self._server = str(servers.shared().folder / f".s.PGSQL.{servers.PORT}")
        self._folder = Path(tempfile.mkdtemp(prefix="relay"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / f".s.PGSQL.{servers.PORT}"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        """The URL of a database of the shared server's, through this."""
        url = servers.database_url(database)
        return url.replace(str(servers.shared().folder), str(self._folder))

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def lengths(self) -> list[tuple[int, int]]:
        """How much has crossed on each connection."""
        return [(len(c.sent), len(c.received)) for c in list(self.connections)]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server, crossed = socket.socket(socket.AF_UNIX), Crossed()
            server.connect(self._server)
            self.connections.append(crossed)
            for pair in ((client, server, crossed.sent), (server, client, crossed.received)):
                threading.Thread(target=_hand_on, args=pair, daemon=True).start()


def _hand_on(source: socket.socket, target: socket.socket, buffer: bytearray) -> None:
    try:
        while data := source.recv(_CHUNK):
            buffer += data
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


class Reader:
    """Reads what crossed in one world; it numbers what is random as it comes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, Any], int] = {}

    def messages(self, crossed: Crossed) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """The messages of a connection that the server was sent, and those that it sent, each
        behind the position of its first byte.
        """
        statements: dict[str, str] = {}
        sent = list[tuple[int, Any]]()
        received = list[tuple[int, Any]]()
        start, encryptions = _begun(crossed.sent)
        for at, letter, body in _cut(crossed.sent, start):
            sent.append((at, self._sent(letter, body, statements)))
        for at, letter, body in _cut(crossed.received, encryptions):
            received.append((at, self._received(letter, body)))
        return sent, received

    def _number(self, kind: str, item: Any) -> int:
        return self._numbers.setdefault((kind, item), len(self._numbers))

    def _text(self, text: str) -> str:
        return _RANDOM.sub(lambda m: f"{m[1] or ''}#{self._number('name', m[2])}", text)

    def _name(self, name: str) -> str:
        return name and f"#{self._number('name', name)}"

    def _type(self, number: int) -> Any:
        return number if number < _FIRST_OWN else f"#{self._number('oid', number)}"

    def _sent(self, letter: str, body: bytes, statements: dict[str, str]) -> Any:
        if letter == "Q":
            return letter, self._text(_string(body, 0)[0])
        if letter == "P":
            name, at = _string(body, 0)
            sql, at = _string(body, at)
            statements[name] = sql
            types = struct.unpack_from(f">{(len(body) - at - 2) // 4}I", body, at + 2)
            return letter, self._name(name), self._text(sql), [self._type(t) for t in types]
        if letter == "B":
            return self._bound(body, statements)
        if letter in "CDE":
            kind, at = ("", 0) if letter == "E" else (chr(body[0]), 1)
            name, at = _string(body, at)
            return letter, kind, self._name(name), body[at:]
        return letter, len(body)

    def _bound(self, body: bytes, statements: dict[str, str]) -> Any:
        portal, at = _string(body, 0)
        name, at = _string(body, at)
        formats, at = _halves(body, at)
        values, at = _values(body, at)
        results, _ = _halves(body, at)
        sql = statements.get(name, "")
        secret = masked_constants(sql)
        # Tags in a list are sent in the order of their bytes.
        lists = [set(numbers) for numbers in key_lists(sql)]
        shown = [
            len(value) if value is not None and any(number in some for some in lists)
            else self._value(value, number in secret)
            for number, value in enumerate(values, 1)
        ]  # fmt: skip
        return "B", self._name(portal), self._name(name), formats, shown, results

    def _value(self, value: bytes | None, is_secret: bool) -> Any:
        if value is None:
            return None
        if len(value) > 8:
            text = value.decode("latin-1")
            # Ciphertext of so many bytes is not printable.
            printed = self._text(text) if text.isascii() and text.isprintable() else ""
            return len(value), printed or self._number("value", value)
        if is_secret:
            # Of few bytes, two may be the same by chance.
            return len(value)
        if len(value) == 8 and int.from_bytes(value, "big") in _ROW_NUMBERS:
            return "row", self._number("row", value)
        return value

    def _received(self, letter: str, body: bytes) -> Any:
        if letter in _ONLY_LENGTHS:
            return letter, len(body)
        if letter == "D":
            return letter, [None if v is None else len(v) for v in _values(body, 0)[0]]
        if letter == "T":
            return letter, list(self._fields(body))
        if letter == "t":
            types = struct.unpack_from(f">{(len(body) - 2) // 4}I", body, 2)
            return letter, [self._type(t) for t in types]
        if letter in "EN":
            parts = [part.decode() for part in body.split(b"\0") if part]
            return letter, [self._text(part) for part in parts if part[0] in "SCM"]
        return letter, self._text(body.decode("latin-1"))

    def _fields(self, body: bytes) -> Iterator[Any]:
        at = 2
        while at < len(body):
            name, at = _string(body, at)
            table, column, type_, *rest = struct.unpack_from(">IhIhih", body, at)
            yield self._text(name), self._type(table), column, self._type(type_), *rest
            at += 18


def in_any_order(messages: list[tuple[int, Any]]) -> list[Any]:
    """Messages, of which neighbouring rows are in the order of their lengths: which row comes first
    where none is asked for depends on hashes of ciphertext.
    """
    results, rows = list[Any](), list[Any]()
    for _, message in [*messages, (0, ("", ""))]:
        if message[0] == "D":
            rows.append(message)
            continue
        results += sorted(rows, key=repr)
        results.append(message)
        rows = []
    return results[:-1]


def _begun(data: bytearray) -> tuple[int, int]:
    at = encryptions = 0
    while True:
        length, code = struct.unpack_from(">iI", data, at)
        at += length
        if code not in _ENCRYPTIONS:
            return at, encryptions
        encryptions += 1


def _cut(data: bytearray, at: int) -> Iterator[tuple[int, str, bytes]]:
    while at + 5 <= len(data):
        end = at + 1 + struct.unpack_from(">i", data, at + 1)[0]
        yield at, chr(data[at]), bytes(data[at + 5 : end])
        at = end


def _string(body: bytes, at: int) -> tuple[str, int]:
    end = body.index(b"\0", at)
    return body[at:end].decode(), end + 1


def _halves(body: bytes, at: int) -> tuple[list[int], int]:
    (count,) = struct.unpack_from(">h", body, at)
    return list(struct.unpack_from(f">{count}h", body, at + 2)), at + 2 + 2 * count


def _values(body: bytes, at: int) -> tuple[list[bytes | None], int]:
    (count,) = struct.unpack_from(">H", body, at)
    at += 2
    values = list[bytes | None]()
    for _ in range(count):
        (length,) = struct.unpack_from(">i", body, at)
        at += 4
        values.append(None if length < 0 else body[at : at + length])
        at += max(length, 0)
    return values, at
