"""The peer: plaintext DuckDB behind a socket, which is told every secret.

`python -m bench.splinter.plain TABLE FILE THREADS` holds the file's rows in memory and prints its
port. A question is a length and JSON, an answer a length and an Arrow stream.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bench.machine import ROOT

HEAD = struct.Struct("<I")


class Plain:
    """The process, from outside."""

    def __init__(self, table: str, file: Path, threads: int = 1) -> None:
        """Return when it is ready to answer."""
        command = [sys.executable, "-m", "bench.splinter.plain", table, str(file), str(threads)]
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

    def ask(self, sql: str, parameters: tuple[Any, ...]) -> pa.Table:
        """One round trip."""
        _send(self._socket, json.dumps([sql, list(parameters)]).encode())
        return pa.ipc.open_stream(_receive(self._socket)).read_all()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def main() -> None:
    """Answer one client after the other until a signal ends this process."""
    table, file, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    con = duckdb.connect(config={"threads": threads})
    con.execute(f"CREATE TABLE {table} AS FROM '{file}'")
    door = socket.create_server(("127.0.0.1", 0))
    print(door.getsockname()[1], flush=True)
    while True:
        client, _ = door.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while asked := _receive(client):
            sql, parameters = json.loads(asked)
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
