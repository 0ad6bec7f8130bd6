"""How long every test took, written by the one process that hears of all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

#: The environment variable that names the file.
FILE = "LOUVER_DURATIONS"


@dataclass(frozen=True, slots=True)
class Entry:
    """A step of a test: its set-up, its call or its end."""

    test: str
    seconds: float
    failed: bool

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def read(path: Path) -> Iterator[Entry]:
    """All entries; none where pytest ended before the first."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield Entry(*json.loads(line))


class Recorder:
    """A plugin of pytest; workers tell theirs to the process that started them."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - closed at the end

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._file.write(json.dumps([report.nodeid, report.duration, report.failed]) + "\n")

    def pytest_unconfigure(self) -> None:
        self._file.close()


def register(config: pytest.Config) -> None:
    """Record in the process that hears of all tests, if somebody asks for it."""
    path = os.environ.get(FILE)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path))
