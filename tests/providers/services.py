"""Providers for tests: real processes on ports of their own."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from louver.untrusted.engines.providers import Channel
from louver.wire import question_codec as codec
from louver.wire import questions as q
from tests.sources import ROOT

#: Runs the provider, and says at its end which trusted modules the process had loaded.
SCRIPT = """
import sys
{before}
from louver.untrusted.servers.provider import main
code = main()
found = sorted(m for m in sys.modules if m.startswith("louver.trusted"))
sys.stderr.write(f"trusted: {{found}}\\n")
sys.exit(code)
"""
#: The provider's core is replaced by the one of tests.providers.echo.
FAKE = """
from tests.providers import echo
sys.modules["louver.untrusted.providers.provider"] = echo
"""


@dataclass
class Running:
    """A provider under way; after the block, what it said and how it ended."""

    process: subprocess.Popen[str]
    address: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    output: str = ""
    code: int | None = None
    _lines: queue.Queue[str] = field(default_factory=queue.Queue)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def channel(self, **given: Any) -> Channel:
        return Channel(self.address, **given)

    def event(self, name: str, seconds: float = 120) -> dict[str, Any]:
        """The next event of that name, or the next failure."""
        while True:
            line = self._lines.get(timeout=seconds)
            assert line, f"it ended: {self.events} {self._rest()}"
            event = json.loads(line)
            self.events.append(event)
            if event.get("event") == name or not event["ok"]:
                return dict(event)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.code is None:
            self.process.send_signal(number)
            self.output = self._rest()
            self.code = self.process.returncode

    def _rest(self) -> str:
        self.process.wait(timeout=120)
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line)
        self._lines.put("")


class Held:
    """Work that begins, and ends when the test lets it: no test needs to guess how long that is.

    What is held must be let go before the provider ends, except preparations nobody waits for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    @property
    def source(self) -> str:
        """The source of a shape whose preparation is held."""
        return f"hold:{self._folder}"

    @property
    def share(self) -> bytes:
        """A share whose answer is held."""
        return self.source.encode()

    def has_begun(self) -> bool:
        """Whether something of it is under way, or was."""
        return any(self._folder.glob("begun-*"))

    def begun(self) -> None:
        """Wait until it has begun."""
        until(self.has_begun)

    def let_go(self) -> None:
        """All may end."""
        (self._folder / "go").touch()


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait for something that happens in the end; the time bounds a test that fails."""
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.02)


@contextmanager
def starting(
    *options: str, fake: bool = True, env: dict[str, str] | None = None, before: str = ""
) -> Iterator[Running]:
    """A provider that may not have loaded its data yet."""
    script = SCRIPT.format(before=(FAKE if fake else "") + before)
    process = subprocess.Popen(
        [sys.executable, "-c", script, "--json", "--listen", "127.0.0.1:0", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    running = Running(process)
    threading.Thread(target=running._read, daemon=True).start()
    try:
        yield running
        running.end()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=30)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def serving(data: Path | str, *options: str, **given: Any) -> Iterator[Running]:
    """A provider that listens."""
    with starting(f"--data={data}", *options, **given) as running:
        said = running.event("listening")
        assert said["ok"], said
        running.address = said["address"]
        yield running


def write(path: Path, rows: int, first: int = 0) -> Path:
    """A table of so many rows, put into its place at once."""
    return replaced(path, f"SELECT {first} + i AS a FROM range({rows}) r(i)")


def replaced(path: Path, query: str) -> Path:
    """A table, put into its place at once."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".new")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{beside}' (FORMAT parquet)")
    os.replace(beside, path)
    return path


SHAPE = q.Shape(q.Protocol.SELECT, "t", equal=("a",), partials=(q.Partial("count"),))


def ask_of(prepared: q.Prepared, *shares: bytes, step: int = 0) -> q.Ask:
    """Shares for the core that echoes."""
    return q.Ask(os.urandom(16), prepared.version, prepared.shape_id, step, shares)


def prepared(channel: Channel, shape: q.Shape = SHAPE) -> q.Prepared:
    """A shape prepared on the newest version."""
    return channel.prepare(shape, channel.describe().versions[0])


__all__ = [
    "FAKE", "SHAPE", "Held", "Running", "ask_of", "codec", "prepared", "serving", "starting",
    "until", "write",
]  # fmt: skip
