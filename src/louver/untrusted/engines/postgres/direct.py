"""Statements that are sent on a session of the server without its engine: by the front door, which
does not enter Python for those that it knows. The engine says what goes before them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from louver._rust import postgres
from louver._rust.postgres import SealedRow
from louver._rust.proxy import Write
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.engines.postgres.pipeline import Step, Waiting, entered, guarded
from louver.untrusted.engines.postgres.portal import PortalStream
from louver.wire.messages import Statement

_FOLLOWING = "BEGIN ISOLATION LEVEL READ COMMITTED"


class Direct(ABC):
    """The part of an engine that says how."""

    address: str
    in_transaction: bool
    _read_only: bool
    _session: postgres.Session | None
    _stream: PortalStream | None
    _waiting: list[Waiting]

    @abstractmethod
    def _text(self, statement: Statement) -> Step:
        """A statement as it is sent."""

    @abstractmethod
    def _limits_within(self) -> list[Step]:
        """What a transaction begins with."""

    @abstractmethod
    def _limits_outside(self) -> list[Step]:
        """What goes before a statement outside of a transaction."""

    @abstractmethod
    def _limits_alone(self) -> list[tuple[str, str]] | None:
        """The limits that a transaction begins with, if its first statement can set them."""

    @property
    def session(self) -> postgres.Session | None:
        """The session that is open."""
        return self._session

    def direct(
        self, guard: Statement, outcome: int
    ) -> tuple[postgres.Session, str, Sequence[Any]] | None:
        """The session, and a statement that fails unless ``guard`` has this outcome, for queries;
        None where something of the engine is to go before.
        """
        session = None if self._limits_outside() else self._ready
        if session is None:
            return None
        return session, *guarded(*self._text(guard), outcome, writes=False)

    def direct_begin(self) -> tuple[postgres.Session, list[Step]] | None:
        """The session, and what begins a transaction in which each statement sees what was
        committed before it: it needs no gate, since no snapshot is older than a statement. None
        where something of the engine is to go before.
        """
        session = self._ready
        if session is None:
            return None
        begin = _FOLLOWING + " READ ONLY" * self._read_only
        return session, [(begin, []), *self._limits_within()]

    def direct_change(
        self, guard: Statement, outcome: int
    ) -> tuple[postgres.Session, list[Step], Step | None] | None:
        """The same of a transaction that changes rows: the last statement fails unless ``guard``
        has this outcome. Then a statement that sets the limits and does the same, where one can:
        with it, what goes out in one round trip needs neither BEGIN nor COMMIT.
        """
        begun = self.direct_begin()
        if begun is None:
            return None
        session, opening = begun
        limits = None if self._read_only else self._limits_alone()
        alone = None if limits is None else entered(*self._text(guard), outcome, limits)
        return session, [*opening, self.checked(guard, outcome)], alone

    def applied(self, write: Write, parameters: Sequence[object]) -> tuple[int | None, bool]:
        """Run what was made with these: see `louver._rust.proxy.Write.apply`."""
        with translated(self.address, unsure=True):
            return write.apply(parameters)

    def checked(self, statement: Statement, outcome: int) -> Step:
        """A change as it is sent, which fails unless it has this outcome."""
        return guarded(*self._text(statement), outcome, writes=True)

    def checked_row(self, sql: str, row: SealedRow, more: Sequence[Any]) -> str:
        """The text of a change of one row whose values are those of a sealed one, and more."""
        return guarded(sql, [row, *more], 1, writes=True)[0]

    @property
    def _ready(self) -> postgres.Session | None:
        session = self._session
        if self.in_transaction or self._waiting or self._stream is not None:
            return None
        return None if session is None or session.is_broken() else session
