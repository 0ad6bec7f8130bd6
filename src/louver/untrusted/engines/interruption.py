"""Ctrl-C while DuckDB computes.

DuckDB looks for signals between tasks of the calling thread, then waits for its other threads
without telling them to stop; a long statement runs on to its end. So here the signal handler
itself tells the connection to stop, which all of its threads obey.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


class CtrlC:
    """While inside, Ctrl-C calls `stop`; the KeyboardInterrupt follows on the way out."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._pressed = False
        self._installed = False

    def __enter__(self) -> None:
        # Only the main thread gets signals, and somebody else's handler stays in charge.
        if threading.current_thread() is threading.main_thread():
            self._installed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._installed:
            signal.signal(signal.SIGINT, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._pressed = True
        self._stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._pressed:
            raise KeyboardInterrupt from error
