"""Messages of LISTEN and NOTIFY, as a Python program receives them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from louver import errors
from louver.trusted.executor.containment import face
from louver.trusted.executor.context import Context
from louver.trusted.executor.front import Front
from louver.trusted.executor.postgres import notify
from louver.trusted.executor.postgres.notify import Notification
from louver.trusted.planner.sql.dialect import Dialect

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.005, 0.25


@face
class Receiver:
    """The part of a connection that receives messages."""

    _session: Front
    _lock: Any
    _dialect: Dialect

    def poll(self) -> list[Notification]:
        """The messages that have arrived, without waiting for any; none within a transaction.

        Raises:
            VerificationError: one of them is not of a client of this database.
        """
        context = self._session.context
        if self._session.closed:
            raise errors.make("connection.closed")
        if not isinstance(context, Context):
            raise errors.make("sql.unsupported", statement="LISTEN")
        notify.require_language(context)
        with self._lock:
            return notify.arrived(context)

    def notifies(
        self, timeout_s: float | None = None, stop_after: int | None = None
    ) -> Iterator[Notification]:
        """Messages as they arrive, as of psycopg's method of this name.

        Args:
            timeout_s: seconds to wait at most; None for ever.
            stop_after: how many messages end the iteration, with those that came with the last.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        wait_s, count = _FIRST_WAIT_S, 0
        while True:
            batch = self.poll()
            count += len(batch)
            yield from batch
            if stop_after is not None and count >= stop_after:
                return
            now = time.monotonic()
            if end is not None and now >= end:
                return
            wait_s = _FIRST_WAIT_S if batch else min(2 * wait_s, _LONGEST_WAIT_S)
            time.sleep(wait_s if end is None else max(min(wait_s, end - now), 0))
