"""A session of several connections that change the same tables, interleaved at random: each has
transactions of its own, and what one of them runs, the twin's connection of this name runs too.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import duckdb

from tests.grammar.definitions import Effect, State, nothing
from tests.grammar.keyed import KeyedChanges, KeyedDefinitions
from tests.grammar.queries import Queries
from tests.grammar.session import SETUP, Step
from tests.grammar.types import Tab, literal

#: Of connections; the first one makes the tables.
NAMES = ("", "second", "third")
_SESSION = ("SET VARIABLE v1 = 1", "SET TimeZone = 'UTC'")


@dataclass(slots=True)
class Writer:
    """One connection: its statements to come, and what its transaction began with."""

    name: str
    queue: list[Step] = field(default_factory=list)
    inside: bool = False
    #: the tables as they were at its BEGIN, and how many definitions there had been
    saved: list[Tab] | None = None
    defined: int = 0


@dataclass(slots=True)
class Writers:
    """Gives one statement after the other, and is told which of them ran."""

    profile: str
    seed: str
    state: State = field(init=False)
    _writers: list[Writer] = field(init=False)
    _current: Writer = field(init=False)
    _effect: Effect = field(init=False, default=nothing)
    _defined: int = field(init=False, default=0)
    _values: Any = field(init=False)
    #: who reads next: a transaction of DuckDB's sees what was there when it first read
    _begins: Writer | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.state = State(Random(f"writers {self.profile}:{self.seed}"), self.profile)
        self.state.whole = self.profile != "mixed"
        count = self.dice.choice((1, 2, 3, 3))
        self.state.alone = count == 1
        self._writers = [Writer(name) for name in NAMES[:count]]
        self._current = self._writers[0]
        # No other sequence is replaced, which DuckDB allows after ALTER of a table that needs it.
        setup = (*SETUP, "CREATE SEQUENCE s2")
        self._current.queue = [Step("setting", sql) for sql in setup]
        for writer in self._writers[1:]:
            writer.queue = [Step("setting", sql) for sql in _SESSION]
        self._values = duckdb.connect()
        self._values.execute(SETUP[0])

    @property
    def dice(self) -> Random:
        """The one source of chance."""
        return self.state.dice

    @property
    def alone(self) -> bool:
        """Whether no transaction is open, so that a connection that fails may be opened anew."""
        return not any(writer.inside for writer in self._writers)

    def next(self) -> Step:
        """The next statement."""
        self._effect = nothing
        first = self._writers[0]
        writer = first if first.queue else self._begins or self.dice.choice(self._writers)
        self._begins = None
        self._current = writer
        step = writer.queue.pop(0) if writer.queue else self._drawn(writer)
        return replace(step, connection=writer.name, inside=writer.inside)

    def _drawn(self, writer: Writer) -> Step:
        if len(self.state.base()) < 2:
            return self._definition(writer, KeyedDefinitions(self.state).table())
        draw = self.dice.random()
        if draw < (0.22 if writer.inside else 0.12):
            return self._transaction(writer)
        # Of numbers that several connections draw, each has blocks of its own (guides/changes.md).
        self.state.draws = writer is self._writers[0]
        if draw < 0.27 and self.dice.random() < (0.3 if writer.inside else 0.5):
            return self._definition(writer, KeyedDefinitions(self.state, indexes=self.alone).any())
        if draw < 0.28 and self.alone:
            for other in self._writers:
                other.queue = [Step("setting", sql) for sql in _SESSION]
            self.state.tables = [t for t in self.state.tables if not t.temporary]
            return Step("reopen", "SELECT 1 AS n", reopens=True)
        table = self.dice.choice([t for t in self.state.base() if not t.temporary] or
                                 self.state.base())  # fmt: skip
        if draw < 0.42:
            return Step("table", f"FROM {table.name}", reads=True)
        queries = Queries(self.dice, self.state.tables)
        if draw < 0.46:
            kind, sql = queries.any()
            # How a default is printed depends on whether its table was altered since.
            return Step(kind, f"FROM {table.name}" if "DESCRIBE" in sql else sql, reads=True)
        changes = KeyedChanges(self.dice, queries)
        if draw < 0.52:
            return self._many(changes, table)
        if draw < 0.55:
            return self._file(writer, changes, table)
        kind, sql = changes.any(table)
        if self.dice.random() < 0.3:
            read = Step("table", f"FROM {table.name}", reads=True)
            writer.queue.append(read)
        return Step(kind, sql)

    def _many(self, changes: KeyedChanges, table: Tab) -> Step:
        """executemany; a single row by execute."""
        sql, types = changes.listed(table)
        rows = []
        for _ in range(self.dice.choice((1, 2, 5))):
            listed = ", ".join(literal(self.dice, type_) for type_ in types)
            rows += self._values.execute(f"SELECT {listed}").fetchall()
        if len(rows) == 1:
            return Step("execute", sql, rows[0])
        return Step("executemany", sql, tuple(rows), many=True)

    def _file(self, writer: Writer, changes: KeyedChanges, table: Tab) -> Step:
        """COPY of rows into a file, and out of it into the table."""
        cols = table.written()
        source = changes.rows(table)
        names = ", ".join(col.name for col in cols)
        form = self.dice.choice(("csv", "csv", "parquet"))
        path = f"'__TEST_DIR__/{self.state.fresh('f')}.{form}'"
        copied = Step("copy", f"COPY {table.name} ({names}) FROM {path}")
        if not table.numbered:
            self._effect = lambda: writer.queue.append(copied)
        return Step("copy to", f"COPY ({source} ORDER BY ALL) TO {path}")

    def last(self) -> list[Step]:
        """What is asked at the end: all that every table holds, also after a reconnect."""
        ends = [Step("end", "ROLLBACK", connection=w.name) for w in self._writers if w.inside]
        tables = [t for t in self.state.base() if not t.temporary]
        ends.append(Step("end", "SELECT 0 AS n", reopens=True))
        return [*ends, *(Step("end", f"FROM {table.name}", reads=True) for table in tables)]

    def ran(self, fine: bool) -> None:
        """What became of the last statement. One that fails ends its connection's transaction."""
        writer = self._current
        if fine:
            self._effect()
        elif writer.inside:
            writer.queue = [Step("transaction", "ROLLBACK")]
            self._undone(writer)

    def _definition(self, writer: Writer, definition: tuple[str, str, Effect]) -> Step:
        kind, sql, effect = definition

        def done() -> None:
            effect()
            self._defined += 1
            if kind != "create table":
                return
            table = self.state.tables[-1]
            changes = KeyedChanges(self.dice, Queries(self.dice, self.state.tables))
            for _ in range(self.dice.choice((1, 2, 3))):
                row = changes.insert(table)
                writer.queue.append(Step("insert", row))

        self._effect = done
        return Step(kind, sql)

    def _transaction(self, writer: Writer) -> Step:
        if not writer.inside:
            self._effect = lambda: self._begun(writer)
            return Step("transaction", "BEGIN")
        if self.dice.random() < 0.7:
            self._effect = lambda: self._committed(writer)
            return Step("transaction", "COMMIT")
        self._effect = lambda: self._undone(writer)
        return Step("transaction", "ROLLBACK")

    def _begun(self, writer: Writer) -> None:
        writer.inside, writer.defined = True, self._defined
        writer.saved = copy.deepcopy(self.state.tables)
        writer.queue = [Step("table", f"FROM {self.state.base()[0].name}", reads=True)]
        self._begins = writer

    def _committed(self, writer: Writer) -> None:
        writer.inside, writer.saved = False, None

    def _undone(self, writer: Writer) -> None:
        """What was defined within it is gone; where others may have defined too, nobody knows."""
        others = any(other.inside for other in self._writers if other is not writer)
        if writer.saved is not None and self._defined != writer.defined and not others:
            self.state.tables = writer.saved
        writer.inside, writer.saved = False, None
