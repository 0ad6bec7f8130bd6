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
    start, drawn, over, lock = time.monotonic(), 0.0, False, threading.Lock()

    def draw(state: _State) -> None:
        nonlocal drawn
        now = time.monotonic()
        with lock:
            if over or now - start < _QUIET_S or now - drawn < _LEAST_INTERVAL_S:
                return
            drawn = now
            # A line that the terminal breaks could not be taken back.
            text = state(now - start)[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    try:
        yield draw
    finally:
        with lock:
            over = True
            if drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
