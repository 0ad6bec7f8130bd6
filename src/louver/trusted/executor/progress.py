"""Progress bars: drawn on stderr if it is a terminal, and erased at the end."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from louver.trusted.executor.answer import listening

#: The share of a query's work that is behind it when a step begins.
_SHARES = {
    "plan": 0.0,
    "open layers": 0.05,
    "bind": 0.1,
    "server": 0.15,
    "open": 0.6,
    "finish": 0.9,
}
Progress = Callable[[int, int | None], None]
Stages = Callable[[str, float], None]
#: Renders a state of the bar from the seconds elapsed.
_State = Callable[[float], str]
_BAR_CHARACTERS = 30
_STAGE_CHARACTERS = 30
_LEAST_INTERVAL_S = 0.1
_QUIET_S = 0.5


@contextmanager
def bar(own: Progress | None = None) -> Iterator[Progress | None]:
    """Row progress: the caller's own function, or a bar if stderr is a terminal, or None."""
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
    """Progress of remote work in stages, reported from any thread: a bar or None.

    A report is the name of a stage and the share of the whole work that is done.
    """
    with _terminal() as draw:
        if draw is None:
            yield None
        else:
            yield lambda stage, share: draw(lambda _: stage_line(work, stage, share))


@contextmanager
def steps(work: str) -> Iterator[None]:
    """The steps of a statement's clock as a bar, if stderr is a terminal."""
    with stages(work) as report:
        if report is None:
            yield
            return
        draw = report
        with listening(lambda step: draw(step, _SHARES.get(step, 0.5))):
            yield


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
    """A thread-safe function that redraws the bar, or None without a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    line = _Line()
    try:
        yield line.show
    finally:
        line.clear()


class _Line:
    """A terminal line that shows the latest state.

    A thread draws it at intervals, so that the latest state becomes visible even if no further
    state follows for a long time.
    """

    def __init__(self) -> None:
        """Start the drawing thread; it draws nothing during the first half second."""
        self._start = time.monotonic()
        self._state: _State | None = None
        self._drawn = False
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._paint, name="progress", daemon=True)
        self._painter.start()

    def show(self, state: _State) -> None:
        """Set the state to draw next."""
        self._state = state

    def clear(self) -> None:
        """Stop drawing and erase the line."""
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
                # A wrapped line could not be erased.
                columns = shutil.get_terminal_size().columns - 1
                _write(state(time.monotonic() - self._start)[:columns])
                self._drawn = True
            wait_s = _LEAST_INTERVAL_S


def _write(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()
