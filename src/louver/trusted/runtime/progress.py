"""The progress bar of a load: on a terminal only, on stderr, gone when the load is done."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int | None], None]
_BAR_CHARACTERS = 30
_LEAST_INTERVAL_S = 0.1
_QUIET_S = 0.5


@contextmanager
def bar(own: Progress | None = None) -> Iterator[Progress | None]:
    """The caller's own function, or a bar where stderr is a terminal, or nothing."""
    if own is not None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield own
        return
    start = time.monotonic()
    drawn = 0.0

    def draw(done: int, total: int | None) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - start < _QUIET_S or now - drawn < _LEAST_INTERVAL_S:
            return
        drawn = now
        sys.stderr.write(f"\r\x1b[K{line(done, total, now - start)}")
        sys.stderr.flush()

    try:
        yield draw
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line(done: int, total: int | None, spent_s: float) -> str:
    """One state of the bar."""
    rate = f"{done / max(spent_s, 0.001):,.0f} rows/s"
    if not total:
        return f"  {done:,} rows  {rate}"
    full = min(_BAR_CHARACTERS, done * _BAR_CHARACTERS // total)
    drawn = "█" * full + "░" * (_BAR_CHARACTERS - full)
    return f"  {drawn} {min(100, done * 100 // total):3d} %  {done:,} of {total:,} rows  {rate}"
