"""Interruption of work by another thread: loads, preparations, evaluations."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from louver import errors
from louver.untrusted.providers.native import new_stop

#: The interval at which it is checked whether a statement is to end.
_LOOK_SECONDS = 0.05


class Interruption:
    """Ends all work that it is passed to, now and later."""

    def __init__(self) -> None:
        """Initially no work is to end."""
        self._ended = threading.Event()
        #: The flag that compiled evaluations check.
        self.stop = new_stop()

    @property
    def over(self) -> bool:
        """Whether the work is to end."""
        return self._ended.is_set()

    def check(self) -> None:
        """Raise `interrupted` if the work is to end."""
        if self.over:
            raise errors.make("interrupted")

    def end(self) -> None:
        """Have the work end soon; what it wrote is removed."""
        self._ended.set()
        self.stop.set()

    @contextmanager
    def watching(
        self, connection: duckdb.DuckDBPyConnection, seconds: float | None = None
    ) -> Iterator[threading.Event]:
        """Interrupt the statements of a connection once they are to end.

        Args:
            connection: not interrupted by others; open until the end.
            seconds: the time limit; none by default.

        Yields:
            An event that is set when the time is up.
        """
        expired, done = threading.Event(), threading.Event()
        last = None if seconds is None else time.monotonic() + seconds

        def look() -> None:
            while not done.wait(_LOOK_SECONDS):
                if last is not None and time.monotonic() >= last:
                    expired.set()
                if expired.is_set() or self.over:
                    # Repeatedly: DuckDB forgets an interrupt between two statements.
                    connection.interrupt()

        thread = threading.Thread(target=look, name="interruption", daemon=True)
        thread.start()
        try:
            self.check()
            yield expired
        finally:
            done.set()
            thread.join()
