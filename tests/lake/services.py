"""Pruning services for tests: real processes on ports of their own."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sources import ROOT

#: Runs the service, and says at its end which trusted modules the process had loaded.
SCRIPT = """
import sys
from louver.untrusted.servers.prune import main
{before}
code = main()
found = sorted(m for m in sys.modules if m.startswith("louver.trusted"))
sys.stderr.write(f"trusted: {{found}}\\n")
sys.exit(code)
"""


@dataclass
class Running:
    """A service under way; after the block, what it said and how it ended."""

    url: str
    process: subprocess.Popen[str]
    output: str = ""
    code: int | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.code is None:
            self.process.send_signal(number)
            _, self.output = self.process.communicate(timeout=120)
            self.code = self.process.returncode


@contextmanager
def serving(folder: Path | str, *options: str, before: str = "") -> Iterator[Running]:
    """A service of a warehouse; `before` is run in its process first."""
    command = [sys.executable, "-c", SCRIPT.format(before=before), str(folder), "--json"]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=30)[1]
        running = Running(json.loads(line)["url"], process)
        yield running
        running.end()
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=30)


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
