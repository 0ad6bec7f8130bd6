"""Messages as they are, to and from a door."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

Message = tuple[str, bytes]
"""A message from a server: its letter and what is in it."""


def message(letter: str, *parts: bytes) -> bytes:
    """A message of a client's."""
    body = b"".join(parts)
    return letter.encode() + struct.pack(">i", len(body) + 4) + body


def text(value: str) -> bytes:
    """A text as it stands in a message."""
    return value.encode() + b"\0"


def parse(sql: str, name: str = "") -> bytes:
    """Parse, of no types."""
    return message("P", text(name), text(sql), struct.pack(">h", 0))


def bind(*values: bytes | None, portal: str = "", name: str = "") -> bytes:
    """Bind, of values in text form."""
    sent = [struct.pack(">i", -1) if v is None else struct.pack(">i", len(v)) + v for v in values]
    return message(
        "B", text(portal), text(name), struct.pack(">hh", 0, len(values)), *sent,
        struct.pack(">h", 0),
    )  # fmt: skip


def execute(most: int = 0, portal: str = "") -> bytes:
    """Execute."""
    return message("E", text(portal), struct.pack(">i", most))


def query(sql: str) -> bytes:
    """The simple protocol."""
    return message("Q", text(sql))


SYNC, FLUSH, END = message("S"), message("H"), message("X")


def startup(user: str, database: str, **more: str) -> bytes:
    """The first packet."""
    words = {"user": user, "database": database, **more}
    body = b"".join(text(word) for pair in words.items() for word in pair) + b"\0"
    return struct.pack(">ii", len(body) + 8, 196_608) + body


@dataclass
class Raw:
    """A connection that has been greeted."""

    connection: socket.socket
    held: bytes = b""
    settings: dict[str, str] = field(default_factory=dict)
    key: bytes = b""

    @classmethod
    def opened(cls, port: int, user: str, database: str, **more: str) -> Raw:
        """Say who it is, and read up to the first ReadyForQuery."""
        own = cls(socket.create_connection(("127.0.0.1", port), timeout=30))
        own.connection.sendall(startup(user, database, **more))
        own.until_ready()
        return own

    def send(self, *messages: bytes) -> None:
        """Send all of them at once."""
        self.connection.sendall(b"".join(messages))

    def next(self) -> Message:
        """The next message; an empty letter where the server has closed."""
        while len(self.held) < 5 or len(self.held) < 1 + struct.unpack(">i", self.held[1:5])[0]:
            came = self.connection.recv(1 << 16)
            if not came:
                return "", b""
            self.held += came
        end = 1 + struct.unpack(">i", self.held[1:5])[0]
        letter, body, self.held = chr(self.held[0]), self.held[5:end], self.held[end:]
        if letter == "S":
            name, value = body.split(b"\0")[:2]
            self.settings[name.decode()] = value.decode()
        if letter == "K":
            self.key = body
        return letter, body

    def until_ready(self) -> list[Message]:
        """The messages up to and with ReadyForQuery, without settings and notices."""
        results: list[Message] = []
        while not results or results[-1][0] not in ("Z", ""):
            letter, body = self.next()
            if letter not in ("S", "N"):
                results.append((letter, body))
        return results

    def letters(self, *messages: bytes) -> str:
        """The letters of what is answered, up to ReadyForQuery, whose state is the last one."""
        self.send(*messages)
        return "".join(m[0] if m[0] != "Z" else "Z" + m[1].decode() for m in self.until_ready())

    def close(self) -> None:
        """Go without a word."""
        self.connection.close()


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def rows(messages: list[Message]) -> list[tuple[bytes | None, ...]]:
    """The rows among messages."""
    results = []
    for letter, body in messages:
        if letter != "D":
            continue
        count, at = struct.unpack(">h", body[:2])[0], 2
        values: list[bytes | None] = []
        for _ in range(count):
            (length,) = struct.unpack(">i", body[at : at + 4])
            at += 4
            values.append(None if length < 0 else body[at : at + max(length, 0)])
            at += max(length, 0)
        results.append(tuple(values))
    return results
