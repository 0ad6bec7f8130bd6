"""The peer: plaintext DuckDB behind a socket, which is told every secret.

`python -m bench.splinter.plain THREADS FILE …` holds the files' rows in memory, as tables named
after them, and prints its port. A question is a length and JSON, an answer a length and an Arrow
stream.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bench.machine import ROOT

HEAD = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Answer:
    """An Arrow table, as rows when they are wanted."""

    table: pa.Table

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows."""
        columns = [column.to_pylist() for column in self.table.columns]
        return list(zip(*columns, strict=True))


class Plain:
    """The process, from outside."""

    def __init__(self, files: list[Path], threads: int = 1) -> None:
        """Return when it is ready to answer."""
        command = [sys.executable, "-m", "bench.splinter.plain", str(threads), *map(str, files)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.address = f"127.0.0.1:{int(self._process.stdout.readline())}"
        self.pid = self._process.pid

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)


class Asker:
    """A client of it, over any address that leads there."""

    def __init__(self, address: str) -> None:
        """Connect."""
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def execute(self, sql: str, parameters: list[Any]) -> Answer:
        """One round trip."""
        _send(self._socket, json.dumps([sql, parameters]).encode())
        return Answer(pa.ipc.open_stream(_receive(self._socket)).read_all())

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def main() -> None:
    """Answer one client after the other until a signal ends this process."""
    con = duckdb.connect(config={"threads": int(sys.argv[1])})
    for file in map(Path, sys.argv[2:]):
        con.execute(f"CREATE TABLE {file.stem} AS FROM '{file}'")
    door = socket.create_server(("127.0.0.1", 0))
    print(door.getsockname()[1], flush=True)
    while True:
        client, _ = door.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while questions := _receive(client):
            sql, parameters = json.loads(questions)
            answer = con.execute(sql, parameters).to_arrow_table()
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, answer.schema) as writer:
                writer.write_table(answer)
            _send(client, sink.getvalue().to_pybytes())


def _send(to: socket.socket, data: bytes) -> None:
    to.sendall(HEAD.pack(len(data)) + data)


def _receive(source: socket.socket) -> bytes:
    """The next message; nothing when the other side has hung up."""
    head = _exactly(source, HEAD.size)
    return _exactly(source, HEAD.unpack(head)[0]) if head else b""


def _exactly(source: socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = source.recv(min(count, 1 << 18))
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main()
