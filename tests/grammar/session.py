"""A session of statements: profile and seed give the same ones again, as long as the same ones of
them run.
"""

from __future__ import annotations

import copy
import datetime
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random

from tests.grammar.changes import Changes
from tests.grammar.definitions import Definitions, Effect, State, nothing
from tests.grammar.expressions import Expressions, named
from tests.grammar.queries import Queries
from tests.grammar.types import MOODS, Tab, literal

PROFILES = ("sealed", "cryptdb", "sdb", "mixed")
_MOODS = ", ".join(f"'{mood}'" for mood in MOODS)
SETUP = (
    f"CREATE TYPE mood AS ENUM ({_MOODS})", "CREATE MACRO m1(x) AS x IS NULL",
    "CREATE MACRO m2() AS TABLE SELECT 1 AS n", "CREATE SEQUENCE s1", "SET VARIABLE v1 = 1",
    "SET TimeZone = 'UTC'",
)  # fmt: skip
#: Values as Python has them.
PARAMETERS: tuple[object, ...] = (
    None, 0, 1, -7,
    2**31, 2**63, -(2**127), True, False, 1.5, float("nan"), float("-inf"), -0.0, "",
    "a", "日本", "B", "x" * 300, b"", b"\x00\xff", Decimal("1.50"), Decimal("-999999999999.001"),
    datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 12, 34, 56, 789012),
    datetime.time(12, 34, 56), datetime.timedelta(days=1, seconds=3), [1, None, 3], [], ["a"],
    {"a": 1, "b": "x"}, uuid.UUID(int=5), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, its values, and what sort it is of."""

    kind: str
    sql: str
    parameters: tuple[object, ...] = ()
    #: whether it only reads, so that what differs does not go on
    reads: bool = False
    #: whether both databases are closed and opened again before it
    reopens: bool = False
    #: the connection that runs it, and whether that one is in a transaction
    connection: str = ""
    inside: bool = False
    #: whether the parameters are those of many runs
    many: bool = False


@dataclass(slots=True)
class Session:
    """Gives one statement after the other, and is told which of them ran."""

    profile: str
    seed: str
    state: State = field(init=False)
    _queue: list[Step] = field(init=False)
    _saved: list[Tab] | None = field(init=False, default=None)
    _prepared: dict[str, str] = field(init=False, default_factory=dict)
    _effect: Effect = field(init=False, default=nothing)

    def __post_init__(self) -> None:
        dice = Random(f"{self.profile}:{self.seed}")
        self.state = State(dice, self.profile)
        self.state.whole = self.profile != "mixed"
        self._queue = [Step("setting", sql) for sql in SETUP]

    @property
    def dice(self) -> Random:
        """The one source of chance."""
        return self.state.dice

    def next(self) -> Step:
        """The next statement."""
        self._effect = nothing
        if self._queue:
            return self._queue.pop(0)
        draw = self.dice.random()
        if len(self.state.base()) < 2:
            return self._defined(Definitions(self.state).table())
        if draw < 0.06:
            return self._transaction()
        if draw < 0.18:
            return self._defined(Definitions(self.state, indexes=self._saved is None).any())
        queries = Queries(self.dice, self.state.tables)
        if draw < 0.45:
            table = self.dice.choice(self.state.base())
            kind, sql = Changes(self.dice, queries).any(table)
            if self.dice.random() < 0.3:
                self._queue.append(Step("table", f"FROM {table.name}", reads=True))
            return Step(kind, sql)
        if draw < 0.49:
            return self._prepare(queries)
        if draw < 0.54:
            return self._bound(queries)
        if draw < 0.55 and self._saved is None:
            gone = [table for table in self.state.tables if table.temporary]
            self.state.tables = [t for t in self.state.tables if not t.temporary]
            self._prepared.clear()
            self._queue += [Step("setting", "SET TimeZone = 'UTC'")]
            return Step("reopen", "SELECT 1 AS n" if gone else "SELECT 2 AS n", reopens=True)
        kind, sql = queries.any()
        return Step(kind, sql, reads=True)

    def last(self) -> list[Step]:
        """What is asked at the end: all that every table holds, also after a reconnect."""
        tables = [t for t in self.state.base() if not t.temporary]
        steps = [Step("end", "SELECT 0 AS n", reopens=True)] if self._saved is None else []
        return [*steps, *(Step("end", f"FROM {table.name}", reads=True) for table in tables)]

    def ran(self, fine: bool) -> None:
        """What became of the last statement. One that fails ends a transaction."""
        if fine:
            self._effect()
        elif self._saved is not None:
            self._queue = [Step("transaction", "ROLLBACK")]
            self.state.tables, self._saved = self._saved, None

    def _defined(self, definition: tuple[str, str, Effect]) -> Step:
        kind, sql, effect = definition
        self._effect = effect
        if kind == "create table":
            table = Tab("?")
            return self._filled(Step(kind, sql), table)
        return Step(kind, sql)

    def _filled(self, step: Step, _: Tab) -> Step:
        """A new table gets rows at once."""
        effect = self._effect

        def fill() -> None:
            effect()
            table = self.state.tables[-1]
            changes = Changes(self.dice, Queries(self.dice, self.state.tables))
            for _ in range(self.dice.choice((1, 2, 3))):
                self._queue.append(Step("insert", changes.insert(table)))

        self._effect = fill
        return step

    def _transaction(self) -> Step:
        if self._saved is None:
            self._effect = self._begun
            return Step("transaction", "BEGIN")
        word = self.dice.choice(("COMMIT", "ROLLBACK"))
        self._effect = self._ended if word == "COMMIT" else self._undone
        return Step("transaction", word)

    def _begun(self) -> None:
        self._saved = copy.deepcopy(self.state.tables)

    def _ended(self) -> None:
        self._saved = None

    def _undone(self) -> None:
        if self._saved is not None:
            self.state.tables, self._saved = self._saved, None

    def _prepare(self, queries: Queries) -> Step:
        """PREPARE, or EXECUTE of what was prepared, or DEALLOCATE."""
        if self._prepared and self.dice.random() < 0.65:
            name, type_ = self.dice.choice(sorted(self._prepared.items()))
            if self.dice.random() < 0.1:
                self._effect = lambda: self._prepared.clear()
                return Step("deallocate", f"DEALLOCATE {name}")
            given = literal(self.dice, type_)
            if self.dice.random() < 0.2:
                given = Expressions(self.dice, (), False).of("int", 1)
            return Step("execute", f"EXECUTE {name}({given})")
        table = queries.table()
        col = self.dice.choice(table.cols)
        name = f"p{self.dice.randrange(3)}"
        scope = [("", c) for c in table.cols]
        # DuckDB forgets in what is prepared that a column which had no NULL may have one since.
        sql = self.dice.choice(
            (
                f"SELECT {queries.key(scope)} AS k FROM {table.name} WHERE {col.name} = $1",
                f"SELECT $1 AS v, count(*) AS n FROM {table.name}",
                f"DELETE FROM {table.name} WHERE {col.name} = $1",
                f"UPDATE {table.name} SET {col.name} = $1 WHERE concat({queries.key(scope)}) = ''",
                f"SELECT {col.name} = ? AS e FROM {table.name}",
            )
        )
        if table.view and not sql.startswith("SELECT"):
            sql = f"SELECT {col.name} IS NOT DISTINCT FROM $1 AS e FROM {table.name}"

        def prepared() -> None:
            self._prepared[name] = col.type

        self._effect = prepared
        return Step("prepare", f"PREPARE {name} AS {sql}")

    def _bound(self, queries: Queries) -> Step:
        """A statement with values from Python."""
        table = queries.table()
        scope = [("", c) for c in table.cols]
        entry = self.dice.choice(scope)
        value = self.dice.choice(PARAMETERS)
        key = queries.key(scope)
        writable = not table.view and entry[1] in table.written()
        forms = [
            (f"SELECT {key} AS k FROM {table.name} WHERE {named(entry)} = ?", 1),
            (
                f"SELECT {key} AS k FROM {table.name} WHERE {named(entry)} IN (?, $2)".replace(
                    "?", "$1"
                ),
                2,
            ),
            (f"SELECT ? AS v, {key} AS k FROM {table.name}", 1),
            ("SELECT ? AS v", 1),
            (f"SELECT {key} AS k FROM {table.name} WHERE {key} < ? ORDER BY ALL LIMIT 3", 1),
        ]
        if writable:
            forms += [
                (f"UPDATE {table.name} SET {named(entry)} = ? WHERE {key} IS NOT NULL", 1),
                (f"INSERT INTO {table.name} ({named(entry)}) VALUES (?)", 1),
                (f"DELETE FROM {table.name} WHERE {named(entry)} = ?", 1),
            ]
        sql, count = self.dice.choice(forms)
        given = (value, *self.dice.choices(PARAMETERS, k=count - 1))
        return Step("parameters", sql, given, reads=sql.startswith("SELECT"))
