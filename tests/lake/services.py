"""Pruning services for tests: real processes on ports of their own.

They are forked from one process that has loaded the service and nothing else of Louver, so that
each begins at once; what they have loaded at their end is what they loaded themselves.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["louver.untrusted.servers.prune"])
_WAIT_SECONDS = 120


@dataclass
class Running:
    """A service under way; after the block, what it said and how it ended."""

    url: str
    process: BaseProcess
    stderr: IO[str]
    told: str = ""
    code: int | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.code is None:
            assert self.process.pid is not None
            os.kill(self.process.pid, number)
            self.process.join(_WAIT_SECONDS)
            assert self.process.exitcode is not None, "it does not end"
            # What it says fits into a pipe.
            self.told = self.stderr.read()
            self.code = self.process.exitcode


@contextmanager
def serving(folder: Path | str, *options: str, before: str = "") -> Iterator[Running]:
    """A service of a warehouse; `before` is run in its process first."""
    words = [str(folder), "--json", "--listen", "127.0.0.1:0", *options]
    reading, writing = zip(_FORKS.Pipe(False), _FORKS.Pipe(False), strict=True)
    process = _FORKS.Process(target=_serve, args=(words, before, *writing))
    process.start()
    for each in writing:
        each.close()
    stdout, stderr = (os.fdopen(os.dup(each.fileno()), encoding="utf-8") for each in reading)
    try:
        line = stdout.readline()
        assert line, stderr.read()
        running = Running(json.loads(line)["url"], process, stderr)
        yield running
        running.end()
    finally:
        process.kill()
        process.join(_WAIT_SECONDS)
        for opened in (stdout, stderr, *reading):
            opened.close()


def _serve(words: list[str], before: str, stdout: Connection, stderr: Connection) -> None:
    """Runs the service, and says at its end which trusted modules the process had loaded."""
    os.dup2(stdout.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    from louver.untrusted.servers.prune import main

    exec(before)
    code = main(words)
    found = sorted(m for m in sys.modules if m.startswith("louver.trusted"))
    sys.stderr.write(f"trusted: {found}\n")
    sys.exit(code)


def raw(
    running: Running, method: str, path: str, body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:  # fmt: skip
    """A request as nobody's client would make it; status and JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=120)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None and "Content-Length" not in (headers or {}):
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text[:1] in b"{[" and text else {}
    finally:
        connection.close()


def chunked_put(running: Running, path: str, body: bytes) -> int:
    """The status of a PUT whose length nobody knows before."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=120) as connection:
        head = f"PUT {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + body)
        return int(connection.recv(65_536).split()[1])
