"""Savepoints of a server's transaction, the isolation and the locks that it begins with.

They have numbers: a name of the user's would be read by the server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from louver.untrusted.engines.postgres.pipeline import Reply, Waiting

if TYPE_CHECKING:
    from louver._rust import postgres


class Nested(ABC):
    """The part of an engine that is `louver.untrusted.engines.engine.Nesting`."""

    _serializable: bool
    _defines: bool
    _begun: bool
    #: whether the next statement ends the transaction, and begins another one
    _ends: bool
    _waiting: list[Waiting]
    #: LOCK TABLE statements that each transaction begins with
    _locks: Sequence[str] = ()

    @abstractmethod
    def _send(self, sql: str, bound: Sequence[Any], *, writes: bool) -> Reply:
        """Send a statement with what waits before it."""

    @abstractmethod
    def _settle(self) -> None:
        """Bring an unfinished stream to safety."""

    @abstractmethod
    def _enter(self) -> None:
        """Open the transaction now."""

    @abstractmethod
    def _live(self, *, within: bool = False) -> postgres.Session:
        """The session."""

    def lock(self, texts: Sequence[str]) -> None:
        """See `Sharing`."""
        self._locks = list(texts)

    def entered(self) -> postgres.Session:
        """See `Sharing`."""
        self._settle()
        self._enter()
        return self._live(within=True)

    def serialize(self) -> None:
        """See `Nesting`."""
        self._serializable = True

    def begin_anew(self) -> None:
        """See `Nesting`; it goes with the next statement."""
        self._settle()
        self._waiting.clear()
        self._defines = False
        self._ends = self._begun

    def add_savepoint(self, number: int) -> None:
        """See `Nesting`."""
        self._send(f"SAVEPOINT louver_{number}", (), writes=False)

    def undo_to_savepoint(self, number: int) -> None:
        """See `Nesting`; what waits came after it. A lock that went with it is taken again."""
        self._waiting.clear()
        self._defines = False
        self._send(f"ROLLBACK TO SAVEPOINT louver_{number}", (), writes=False)

    def release_savepoint(self, number: int) -> None:
        """See `Nesting`."""
        self._send(f"RELEASE SAVEPOINT louver_{number}", (), writes=False)
