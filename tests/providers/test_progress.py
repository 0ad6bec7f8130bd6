"""What a client shows while providers prepare, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from louver import errors
from louver.trusted.executor import progress
from louver.trusted.executor.private.fleet import Fleet
from louver.wire.questions import Dataset, Prepared, Shape
from tests.providers.echo import CODES
from tests.providers.services import SHAPE, replaced, serving, until
from tests.sources import ROOT

#: Every preparation lasts until a file lets it end, and leaves one where it was not waited for.
SLOW = """
import os, pathlib, time
from louver.untrusted.providers import preparing
def slow(*given, then=preparing.prepare):
    try:
        while not pathlib.Path(os.environ["GO"]).exists():
            given[-1]("dawdling", 0.1)
            time.sleep(0.05)
    except Exception:
        pathlib.Path(os.environ["ENDED"]).touch()
        raise
    return then(*given)
preparing.prepare = slow
"""
QUESTION = "SELECT count(*) FROM cities WHERE name = PRIVATE('Oslo')"
CLEARED = "\r\x1b[K"


class _Behind:
    """A provider that tells what it is given to tell, and then has prepared."""

    traffic = None

    def __init__(self, number: int, events: list[tuple[str, float]]) -> None:
        self.address, self._told = f"p{number}", events
        self._dataset = Dataset(bytes([number]) * 16, (b"v" * 32,), ())

    def describe(self) -> Dataset:
        return self._dataset

    def prepare(self, shape: Shape, version: bytes, report: Any = None) -> Prepared:
        for stage, share in self._told:
            report(stage, share)
        return Prepared(version, bytes(32), bytes(32), CODES, (), (), 1)

    def close(self) -> None:
        pass


def test_the_slowest_provider_is_told_of() -> None:
    fleet = Fleet([cast(Any, _Behind(0, [("fast", 0.9)])), cast(Any, _Behind(1, [("slow", 0.2)]))])
    heard: list[tuple[str, float]] = []
    fleet.prepared(SHAPE, lambda *state: heard.append(state))
    fleet.close()
    shares = [share for _, share in heard]
    assert shares == sorted(shares), "it goes back"
    assert ("slow", 0.2) in heard
    assert heard[-1][1] == 1.0


def test_codes_of_another_question_are_refused() -> None:
    fleet = Fleet([cast(Any, _Behind(number, [])) for number in range(2)])
    for changed in ({"equal": (*SHAPE.equal, "more")}, {"interval": "SHAPE has none"}):
        with pytest.raises(errors.Error) as refused:
            fleet.prepared(replace(SHAPE, **cast(Any, changed)))
        assert refused.value.code == "provider.reply"
    fleet.close()


def test_nothing_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.stages("they prepare") as events:
        assert events is None
    assert capsys.readouterr().err == ""


def test_a_bar_of_stages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr(progress, "_QUIET_S", 1e6)
    with progress.stages("they prepare") as events:
        assert events is not None
        events("early", 0.1)
    assert capsys.readouterr().err == "", "what is quick shows nothing"
    monkeypatch.setattr(progress, "_QUIET_S", 0.0)
    drawn = ""

    def shows(text: str) -> bool:
        nonlocal drawn
        drawn += capsys.readouterr().err
        return text in drawn

    with progress.stages("they prepare") as events:
        assert events is not None
        other = threading.Thread(target=events, args=("grouping " * 10, 0.29))
        other.start()
        other.join()
        until(lambda: shows("29 %  they prepare: grouping"))
        assert drawn.startswith(CLEARED + "  ████████░")
        assert len(drawn) - len(CLEARED) < 70, "a line is not broken"
        events("levels", 0.5)
        events("records", 0.6)
        # However soon it came after another one: it may be the last one for long.
        until(lambda: shows("60 %  they prepare: records"))
    drawn = ""
    assert shows(CLEARED)
    events("late", 1.0)
    assert capsys.readouterr().err == "", "a thread that is late draws no more"


@contextmanager
def _asking(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A client on a terminal of its own, which asks providers that take their time."""
    data = replaced(folder / "cities.parquet", "SELECT 'Oslo' AS name")
    slow: list[dict[str, Any]] = [
        {
            "fake": False,
            "before": SLOW,
            "env": {"GO": str(folder / "go"), "ENDED": str(folder / name)},
        }
        for name in ("first", "second")
    ]
    with serving(data, **slow[0]) as first, serving(data, **slow[1]) as second:
        master, terminal = pty.openpty()
        client = subprocess.Popen(
            [sys.executable, "-m", "louver.trusted.apps.cli", "-u",
             f"providers://{first.address},{second.address}", "sql", QUESTION],
            stdin=terminal, stdout=terminal, stderr=terminal, cwd=ROOT, start_new_session=True,
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
        os.close(terminal)
        try:
            yield client, master
        finally:
            client.kill()
            client.wait()
            os.close(master)


def _shown(terminal: int, word: str = "", seconds: float = 250) -> str:
    """What a terminal shows until a word stands there, or until its end."""
    output, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline and not (word and word in output.decode(errors="replace")):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # Linux, for the end of a terminal
                break
            output += part
    return output.decode(errors="replace")


def test_a_preparation_is_seen_on_a_terminal(tmp_path: Path) -> None:
    with _asking(tmp_path) as (client, terminal):
        output = _shown(terminal, word="dawdling")
        (tmp_path / "go").touch()
        output += _shown(terminal)
        assert client.wait(120) == 0, output
    assert "%  the providers prepare: dawdling" in output
    assert CLEARED + "┌" in output, "the bar goes before the answer comes"
    assert not (tmp_path / "first").exists()


def test_ctrl_c_ends_a_preparation_at_home_and_at_the_providers(tmp_path: Path) -> None:
    with _asking(tmp_path) as (client, terminal):
        _shown(terminal, word="dawdling")
        client.send_signal(signal.SIGINT)
        output = _shown(terminal)
        assert client.wait(120) == 130, output
        assert CLEARED in output
        assert output.splitlines()[-1] == "louver: interrupted"
        assert "Traceback" not in output
        until(lambda: all((tmp_path / name).exists() for name in ("first", "second")))
