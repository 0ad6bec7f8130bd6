"""Random tables, changes and queries of PostgreSQL's language."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from random import Random
from uuid import UUID

from tests.postgres_grammar import aggregates
from tests.postgres_grammar.expressions import (
    CODED,
    NUMBERS,
    VALUES,
    Name,
    condition,
    expression,
    value,
)

TRANSACTIONS = 0.08
"""How many statements begin or end a transaction."""
#: Values of Python's that types take, among them ends and other forms.
BOUND: dict[str, tuple[object, ...]] = {
    "integer": (0, 5, -1, 2147483647), "bigint": (0, 5, -(2**63), 2**53 + 1),
    "text": ("", "a", "b'c", "ä"), "varchar(8)": ("a", "abcdefgh"), "boolean": (True, False),
    "numeric(10,2)": (Decimal("1.50"), Decimal("2.505"), 7, Decimal("-99999999.99")),
    "double precision": (0.5, -0.0, 1e300), "date": (date(2020, 1, 1), date(1999, 12, 31)),
    "timestamp": (datetime(2020, 1, 1, 10), datetime(2021, 6, 30, 23, 59, 59, 999999)),
    "uuid": (UUID(int=15), UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")), "bytea": (b"", b"\0\xff"),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A statement and what is bound to its placeholders."""

    sql: str
    parameters: tuple[object, ...] = ()


@dataclass
class Table:
    """A table that both sides have."""

    name: str
    #: names of columns to their types
    columns: dict[str, str]
    key: str = ""
    parent: str = ""
    definition: str = ""

    def names(self, alias: str = "") -> list[Name]:
        """The columns as they are written behind an alias."""
        return [Name(f"{alias}.{c}" if alias else c, t) for c, t in self.columns.items()]


@dataclass
class Statements:
    """What one session draws."""

    random: Random
    tables: list[Table] = field(default_factory=list)
    #: whether a transaction is open
    within: bool = False

    def create(self, name: str) -> str:
        """A table with a key or none, rules or none."""
        random = self.random
        types = [random.choice(CODED) for _ in range(2)]
        types += random.choices([*VALUES], k=random.randint(1, 4))
        table = Table(name, {"k": random.choice(("integer", "bigint", "text"))})
        items = []
        table.key = random.choice(("k", "k", ""))
        items.append(f"k {table.columns['k']} ENC" + (" PRIMARY KEY" if table.key else ""))
        for number, type_ in enumerate(types):
            column = f"c{number}"
            table.columns[column] = type_
            enc = "" if random.random() < 0.4 else " ENC"
            rule = ""
            if random.random() < 0.12:
                rule = f" DEFAULT {random.choice(VALUES[type_])}"
            elif random.random() < 0.08 and type_ in NUMBERS:
                rule = f" CHECK (c{number} <> 7)"
            elif random.random() < 0.08 and type_ in CODED:
                rule = " UNIQUE"
            elif random.random() < 0.06:
                rule = " NOT NULL"
            items.append(f"{column} {type_}{enc}{rule}")
        keyed = [t for t in self.tables if t.key]
        if keyed and random.random() < 0.35:
            parent = random.choice(keyed)
            type_ = parent.columns["k"]
            table.columns["r"] = type_
            table.parent = parent.name
            act = random.choice(("", "", " ON DELETE CASCADE", " ON DELETE SET NULL"))
            items.append(f"r {type_} ENC REFERENCES {parent.name}{act}")
        self.tables.append(table)
        return f"CREATE TABLE {name} ({', '.join(items)})"

    def insert(self) -> str:
        """INSERT of constants, of expressions or of a query; with a way out or none."""
        random, table = self.random, self.random.choice(self.tables)
        columns = [c for c in table.columns if c == "k" or random.random() < 0.85]
        rows = []
        for _ in range(random.choice((1, 1, 2, 5))):
            items = [self._own(table, column) for column in columns]
            rows.append(f"({', '.join(items)})")
        source = f"VALUES {', '.join(rows)}"
        meets = table.key and random.random() < 0.3
        if random.random() < 0.15:
            other = random.choice(self.tables)
            items = [expression(random, table.columns[c], other.names("o"), 1) for c in columns]
            if meets and other.key and other.columns["k"] == table.columns["k"]:
                items[columns.index("k")] = "o.k"
            elif meets:
                # Of rows with one key the first stays, and which that is, is nowhere said.
                meets = False
            source = f"SELECT {', '.join(items)} FROM {other.name} AS o"
            if random.random() < 0.5:
                source += f" WHERE {condition(random, other.names('o'))}"
        out = ""
        if meets:
            names = [*table.names(table.name), *table.names("excluded")]
            sets = self._sets(table, names)
            out = random.choice((
                " ON CONFLICT DO NOTHING", f" ON CONFLICT (k) DO UPDATE SET {sets}",
                f" ON CONFLICT (k) DO UPDATE SET {sets} WHERE {condition(random, names, 1)}",
            ))  # fmt: skip
        return f"INSERT INTO {table.name} ({', '.join(columns)}) {source}{out}{self._returning()}"

    def _own(self, table: Table, column: str) -> str:
        random, type_ = self.random, table.columns[column]
        if column in ("k", "r"):
            number = random.randint(0, 30)
            return f"'{number}'" if type_ == "text" else str(number)
        if random.random() < 0.05:
            return "DEFAULT"
        return value(random, type_) if random.random() < 0.85 else expression(random, type_, [], 1)

    def _sets(self, table: Table, names: list[Name]) -> str:
        random = self.random
        chosen = random.sample([*table.columns], k=random.randint(1, min(2, len(table.columns))))
        values = [
            "DEFAULT" if random.random() < 0.06 else expression(random, table.columns[c], names)
            for c in chosen
        ]
        return ", ".join(f"{c} = {value}" for c, value in zip(chosen, values, strict=True))

    def _returning(self) -> str:
        return self.random.choice(("", "", "", " RETURNING *", " RETURNING k"))

    def update(self) -> str:
        """UPDATE, also with other tables."""
        random, table = self.random, self.random.choice(self.tables)
        names = table.names("t")
        if random.random() < 0.2:
            other = random.choice(self.tables)
            both = [*names, *other.names("o")]
            where = f"t.k = o.k AND {condition(random, both, 1)}"
            if other.columns["k"] != table.columns["k"] or not other.key:
                where = f"o.k IS NULL AND {condition(random, both, 1)}"
            sets = self._sets(table, names)
            return f"UPDATE {table.name} AS t SET {sets} FROM {other.name} AS o WHERE {where}"
        sets = self._sets(table, names)
        return f"UPDATE {table.name} AS t SET {sets} WHERE {self._chosen(table)}{self._back()}"

    def _back(self) -> str:
        return self.random.choice(("", "", "", " RETURNING t.*"))

    def _chosen(self, table: Table) -> str:
        random = self.random
        if random.random() < 0.4:
            number = random.randint(0, 30)
            return f"t.k = '{number}'" if table.columns["k"] == "text" else f"t.k = {number}"
        if random.random() < 0.15:
            other = random.choice(self.tables)
            if other.columns["k"] == table.columns["k"]:
                where = condition(random, other.names("o"), 1)
                return f"t.k IN (SELECT o.k FROM {other.name} AS o WHERE {where})"
        return condition(random, table.names("t"))

    def delete(self) -> str:
        """DELETE."""
        table = self.random.choice(self.tables)
        return f"DELETE FROM {table.name} AS t WHERE {self._chosen(table)}{self._back()}"

    def merge(self) -> str:
        """MERGE over constants or another table."""
        random, table = self.random, self.random.choice(self.tables)
        key = table.columns["k"]
        rows = ", ".join(
            f"('{n}'::{key}, {n})" for n in random.sample(range(30), k=random.randint(1, 3))
        )
        sets = self._sets(table, table.names("t"))
        met = random.choice((f"UPDATE SET {sets}", "DELETE", "DO NOTHING"))
        return (
            f"MERGE INTO {table.name} AS t USING (VALUES {rows}) AS s(k, n) ON t.k = s.k"
            f" WHEN MATCHED THEN {met} WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
        )

    def query(self) -> str:
        """A query of one of many forms."""
        random, table = self.random, self.random.choice(self.tables)
        names = table.names("t")
        if random.random() < 0.5:
            other = random.choice(self.tables)
            sources = [(f"{table.name} AS t", names), (f"{other.name} AS o", other.names("o"))]
            return aggregates.block(random, sources)
        where = condition(random, names)
        numbers = [name for name in names if name.type in NUMBERS]
        form = random.randint(0, 10)
        if form == 10:
            items = random.choice(("*", "t.k", expression(random, "text", names)))
            few = random.choice(("", " ORDER BY t.k LIMIT 2", " ORDER BY t.k OFFSET 1"))
            how = random.choice(("FOR UPDATE", "FOR SHARE OF t", "FOR NO KEY UPDATE SKIP LOCKED"))
            return f"SELECT {items} FROM {table.name} AS t WHERE {self._chosen(table)}{few} {how}"
        if form <= 3:
            return f"SELECT * FROM {table.name} AS t WHERE {self._chosen(table)}"
        if form == 4 and numbers:
            number = random.choice(numbers)
            return (
                f"SELECT count(*), sum({number.text}), min({number.text}), max({number.text})"
                f" FROM {table.name} AS t WHERE {where}"
            )
        if form == 5:
            group = random.choice([n for n in names if n.type != "jsonb"])
            return (
                f"SELECT {group.text}, count(*) FROM {table.name} AS t GROUP BY {group.text}"
                f" HAVING count(*) > {random.randint(0, 2)}"
            )
        other = random.choice(self.tables)
        if form == 6 and other.columns["k"] == table.columns["k"]:
            side = random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
            return f"SELECT t.*, o.k FROM {table.name} AS t {side} {other.name} AS o ON t.k = o.k"
        if form == 7:
            item = expression(random, "text", names)
            return f"SELECT t.k, {item} AS x FROM {table.name} AS t WHERE {where}"
        if form == 8:
            own = random.choice(names)
            item = expression(random, own.type, names)
            return (
                f"WITH w AS (SELECT t.k, {item} AS x FROM {table.name} AS t)"
                f" SELECT x, count(*) OVER (PARTITION BY x) FROM w"
                if own.type != "jsonb" else f"WITH w AS (SELECT t.k FROM {table.name} AS t) TABLE w"
            )  # fmt: skip
        return (
            f"SELECT t.k FROM {table.name} AS t WHERE EXISTS (SELECT 1 FROM {other.name} AS o"
            f" WHERE {condition(random, [*names, *other.names('o')], 1)})"
        )

    def by_key(self) -> Step:
        """A statement that applications repeat, with values beside it."""
        random, table = self.random, self.random.choice(self.tables)
        column = random.choice([c for c in table.columns if table.columns[c] in BOUND])
        number = random.randint(0, 30)
        key: object = str(number) if table.columns["k"] == "text" else number
        given = random.choice((*BOUND[table.columns[column]], None))
        form = random.randint(0, 5)
        if form == 0:
            return Step(f"SELECT * FROM {table.name} WHERE k = $1", (key,))
        if form == 1:
            return Step(f"SELECT k, {column} FROM {table.name} WHERE {column} = $1", (given,))
        if form == 2:
            return Step(f"UPDATE {table.name} SET {column} = $1 WHERE k = $2", (given, key))
        if form == 3:
            return Step(f"DELETE FROM {table.name} WHERE k = $1", (key,))
        columns = ("k",) if column == "k" else ("k", column)
        values, places = ((key,), "$1") if column == "k" else ((key, given), "$1, $2")
        sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({places})"
        if table.key and form == 5:
            sql += f" ON CONFLICT (k) DO UPDATE SET {column} = excluded.{column} RETURNING k"
        return Step(sql, values)

    def next(self) -> Step:
        """Any statement."""
        if self.random.random() < 0.25:
            return self.by_key()
        if self.random.random() < TRANSACTIONS:
            self.within = not self.within
            return Step("BEGIN" if self.within else self.random.choice(("COMMIT", "ROLLBACK")))
        return Step(self._text())

    def _text(self) -> str:
        draw = self.random.random()
        if draw < 0.32:
            return self.insert()
        if draw < 0.48:
            return self.update()
        if draw < 0.56:
            return self.delete()
        if draw < 0.6:
            return self.merge()
        return self.query()
