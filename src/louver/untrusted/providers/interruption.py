"""How one thread ends the work of others: loads, preparations, evaluations."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from louver import errors
from louver.untrusted.providers.native import new_stop

#: So often somebody looks whether a statement is to end.
_LOOK_SECONDS = 0.05


class Interruption:
    """Ends whatever work it was given to, now and later."""

    def __init__(self) -> None:
        """Nothing is to end."""
        self._ended = threading.Event()
        #: What compiled evaluations look at.
        self.stop = new_stop()

    @property
    def over(self) -> bool:
        """Whether the work is to end."""
        return self._ended.is_set()

    def check(self) -> None:
        """`interrupted` when the work is to end."""
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
            connection: nobody else interrupts it; it is open until the end.
            seconds: how long the work may take; for ever by default.

        Yields:
            What is set when the time is up.
        """
        expired, done = threading.Event(), threading.Event()
        last = None if seconds is None else time.monotonic() + seconds

        def look() -> None:
            while not done.wait(_LOOK_SECONDS):
                if last is not None and time.monotonic() >= last:
                    expired.set()
                if expired.is_set() or self.over:
                    # Again and again: DuckDB forgets it between two statements.
                    connection.interrupt()

        thread = threading.Thread(target=look, name="interruption", daemon=True)
        thread.start()
        try:
            self.check()
            yield expired
        finally:
            done.set()
            thread.join()
