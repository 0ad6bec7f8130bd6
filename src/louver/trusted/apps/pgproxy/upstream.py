"""Whether the server behind the front door answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from louver import errors
from louver._rust import postgres
from louver.trusted import backends
from louver.trusted.client import connect

_FRESH_S = 1.0
_FAILURES = (
    errors.Error, OSError, postgres.ServerError, postgres.ConnectionLost, postgres.ProtocolError,
    postgres.Refused, postgres.TlsError,
)  # fmt: skip


class Upstream:
    """Asks it, with a connection of its own, at most once a second: who asks must not be able to
    load it.
    """

    def __init__(self, url: str) -> None:
        """Nothing is connected before the first question."""
        module = backends.engine(connect.scheme_of(url))
        self._connect: Callable[[], Any] = lambda: module.session_at(url)
        self._session: Any = None
        self._lock = threading.Lock()
        self._said, self._when = False, -_FRESH_S

    def __call__(self) -> bool:
        """Whether it answers."""
        with self._lock:
            if time.monotonic() - self._when >= _FRESH_S:
                # An idle connection may have been closed.
                self._said = self._answers() or self._answers()
                self._when = time.monotonic()
            return self._said

    def _answers(self) -> bool:
        try:
            if self._session is None:
                self._session = self._connect()
            self._session.run([("SELECT 1", [])])
        except _FAILURES:
            session, self._session = self._session, None
            with suppress(Exception):
                session.close()
            return False
        return True
