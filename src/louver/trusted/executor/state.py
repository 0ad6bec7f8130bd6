"""What changes while a session lasts; the one mutable object of a context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from louver.trusted.planner.settings import DEFAULT, PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.local import Local
from louver.trusted.vault import bounds
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.seen_values import MANY
from louver.trusted.vault.writers import Position

Cache = TypeVar("Cache")
FOLDED_ROWS = 16_384
"""So many rows, of 16 tiles, are there before some are folded: folding has costs of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What changes of one shape show by what they depend on: another object whenever it was
    decided anew.
    """

    leaks: tuple[Fact, ...]
    #: rows that get the values that they have are written anew, for to leave them would tell
    all_met: bool = False


@dataclass(slots=True)
class Growth:
    """Of tables that are not counted, by id: what the catalog on the server does not know yet."""

    #: tables with more bounds, marks or forms of tiles, or twice the rows that are noted there
    tables: set[int] = field(default_factory=set)
    #: how many rows the server's catalog notes, of tables that this session has written to
    noted: dict[int, int] = field(default_factory=dict)
    _rows: dict[int, tuple[Table, int]] = field(default_factory=dict)
    _before: dict[int, tuple[Table, Table]] = field(default_factory=dict)

    def hold(self, table: Table) -> None:
        """Remember a table as it is before the open transaction first adds to its columns."""
        if table.id not in self._before:
            columns = [replace(column, seen=list(column.seen)) for column in table.columns]
            before = replace(table, columns=columns, tiles=dict(table.tiles))
            self._before[table.id] = (table, before)

    def add(self, table: Table, count: int) -> None:
        """Rows were added to a table, or with a negative count removed."""
        self._rows.setdefault(table.id, (table, table.row_count))
        noted = self.noted.setdefault(table.id, table.row_count)
        table.row_count = max(table.row_count + count, 0)
        if table.row_count.bit_length() > noted.bit_length():
            self.tables.add(table.id)

    def committed(self) -> None:
        """The open transaction's rows are there."""
        self._before.clear()
        self._rows.clear()

    def undone(self) -> None:
        """The open transaction's rows do not come."""
        for table, count in self._rows.values():
            table.row_count = count
        for table, before in self._before.values():
            table.tiles = before.tiles
            known = {column.id: column for column in before.columns}
            for column in table.columns:
                held = known.get(column.id, column)
                column.minimum, column.maximum = held.minimum, held.maximum
                column.has_null, column.seen = held.has_null, held.seen
        self._before.clear()
        self._rows.clear()
        self.tables.clear()

    def into(self, newest: Catalog, own: Catalog) -> bool:
        """Add it to the newest catalog; says whether anything was new there."""
        grown = False
        for table in own.tables.values():
            target = newest.tables.get(table.key) if table.id in self.tables else None
            if target is not None and target.id == table.id:
                grown = _widened(target, table) or grown
                self.noted[table.id] = target.row_count
        return grown


def _widened(target: Table, table: Table) -> bool:
    """Take into a table what the same table of another catalog knows; whether other clients must
    know of it at once. A value that is new to its column is taken in too, but causes no version.
    """
    before = [bounds.shared(column) for column in target.columns]
    known = {column.id: column for column in table.columns}
    for column in target.columns:
        wider = known.get(column.id)
        if wider is not None:
            bounds.widen(column, wider.minimum, wider.maximum, wider.has_null)
            column.see([] if wider.seen == [MANY] else wider.seen)
            column.seen = [MANY] if wider.seen == [MANY] else column.seen
    rows, target.row_count = target.row_count, max(target.row_count, table.row_count)
    forms, target.tiles = len(target.tiles), target.tiles | table.tiles
    after = [bounds.shared(column) for column in target.columns]
    return (rows, forms, before) != (target.row_count, len(target.tiles), after)


@dataclass(slots=True)
class Span:
    """Between which row ids rows are, both included, and how many were stored since the last try to
    fold them.
    """

    low: int
    high: int
    count: int = 0


@dataclass(slots=True)
class Unfolded:
    """Rows that the session has stored by themselves, and has not folded yet (`folding`), of each
    table by its id. When they are folded depends on how many they are, never on a value. Where they
    are is a hint: some may be gone, or were never committed.
    """

    spans: dict[int, Span] = field(default_factory=dict)
    #: tables of which so many rows are there that some are to be folded
    due: dict[int, None] = field(default_factory=dict)

    def add(self, table: int, first: int, count: int) -> None:
        """Rows with consecutive ids, which come after all that the session has stored before."""
        span = self.spans.get(table)
        if span is None:
            span = self.spans[table] = Span(first, first)
        span.high, span.count = first + count - 1, span.count + count
        if span.count >= FOLDED_ROWS:
            self.due[table] = None

    def later(self, table: int) -> Span:
        """What is due of a table, which is due again when as many rows have come."""
        del self.due[table]
        span = self.spans[table]
        span.count = 0
        return span

    def folded(self, table: int, left: int, *, more: bool) -> None:
        """The rows before an id are done; there may be ``more`` that are to be folded now."""
        self.spans[table].low = left
        if more:
            self.due[table] = None

    def forget(self, table: int) -> None:
        """A table has no tiles."""
        del self.spans[table]


@dataclass(frozen=True, slots=True, eq=False)
class Savepoint:
    """What a session keeps beside a savepoint of the server's."""

    name: str
    catalog: Catalog
    store: Position
    #: the claims of sequences that wait for COMMIT
    claims: dict[Any, Any]
    #: temporary tables, in the form of the local engine
    temporary: Any
    #: what else a handler has kept, by its kind
    states: dict[type, Any]
    #: `State.definitions` when the local engine was as the savepoint has it
    definitions: int


Ending = Callable[[bool], None]
"""What is done once a transaction has ended; whether it was committed."""


@dataclass(slots=True, eq=False)
class State:
    """Catalog, open transaction, prepared statements and caches of one session."""

    catalog: Catalog
    #: what the session has chosen for its plans
    planning: PlannerSettings = DEFAULT
    #: the catalog that ROLLBACK returns to; None outside of a transaction
    saved: Catalog | None = None
    #: what rows that were written add to the catalog
    growth: Growth = field(default_factory=Growth)
    #: rows that may be folded into tiles
    unfolded: Unfolded = field(default_factory=Unfolded)
    #: how often the open transaction may have changed the schema of the local engine
    definitions: int = 0
    aborted: bool = False
    #: the profile of new columns of which nothing is said; "none" leaves them plain
    default_encryption: str = "none"
    #: what RESET makes of it: what a client of the front door has begun with
    begun_encryption: str = "none"
    #: whether tables that are created now are counted
    counts: bool = False
    #: whether the session was told that a table is all plain
    warned_plain: bool = False
    #: whether the open transaction only reads
    read_only: bool = False
    #: whether statements outside of transactions change nothing
    only_reads: bool = False
    #: whether the connection may change the database and its ledger
    writable: bool = True
    #: what fails now has changed nothing: the transaction goes on
    untouched: bool = False
    #: when the open transaction began
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: the savepoints of the open transaction, the first one first
    savepoints: list[Savepoint] = field(default_factory=list)
    #: what else ends with the open transaction
    endings: list[Ending] = field(default_factory=list)
    #: what must hold before the open transaction commits; one that fails undoes it
    checks: list[Callable[[], None]] = field(default_factory=list)
    #: the foreign keys, by their paths, that the statement which runs is not checked by
    deferred: frozenset[str] = frozenset()
    #: what every transaction ends with
    lasting: list[Ending] = field(default_factory=list)
    #: whether the open transaction was asked to be serializable
    serializable: bool = False
    #: whether no query and no change has run in it
    untried: bool = False
    #: whether the open transaction has changed nothing, and its next statement sees what is
    #: committed by then; and whether those after it do
    follows: bool = False
    follows_on: bool = False
    #: whether what the statement that runs has done on the server may be undone
    anew: bool = False
    #: whether a layer was not opened, because another client is writing
    declined: bool = False
    #: the generation of the local engine in which the time stands still at ``began``
    fixed: int | None = None
    #: verdicts on changes by the table and the shape of the statement; empty when names, variables
    #: or tables mean something else
    flows: dict[tuple[tuple[str, str], str], Verdict] = field(default_factory=dict)
    #: whether the session's user may not do everything
    restricted: bool = False
    #: whether a COPY … FROM STDIN runs, within which no other statement may
    copying: bool = False
    #: the statements of PREPARE by folded name, each with the search path that it had
    prepared: dict[str, tuple[lexer.Text, tuple[str, ...]]] = field(default_factory=dict)
    #: the columns that variables and temporary tables depend on
    origins: Local = field(default_factory=Local)
    _caches: dict[type, Any] = field(default_factory=dict)

    @property
    def in_transaction(self) -> bool:
        """Whether the user has said BEGIN."""
        return self.saved is not None

    def ended(self, committed: bool) -> None:
        """The transaction has ended."""
        endings, self.endings = self.endings, []
        self.checks.clear()
        self.savepoints.clear()
        for ending in (*endings, *self.lasting):
            ending(committed)

    def cache(self, kind: type[Cache]) -> Cache:
        """The session's cache of a kind, empty at the first use."""
        if kind not in self._caches:
            self._caches[kind] = kind()
        results: Cache = self._caches[kind]
        return results
