"""The time that a client's statements read."""

from __future__ import annotations

from louver.trusted.apps.pgproxy import moments
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.apps.pgproxy.failures import reporting
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.executor.session import Session


class Timing:
    """The part of a client that knows of the time."""

    text: str
    hides_details: bool
    _session: Session
    _context: Context
    _wire: Wire

    def _moments(self, prepared: Prepared) -> list[object]:
        """What a statement's words of time say now."""
        return moments.values(self._context, self._wire, prepared.moments, prepared.tokens)

    @reporting
    def time_is_fixed(self) -> None:
        """The private server's time stands still for a transaction that the session does not know
        of; ``release_time`` lets it go on.
        """
        self._wire.time_is_fixed()
        self._context.state.fixed = self._context.local.generation

    @reporting
    def release_time(self) -> None:
        """A transaction that the session does not know of has ended."""
        self._context.release_time()
