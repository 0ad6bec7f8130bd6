"""Tokens: those who write rows and those who save the catalog are kept apart, but no two writers.

A change of rows does not change the catalog, so the catalog's version does not tell who changes the
schema, or takes a layer off, that rows are being written under the earlier one. That version is
looked at for every other statement.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass

from louver import errors
from louver.trusted.vault.process_version import Part
from louver.untrusted.engines.engine import Engine, Nesting
from louver.wire import control
from louver.wire.messages import Statement

RECENT_S = 1.0
"""How long after a look at the version a statement may go together with the next one: for so long,
what another client has forbidden since may still be sent (docs/decisions/0024).
"""
Held = tuple[frozenset[int], bool]
"""The rows of tokens that a transaction has changed, and whether it has made all tokens void."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A version of the catalog that a session knows, with the hash of its text."""

    version: int
    fingerprint: str


Position = tuple[Seen | None, Held | None]
"""Which version the open transaction saves, and what it holds."""
_turns: dict[tuple[int, str, str], threading.Lock] = {}


class Writers:
    """One session's part in what keeps those who write rows and those who save a version of the
    catalog apart (docs/decisions/0020): neither waits, and one of two that meet loses the race.

    Every writer has a token, a row of its own, which each of its transactions changes. Who saves a
    version makes all tokens void, and passes the gate, as one does who gets a token. A second row
    of a token keeps those who add references and those who remove keys apart in the same way, but
    that nothing becomes void.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._side: Engine | None = None
        self._writer = self._version = 0
        self._entered = set[int]()
        self.excluding = False

    def prepare(self, names: Collection[str]) -> None:
        """Have the table of tokens in a database that an earlier release has made."""
        lacking = control.CATALOG_TABLE in names and control.WRITERS_TABLE not in names
        if lacking and not self._engine.in_transaction:
            # A connection that only reads changes nothing, and so needs none.
            with suppress(errors.DatabaseError):
                _create(self._engine)

    def register(self, version: int) -> None:
        """Get a token, unless this session has one of this version of the catalog; raises
        ``catalog.conflict`` while another client saves a version, or when it has.
        """
        if self._writer and self._version == version:
            return
        if self._side is None:
            self._side = self._engine.side()
        self._writer = 0
        with turn(self._side.address, "writer"):
            number = _made(self._side, version)
        self._writer, self._version = number, version

    def enter(self, *, refers: bool) -> None:
        """See `CatalogStore.enter`."""
        number = -self._writer if refers else self._writer
        if self.excluding or number in self._entered or (self._entered and not refers):
            return
        if not number:
            raise self._void()
        change = Statement(control.WRITER_ENTER, (number, self._version), kind="write")
        with races(self._engine):
            self._engine.expect(change, 1, self._void)
        self._entered.add(number)

    @property
    def token(self) -> Statement | None:
        """What changes this session's token, one row while it is not void; None without one."""
        if not self._writer:
            return None
        return Statement(control.WRITER_ENTER, (self._writer, self._version), kind="write")

    def _void(self) -> errors.Error:
        """The token is void, or gone."""
        self._writer = 0
        return outrun()

    def hold_references(self) -> None:
        """See `CatalogStore.hold_references`."""
        if not self.excluding:
            written(self._engine, control.WRITERS_HOLD)

    def exclude(self, *, briefly: bool = False) -> None:
        """See `CatalogStore.exclude`."""
        if self.excluding:
            return
        if not briefly or not isinstance(self._engine, Nesting):
            written(self._engine, control.WRITERS_VOID)
        elif not self._engine.attempt(control.WRITERS_VOID):
            raise outrun()
        self.excluding = True

    @property
    def held(self) -> Held:
        """What the open transaction holds; a savepoint brings it back."""
        return frozenset(self._entered), self.excluding

    @held.setter
    def held(self, before: Held) -> None:
        entered, self.excluding = before
        self._entered = set(entered)

    def ended(self) -> None:
        """The transaction was committed or undone."""
        self._entered.clear()
        self.excluding = False


class Versions:
    """Looks at the version through one connection, or at what the ``process`` knows of it, where
    only this process can have changed it.
    """

    def __init__(self, engine: Engine, process: Part) -> None:
        self._engine = engine
        self._process = process
        self._looked_at = -RECENT_S

    def current(self) -> int:
        """The version; -1 where there is none."""
        known = self._known()
        self._looked_at = time.monotonic()
        return self._asked() if known is None else known

    def _asked(self) -> int:
        """The version in the database, which what the process knew a moment ago does not tell."""
        changes = self._process.changes
        version = self._engine.value(control.CATALOG_VERSION)
        self._looked_at = time.monotonic()
        if not isinstance(version, int):
            return -1
        if not self._engine.in_transaction:
            self._process.looked(changes, version)
        return version

    def _known(self) -> int | None:
        """The version without a look; a transaction may see an earlier one."""
        return None if self._engine.in_transaction else self._process.version

    def expect(self, version: int) -> None:
        """Have `catalog.conflict` raised by the next call of the engine unless this is the version;
        where the engine takes that, what this call sends goes together with the look.
        """
        known = self._known()
        self._looked_at = time.monotonic()
        if known is None:
            self._engine.expect(control.CATALOG_VERSION, version, outrun)
        elif known != version:
            raise outrun()

    @property
    def is_recent(self) -> bool:
        """Whether the last look was so shortly ago that a statement may go with the next one."""
        return time.monotonic() - self._looked_at < RECENT_S


def _create(engine: Engine) -> None:
    """Make the table with its gate, both or none."""
    engine.begin()
    try:
        engine.run(control.WRITERS_CREATE)
        engine.commit()
    except BaseException:
        if engine.in_transaction:
            engine.rollback()
        raise


def _made(side: Engine, version: int) -> int:
    """The number of a new token."""
    side.begin()
    try:
        written(side, control.WRITERS_GATE)
        highest = side.value(control.WRITERS_HIGHEST)
        number = (highest if isinstance(highest, int) else 0) + 1
        token = Statement(control.WRITER_ADD, (number, version), kind="write")
        if written(side, token) != 2:
            raise errors.make("catalog.conflict")
        written(side, control.WRITERS_TIDY)
        committed(side)
    except BaseException:
        if side.in_transaction:
            side.rollback()
        raise
    return number


def turn(address: str, record: str) -> AbstractContextManager[object]:
    """Held while a client of this process writes a record that all clients of the database at an
    address write. The server refuses the later of two that meet, and that one reads and tries
    again: of many clients each would lose most of its attempts.

    Clients of other processes know nothing of it: the server refuses the later one, as ever.
    """
    if not address:
        return nullcontext()
    # A child begins anew: its parent may have been within a turn when it was made.
    return _turns.setdefault((os.getpid(), address, record), threading.Lock())


def outrun() -> errors.Error:
    """Another client was faster."""
    return errors.make("catalog.conflict")


@contextmanager
def races(engine: Engine) -> Iterator[None]:
    """A write conflict means that another client was faster."""
    try:
        yield
    except errors.DatabaseError as error:
        if engine.lost_race(error):
            raise outrun() from error
        raise


def written(engine: Engine, statement: Statement) -> int:
    """The rows that a statement touched."""
    # Rows that wait to be sent with it may break a key: no client was faster then.
    engine.catch_up()
    with races(engine):
        return engine.run(statement)


def committed(engine: Engine) -> None:
    """Commit."""
    with races(engine):
        engine.commit()
