"""Progress bars of long works: on a terminal only, on stderr, gone when the work is done."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int | None], None]
Stages = Callable[[str, float], None]
#: Makes a state of a bar from the seconds since it began.
_State = Callable[[float], str]
_BAR_CHARACTERS = 30
_STAGE_CHARACTERS = 30
_LEAST_INTERVAL_S = 0.1
_QUIET_S = 0.5


@contextmanager
def bar(own: Progress | None = None) -> Iterator[Progress | None]:
    """For rows: the caller's own function, or a bar where stderr is a terminal, or nothing."""
    if own is not None:
        yield own
        return
    with _terminal() as draw:
        if draw is None:
            yield None
        else:
            yield lambda done, total: draw(lambda spent_s: line(done, total, spent_s))


@contextmanager
def stages(work: str) -> Iterator[Stages | None]:
    """For a work that others do, in stages, and of which other threads may tell: a bar or nothing.

    What is told is a stage's name and the share of the whole that is done.
    """
    with _terminal() as draw:
        if draw is None:
            yield None
        else:
            yield lambda stage, share: draw(lambda _: stage_line(work, stage, share))


def line(done: int, total: int | None, spent_s: float) -> str:
    """One state of a bar of rows."""
    rate = f"{done / max(spent_s, 0.001):,.0f} rows/s"
    if not total:
        return f"  {done:,} rows  {rate}"
    return f"  {_drawn(done / total)}  {done:,} of {total:,} rows  {rate}"


def stage_line(work: str, stage: str, share: float) -> str:
    """One state of a bar of stages."""
    return f"  {_drawn(share)}  {work}: {stage[:_STAGE_CHARACTERS]}"


def _drawn(share: float) -> str:
    share = min(1.0, max(0.0, share))
    full = int(share * _BAR_CHARACTERS + 1e-9)
    return "█" * full + "░" * (_BAR_CHARACTERS - full) + f" {int(share * 100 + 1e-9):3d} %"


@contextmanager
def _terminal() -> Iterator[Callable[[_State], None] | None]:
    """What draws a state in place of the last one, from any thread, or None without a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    line = _Line()
    try:
        yield line.show
    finally:
        line.clear()


class _Line:
    """A line of a terminal that shows the last state that it was given.

    A thread draws it: a state that comes too soon after another one must be seen in the end, for
    it may be the last one for long.
    """

    def __init__(self) -> None:
        """Nothing is drawn before there is a state, and before the work has lasted a while."""
        self._start = time.monotonic()
        self._state: _State | None = None
        self._drawn = False
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._paint, name="progress", daemon=True)
        self._painter.start()

    def show(self, state: _State) -> None:
        """Draw this soon, unless another one follows at once."""
        self._state = state

    def clear(self) -> None:
        """Take back what is drawn; nothing is drawn any more."""
        self._over.set()
        self._painter.join()
        if self._drawn:
            _write("")

    def _paint(self) -> None:
        last, wait_s = None, _QUIET_S
        while not self._over.wait(wait_s):
            state = self._state
            if state is not None and state is not last:
                last = state
                # A line that the terminal breaks could not be taken back.
                columns = shutil.get_terminal_size().columns - 1
                _write(state(time.monotonic() - self._start)[:columns])
                self._drawn = True
            wait_s = _LEAST_INTERVAL_S


def _write(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()
