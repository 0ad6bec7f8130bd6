"""CREATE, ALTER and DROP: of tables, and of all that stands beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.grammar.expressions import Expressions
from tests.grammar.queries import Queries
from tests.grammar.types import KEYS, Col, Tab, cast, declared, drawn_type, literal

Effect = Callable[[], None]
Made = tuple[str, str, Effect]
_NAMES = ("a", "b", "c", "d", "e", '"Ä"', '"two words"', "Kind", "value", "f")
_MIXED = ("ENC", "ENC", "ENC MAY REVEAL equality", "ENC MAY REVEAL order",
          "ENC USING onion MAY REVEAL order",
          "ENC MAY REVEAL size")  # fmt: skip
MOST_TABLES = 6


def nothing() -> None:
    """What most statements change of what the generator knows."""


@dataclass(slots=True)
class State:
    """What there is, as the statements so far have made it."""

    dice: Random
    profile: str
    tables: list[Tab] = field(default_factory=list)
    #: whether every column of every table is ENC
    whole: bool = True
    #: whether there is one connection, and whether who defines may draw numbers of a sequence
    alone: bool = True
    draws: bool = True
    count: int = 0

    def fresh(self, prefix: str) -> str:
        """A name that was never given."""
        self.count += 1
        return f"{prefix}{self.count}"

    def base(self) -> list[Tab]:
        """What can be changed."""
        return [table for table in self.tables if not table.view]

    def enc(self) -> str:
        """The mark behind a type: a comment to DuckDB, which becomes ENC for Louver."""
        if not self.whole and self.dice.random() < 0.35:
            return ""
        words = self.dice.choice(_MIXED) if self.profile == "mixed" else "ENC"
        words += " WITH (sum = 'masked')" * (self.dice.random() < 0.5)
        return f" /*{words}*/"


class Definitions:
    """Draws definitions."""

    def __init__(self, state: State, indexes: bool = True) -> None:
        self.state = state
        #: not in a transaction, whose own rows DuckDB does not look at
        self.indexes = indexes
        self.dice = state.dice

    def any(self) -> Made:
        """One of all."""
        base = self.state.base()
        forms: list[Callable[[], Made]] = [
            self.table, self.table, self.view, self.copied, self.macro, self.sequence,
            self.variable, self.temporary, self.index,
        ]  # fmt: skip
        if len(self.state.tables) >= MOST_TABLES:
            forms = [self.dropped, self.macro, self.variable]
        elif base:
            forms += [self.altered, self.altered, self.altered, self.dropped]
        return self.dice.choice(forms)()

    def table(self) -> Made:
        """CREATE TABLE."""
        table = Tab(self.state.fresh("t"), self._cols())
        text = self._created(table)
        return "create table", text, lambda: self.state.tables.append(table)

    def temporary(self) -> Made:
        """CREATE TEMP TABLE; ENC is not said of it."""
        table = Tab(self.state.fresh("t"), self._cols(), temporary=True)
        listed = ", ".join(f"{col.name} {declared(col.type)}" for col in table.cols)
        text = f"CREATE TEMP TABLE {table.name} ({listed})"
        return "temp table", text, lambda: self.state.tables.append(table)

    def _cols(self) -> list[Col]:
        count = self.dice.choice((2, 3, 3, 4, 5))
        return [Col(name, drawn_type(self.dice)) for name in self.dice.sample(_NAMES, count)]

    def _created(self, table: Tab) -> str:
        parts, tail = [], []
        keyed = self.dice.random() < 0.35
        for number, col in enumerate(table.cols):
            parts.append(self._declared(table, col, keyed and number == 0))
        if not keyed and self.dice.random() < 0.15:
            pair = [col for col in table.cols if col.family in KEYS and not col.generated][:2]
            if len(pair) == 2:
                word = self.dice.choice(("PRIMARY KEY", "UNIQUE"))
                tail.append(f"{word} ({pair[0].name}, {pair[1].name})")
                for col in pair:
                    col.key = True
        if self.dice.random() < 0.15:
            scope = [("", col) for col in table.cols if not col.generated]
            condition = Expressions(self.dice, scope, True).condition(1)
            tail.append(f"CHECK ({condition} OR {scope[0][1].name} IS NOT NULL)")
        return f"CREATE TABLE {table.name} ({', '.join([*parts, *tail])})"

    def _declared(self, table: Tab, col: Col, key: bool) -> str:
        draw = self.dice.random()
        text = f"{col.name} {declared(col.type, self.state.enc())}"
        if key:
            col.key = True
            return text + self.dice.choice((" PRIMARY KEY", " PRIMARY KEY", " UNIQUE"))
        if draw < 0.1:
            col.required = True
            text += " NOT NULL"
        elif draw < 0.2 and col is not table.cols[0]:
            scope = [
                ("", other) for other in table.cols if other is not col and not other.generated
            ]
            default = Expressions(self.dice, scope, True).of(col.family, 1)
            if not any(other.name.strip('"') in default for _, other in scope):
                # Of a constant DuckDB makes a value also where an outer join has no row.
                return text
            col.generated = True
            return f"{text} AS (TRY_CAST({default} AS {cast(col.type)}))"
        if draw > 0.85:
            text += f" DEFAULT {literal(self.dice, col.type, 0)}"
        return text

    def copied(self) -> Made:
        """CREATE TABLE … AS."""
        if not self.state.tables:
            return self.table()
        queries = Queries(self.dice, self.state.tables)
        source = queries.table()
        scope = [("s", col) for col in source.cols]
        expressions = Expressions(self.dice, scope, True)
        cols, items = [], []
        for name in self.dice.sample(_NAMES, self.dice.choice((2, 3))):
            col = Col(name, drawn_type(self.dice))
            same = [c for c in source.cols if c.type == col.type]
            text = (
                f"s.{same[0].name}"
                if same
                else f"TRY_CAST({expressions.of(col.family, 1)} AS {cast(col.type)})"
            )
            cols.append(col)
            items.append(f"{text} AS {name}")
        word = self.dice.choice(("TABLE", "TABLE", "TABLE", "TEMP TABLE"))
        table = Tab(self.state.fresh("t"), cols, temporary=word != "TABLE")
        where = queries.where(scope, 0.4)
        text = (
            f"CREATE {word} {table.name} AS SELECT {', '.join(items)} FROM {source.name} s{where}"
        )
        return "create as", text, lambda: self.state.tables.append(table)

    def view(self) -> Made:
        """CREATE VIEW of some columns of a table."""
        if not self.state.tables:
            return self.table()
        queries = Queries(self.dice, self.state.tables)
        source = queries.table()
        scope = [("", col) for col in source.cols]
        cols = self.dice.sample(source.cols, self.dice.randint(1, len(source.cols)))
        view = Tab(self.state.fresh("v"), [Col(c.name, c.type) for c in cols], view=True)
        word = self.dice.choice(("VIEW", "VIEW", "TEMP VIEW"))
        where = queries.where(scope, 0.5)
        text = (f"CREATE {word} {view.name} AS SELECT {', '.join(c.name for c in cols)}"
                f" FROM {source.name}{where}")  # fmt: skip
        return "create view", text, lambda: self.state.tables.append(view)

    def macro(self) -> Made:
        """CREATE MACRO, of a value or of a table."""
        body = self.dice.choice(
            ("x IS NULL", "typeof(x) = 'INTEGER'", "coalesce(x::VARCHAR, '') = 'a'")
        )
        text = f"CREATE OR REPLACE MACRO m1(x) AS {body}"
        if self.state.tables and self.dice.random() < 0.4:
            name = self.dice.choice(self.state.tables).name
            text = f"CREATE OR REPLACE MACRO m2() AS TABLE SELECT count(*) AS n FROM {name}"
        return "macro", text, nothing

    def sequence(self) -> Made:
        """CREATE SEQUENCE and what reads one."""
        drawn = ("SELECT nextval('s1') AS n", "SELECT nextval('s1') AS n",
                 "SELECT currval('s1') AS n")  # fmt: skip
        text = self.dice.choice(
            ("CREATE OR REPLACE SEQUENCE s1", *(drawn if self.state.draws else ()),
             "CREATE SEQUENCE IF NOT EXISTS s1 START 5 INCREMENT -2",
             "CREATE OR REPLACE SEQUENCE s1 MINVALUE 1 MAXVALUE 3 CYCLE")
        )  # fmt: skip
        return "sequence", text, nothing

    def variable(self) -> Made:
        """SET VARIABLE, of a constant or of what a table holds."""
        text = literal(self.dice, drawn_type(self.dice))
        if self.state.tables and self.dice.random() < 0.4:
            table = self.dice.choice(self.state.tables)
            text = f"(SELECT count({self.dice.choice(table.cols).name}) FROM {table.name})"
        return "variable", f"SET VARIABLE v1 = {text}", nothing

    def index(self) -> Made:
        """CREATE INDEX."""
        tables = [t for t in self.state.base() if not t.temporary]
        if not tables or not self.indexes:
            return self.table()
        table = self.dice.choice(tables)
        col = self.dice.choice(table.cols)
        unique = self.dice.choice(("", "", "UNIQUE "))
        text = f"CREATE {unique}INDEX {self.state.fresh('i')} ON {table.name} ({col.name})"
        return "index", text, nothing

    def dropped(self) -> Made:
        """DROP."""
        table = self.dice.choice(self.state.tables)
        word = "VIEW" if table.view else "TABLE"
        exists = self.dice.choice(("", "IF EXISTS "))
        return "drop", f"DROP {word} {exists}{table.name}", lambda: self.state.tables.remove(table)

    def altered(self) -> Made:
        """ALTER TABLE."""
        table = self.dice.choice(self.state.base())
        forms = (
            self._add,
            self._add,
            self._drop,
            self._rename,
            self._retype,
            self._default,
            self._null,
        )
        text, effect = self.dice.choice(forms)(table)
        return "alter", f"ALTER TABLE {table.name} {text}", effect

    def _add(self, table: Tab) -> tuple[str, Effect]:
        col = Col(self.state.fresh("x"), drawn_type(self.dice))
        enc = "" if table.temporary else self.state.enc()
        default = f" DEFAULT {literal(self.dice, col.type)}" if self.dice.random() < 0.4 else ""
        return (
            f"ADD COLUMN {col.name} {declared(col.type, enc)}{default}",
            lambda: table.cols.append(col),
        )

    def _drop(self, table: Tab) -> tuple[str, Effect]:
        col = self.dice.choice(table.cols)
        return f"DROP COLUMN {col.name}", lambda: table.cols.remove(col)

    def _rename(self, table: Tab) -> tuple[str, Effect]:
        if self.dice.random() < 0.3:
            other = self.state.fresh("t")
            return f"RENAME TO {other}", lambda: setattr(table, "name", other)
        col, new = self.dice.choice(table.cols), self.dice.choice((*_NAMES, self.state.fresh("y")))
        return f"RENAME COLUMN {col.name} TO {new}", lambda: setattr(col, "name", new)

    def _retype(self, table: Tab) -> tuple[str, Effect]:
        col, type_ = self.dice.choice(table.cols), drawn_type(self.dice)
        using = self.dice.choice(
            ("", "", f" USING TRY_CAST({col.name} AS {cast(type_)})", " USING NULL")
        )
        if col.required and using == " USING NULL":
            using = ""  # DuckDB leaves NULLs in it
        return f"ALTER {col.name} TYPE {cast(type_)}{using}", lambda: setattr(col, "type", type_)

    def _default(self, table: Tab) -> tuple[str, Effect]:
        col = self.dice.choice(table.cols)
        form = self.dice.choice((f"SET DEFAULT {literal(self.dice, col.type)}", "DROP DEFAULT"))
        return f"ALTER {col.name} {form}", nothing

    def _null(self, table: Tab) -> tuple[str, Effect]:
        col = self.dice.choice(table.cols)
        word = self.dice.choice(("SET", "DROP"))
        return f"ALTER {col.name} {word} NOT NULL", lambda: setattr(col, "required", word == "SET")
