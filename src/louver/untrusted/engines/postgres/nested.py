"""Savepoints of a transaction, the isolation and locks that it begins with, and doing it again.

They have numbers: a name of the user's would be read by the server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.untrusted.engines.postgres.journal import MOST_STEPS, Journal, is_same
from louver.untrusted.engines.postgres.pipeline import Reply, Step, Waiting
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver._rust import postgres


_ATTEMPT = "louver_attempt"
#: How long an attempt waits for a lock.
_BRIEF_MS = 100
#: What says that another connection was faster, or holds a lock.
_FASTER = ("server.conflict", "server.locked", "server.schema")


class Nested(ABC):
    """The part of an engine that is `louver.untrusted.engines.engine.Nesting`."""

    _serializable: bool
    _defines: bool
    _begun: bool
    #: whether the next statement ends the transaction, and begins another one
    _ends: bool
    _journal: Journal
    _waiting: list[Waiting]
    #: LOCK TABLE statements that each transaction begins with
    _locks: Sequence[str] = ()
    _only_locks = False

    in_transaction: bool
    _session: postgres.Session | None

    @abstractmethod
    def _send_now(self, last: Sequence[Step], *, writes: bool) -> list[Reply]:
        """Send statements with what waits before them."""

    @abstractmethod
    def _text(self, statement: Statement) -> Step:
        """A statement as it is sent."""

    if TYPE_CHECKING:

        def _within(self, name: str) -> str:
            """A limit of the transaction, as SET takes it."""

    @abstractmethod
    def _outrun(self, detail: str) -> errors.Error:
        """The error of one that has lost a race."""

    @abstractmethod
    def _settle(self) -> None:
        """Bring an unfinished stream to safety."""

    @abstractmethod
    def _enter(self) -> None:
        """Open the transaction now."""

    @property
    @abstractmethod
    def _is_fresh(self) -> bool:
        """Whether the next statement is the first one of the transaction."""

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
        self._journal.forget()  # what is done over the session itself is not in it
        return self._live(within=True)

    def serialize(self) -> None:
        """See `Nesting`."""
        self._serializable = True

    def forget_plans(self) -> None:
        """See `Nesting`."""
        if self._session is not None:
            self._session.forget_statements()

    def begin_anew(self) -> None:
        """See `Nesting`; it goes with the next statement."""
        self._settle()
        self._waiting.clear()
        self._defines = False
        self._ends = self._begun

    def _send(self, sql: str, bound: Sequence[Any], *, writes: bool) -> Reply:
        """Run one statement, in one round trip with what opens its transaction and what waits."""
        return self._send_all([(sql, bound)], writes=writes)[0]

    def _send_all(self, last: Sequence[Step], *, writes: bool, reads: bool = False) -> list[Reply]:
        """Send statements with what waits, and remember them but those that only read."""
        waiting = [*self._waiting]
        replies = self._send_now(last, writes=writes)
        if self.in_transaction:
            done = [] if reads else list(zip(last, replies, strict=True))
            self._journal.add(waiting, done)
        return replies

    def catch_up(self) -> None:
        """Send what waits."""
        if self._waiting:
            self._send_all([], writes=False)

    def remember(self) -> None:
        """See `Nesting`."""
        self._journal.begin()

    def forget(self) -> None:
        """See `Nesting`."""
        self._journal.forget()

    @property
    def remembers(self) -> bool:
        """See `Nesting`."""
        return self.in_transaction and self._journal.steps is not None

    def remembered(self) -> int | None:
        """See `Nesting`."""
        steps = self._journal.steps
        return None if steps is None or self._waiting else len(steps)

    def repeat(self, count: int) -> None:
        """See `Nesting`."""
        done = (self._journal.steps or [])[:count]
        self.begin_anew()
        try:
            replies = self._send_now([step for step, _ in done], writes=True)
        except errors.Error as error:
            raise self._outrun("what it did before cannot be repeated") from error
        pairs = zip(done, replies, strict=True)
        if not all(is_same(before, now) for (_, before), now in pairs):
            raise self._outrun("what it did before ends otherwise now")
        self._journal.steps = done

    def attempt(self, statement: Statement) -> bool:
        """See `Nesting`."""
        self._settle()
        self.catch_up()
        step, limit = self._text(statement), self._within("lock_timeout")
        steps: list[Step] = [
            (f"SAVEPOINT {_ATTEMPT}", ()), (f"SET LOCAL lock_timeout = {_BRIEF_MS}", ()), step,
            (f"SET LOCAL lock_timeout = {limit}", ()), (f"RELEASE SAVEPOINT {_ATTEMPT}", ()),
        ]  # fmt: skip
        try:
            replies = self._send_now(steps, writes=True)
        except errors.DatabaseError as error:
            if error.code not in _FASTER:
                raise
            undone = (f"ROLLBACK TO SAVEPOINT {_ATTEMPT}", f"RELEASE SAVEPOINT {_ATTEMPT}")
            self._send_now([(text, ()) for text in undone], writes=False)
            return False
        self._journal.add([], [(step, replies[2])])
        return True

    def lock_tables(self, texts: Sequence[str]) -> None:
        """See `Nesting`."""
        waiting, self._waiting = self._waiting, []
        alone = self._is_fresh or self._only_locks
        try:
            self._send_now([(text, ()) for text in texts], writes=False)
        finally:
            self._waiting = waiting
        self._journal.forget()
        self._only_locks = alone

    @property
    def only_locks(self) -> bool:
        """See `Nesting`."""
        return self.in_transaction and self._only_locks

    def add_savepoint(self, number: int) -> None:
        """See `Nesting`."""
        self._send(_savepoint(number), (), writes=False)

    def undo_to_savepoint(self, number: int) -> None:
        """See `Nesting`; what waits came after it. A lock that went with it is taken again."""
        self._waiting.clear()
        self._defines = False
        self._send_now([(f"ROLLBACK TO {_savepoint(number)}", ())], writes=False)
        self._journal.undo_to(_savepoint(number))

    def release_savepoint(self, number: int) -> None:
        """See `Nesting`."""
        self.catch_up()
        self._send_now([(f"RELEASE {_savepoint(number)}", ())], writes=False)
        # Further ones have gone with it, or earlier.
        more = range(number, number + MOST_STEPS)
        self._journal.release({_savepoint(other) for other in more})


def _savepoint(number: int) -> str:
    return f"SAVEPOINT louver_{number}"
