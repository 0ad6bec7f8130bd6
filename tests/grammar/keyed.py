"""Tables with keys, references and defaults, and the changes that such tables are made for."""

from __future__ import annotations

from tests.grammar.changes import Changes
from tests.grammar.definitions import Definitions, Made
from tests.grammar.expressions import Expressions
from tests.grammar.types import COMMON, KEYS, Col, Tab, cast, declared, drawn_type

#: Types of keys, the usual ones more often; of some few values, so that these come again.
_KEY_TYPES = (
    "INTEGER", "BIGINT", "INTEGER", "BIGINT", "VARCHAR", "VARCHAR", "UTINYINT", "DATE",
    "TIMESTAMP", "DECIMAL(18,3)", "UUID", "BOOLEAN", "HUGEINT", "mood", "DOUBLE", "TIMESTAMPTZ",
    "BLOB", "NOCASE",
)  # fmt: skip
_SMALL = ("INTEGER", "BIGINT", "HUGEINT")
MOST_SMALL = 12


class KeyedDefinitions(Definitions):
    """Draws tables, nearly all of them with keys."""

    def table(self) -> Made:
        """CREATE TABLE, perhaps one that refers to another."""
        table = Tab(self.state.fresh("t"), self._cols())
        parents = [t for t in self.state.base() if len(t.keys()) == 1 and not t.temporary]
        tail = []
        if parents and self.dice.random() < 0.3:
            parent = self.dice.choice(parents)
            (key,) = parent.keys()
            if key.primary:
                col = Col("r", key.type, refers=True)
                table.cols.append(col)
                tail.append(f"FOREIGN KEY (r) REFERENCES {parent.name} ({key.name})")
        text = self._shaped(table, tail)
        return "create table", text, lambda: self.state.tables.append(table)

    def _cols(self) -> list[Col]:
        names = ["k", "l", "a", "b", "c", "d"][: self.dice.choice((3, 4, 5, 5, 6))]
        cols = [Col(name, self.dice.choice(_KEY_TYPES)) for name in names[:2]]
        for name in names[2:]:
            type_ = self.dice.choice(COMMON) if self.dice.random() < 0.6 else drawn_type(self.dice)
            cols.append(Col(name, type_))
        return cols

    def _shaped(self, table: Tab, tail: list[str]) -> str:
        """The statement; which columns are keys is noted."""
        first, second, *others = table.cols
        shape = self.dice.choice(("one", "one", "one", "both", "both", "each", "unique", "none"))
        words = {"one": " PRIMARY KEY", "each": " PRIMARY KEY", "unique": " UNIQUE"}
        parts = [f"{first.name} {declared(first.type, self.state.enc())}{words.get(shape, '')}"]
        parts.append(f"{second.name} {declared(second.type, self.state.enc())}")
        first.key, first.primary = shape != "none", shape in ("one", "each")
        second.key = shape == "both"
        if shape == "each":
            # DuckDB takes NULLs of two keys to be in conflict with one another.
            parts[1] += " UNIQUE NOT NULL"
            second.required = table.keys_apart = True
        if shape == "both":
            word = self.dice.choice(("PRIMARY KEY", "PRIMARY KEY", "UNIQUE"))
            tail.insert(0, f"{word} ({first.name}, {second.name})")
        for col in others:
            if col.refers:
                parts.append(f"{col.name} {declared(col.type, self.state.enc())}")
            elif self.state.alone and col.type == "BIGINT" and self.dice.random() < 0.15:
                parts.append(f"{col.name} {declared(col.type, self.state.enc())}"
                             " DEFAULT nextval('s2')")  # fmt: skip
                table.numbered = True
            else:
                parts.append(self._declared(table, col, False))
        if self.dice.random() < 0.2:
            scope = [("", col) for col in table.cols if not col.generated]
            condition = Expressions(self.dice, scope, True).condition(1)
            tail.append(f"CHECK ({condition} OR {self.dice.choice(scope)[1].name} IS NOT NULL)")
        return f"CREATE TABLE {table.name} ({', '.join([*parts, *tail])})"


class KeyedChanges(Changes):
    """Draws changes of rows that are named by their keys, beside all others."""

    def any(self, table: Tab) -> tuple[str, str]:
        """The kind of a change, and its text."""
        forms = [
            self.insert, self.insert, self.insert, self.upsert, self.upserts, self.upserts,
            self.by_key, self.by_key, self.by_key, self.by_key, self.moved, self.among,
            self.from_groups, self.merged, self.update, self.delete,
        ]  # fmt: skip
        if not table.numbered:
            forms += [self.select, self.by_name, self.upserted_query, self.merge]
        if self.dice.random() < 0.03:
            return "truncate", f"TRUNCATE {table.name}"
        form = self.dice.choice(forms)
        return form.__name__.replace("_", " "), form(table)

    def _value(self, col: Col) -> str:
        """Keys have few values, so that they collide."""
        if col.type in _SMALL and (col.key or col.refers) and self.dice.random() < 0.85:
            return str(self.dice.randrange(MOST_SMALL))
        return super()._value(col)

    def _named(self, table: Tab) -> str:
        """A condition on the whole key, or on one of its columns."""
        keys = table.keys() or table.written()[:1]
        if len(keys) > 1 and self.dice.random() < 0.25:
            keys = keys[:1]
        if self.dice.random() < 0.2:
            key = keys[0]
            listed = ", ".join(self._value(key) for _ in range(self.dice.choice((1, 2, 4))))
            return f"{key.name} IN ({listed})"
        return " AND ".join(f"{key.name} = {self._value(key)}" for key in keys)

    def by_key(self, table: Tab) -> str:
        """UPDATE or DELETE of what a key names."""
        where = f" WHERE {self._named(table)}"
        scope = [("", col) for col in table.cols]
        if self.dice.random() < 0.2:
            where += f" AND {Expressions(self.dice, scope, True).condition(1)}"
        if self.dice.random() < 0.35:
            return f"DELETE FROM {table.name}{where}{self._returning(table)}"
        cols = [col for col in table.written() if not col.key] or table.written()
        chosen = self.dice.sample(cols, min(len(cols), self.dice.choice((1, 1, 2))))
        expressions = Expressions(self.dice, scope, True)
        sets = ", ".join(f"{col.name} = {self._set(expressions, col)}" for col in chosen)
        return f"UPDATE {table.name} SET {sets}{where}{self._returning(table)}"

    def moved(self, table: Tab) -> str:
        """UPDATE of a key, onto a value that may be taken."""
        key = self.dice.choice(table.keys() or table.written()[:1])
        value = self._value(key)
        if key.type in _SMALL:
            value = self.dice.choice((value, f"{key.name} + 1", f"-{key.name}"))
        where = f" WHERE {self._named(table)}" if self.dice.random() < 0.8 else ""
        return f"UPDATE {table.name} SET {key.name} = {value}{where}{self._returning(table)}"

    def among(self, table: Tab) -> str:
        """UPDATE or DELETE of what a subquery names."""
        other = self.queries.table()
        pairs = [(a, b) for a in table.cols for b in other.cols if a.family == b.family]
        if not pairs:
            return self.by_key(table)
        a, b = self.dice.choice(pairs)
        inner = self.queries.where([("o", col) for col in other.cols], 0.5)
        listed = f"SELECT o.{b.name} FROM {other.name} o{inner}"
        where = self.dice.choice((
            f"{table.name}.{a.name} IN ({listed})", f"{table.name}.{a.name} NOT IN ({listed})",
            f"EXISTS (SELECT 1 FROM {other.name} o WHERE o.{b.name} = {table.name}.{a.name})",
            f"{table.name}.{a.name} = (SELECT max(o.{b.name}) FROM {other.name} o{inner})",
        ))  # fmt: skip
        if a.family not in KEYS:
            where = where.replace("max(", "any_value(")
            if "any_value" in where:
                return self.by_key(table)
        col = self.dice.choice(table.written())
        if self.dice.random() < 0.5:
            return f"DELETE FROM {table.name} WHERE {where}"
        return f"UPDATE {table.name} SET {col.name} = {self._value(col)} WHERE {where}"

    def _groups(self, table: Tab) -> tuple[str, Col, Col] | None:
        """A query with one row for each value of a key `k`, and a value `v`; whose they are."""
        other = self.queries.table()
        keys = [col for col in table.keys() or table.written() if col.family in KEYS]
        pairs = [
            (a, b, c, d)
            for a in keys for b in other.cols if b.family == a.family
            for c in table.written() if c.family in KEYS
            for d in other.cols if d.family == c.family
        ]  # fmt: skip
        if not pairs:
            return None
        key, theirs, col, value = self.dice.choice(pairs)
        where = self.queries.where([("o", c) for c in other.cols], 0.4)
        call = self.dice.choice(("min", "max"))
        text = (
            f"SELECT o.{theirs.name} AS k, {call}(o.{value.name}) AS v FROM {other.name} o{where}"
            " GROUP BY 1"
        )
        return text, key, col

    def from_groups(self, table: Tab) -> str:
        """UPDATE FROM, or DELETE USING, one row for each key."""
        groups = self._groups(table)
        if groups is None:
            return self.by_key(table)
        text, key, col = groups
        on = f"{table.name}.{key.name} = s.k"
        if self.dice.random() < 0.3:
            return f"DELETE FROM {table.name} USING ({text}) AS s WHERE {on} AND s.v IS NOT NULL"
        value = f"TRY_CAST(s.v AS {cast(col.type)})"
        return f"UPDATE {table.name} SET {col.name} = {value} FROM ({text}) AS s WHERE {on}"

    def merged(self, table: Tab) -> str:
        """MERGE of one row for each key, in several branches."""
        groups = self._groups(table)
        if groups is None or table.numbered:
            return self.by_key(table)
        text, key, col = groups
        value = f"TRY_CAST(s.v AS {cast(col.type)})"
        branches = [
            "WHEN MATCHED AND s.v IS NULL THEN DELETE",
            f"WHEN MATCHED AND t.{col.name} IS DISTINCT FROM {value} THEN UPDATE SET"
            f" {col.name} = {value}",
            "WHEN MATCHED THEN DO NOTHING",
        ]  # fmt: skip
        first = self.dice.randrange(len(branches))
        branches = branches[first:]
        if self.dice.random() < 0.6:
            names = [key.name, *([col.name] if col is not key else [])]
            values = [f"TRY_CAST(s.k AS {cast(key.type)})", value][: len(names)]
            branches.append(
                f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(values)})"
            )
        if self.dice.random() < 0.2:
            change = self.dice.choice(("DELETE", f"UPDATE SET {col.name} = NULL", "DO NOTHING"))
            branches.append(f"WHEN NOT MATCHED BY SOURCE THEN {change}")
        return (
            f"MERGE INTO {table.name} AS t USING ({text}) AS s ON t.{key.name} = s.k"
            f" {' '.join(branches)}"
        )

    def upserts(self, table: Tab) -> str:
        """ON CONFLICT of several rows, which may conflict with one another."""
        keys = table.keys()
        if not keys:
            return self.insert(table)
        cols = [c for c in table.written() if c.key or c.required or self.dice.random() < 0.8]
        rows = ", ".join(self._row(cols) for _ in range(self.dice.choice((1, 2, 3, 5))))
        into = f"INTO {table.name} ({', '.join(c.name for c in cols)}) VALUES {rows}"
        return self._tail(table, into, cols) + self._returning(table)

    def _tail(self, table: Tab, into: str, cols: list[Col]) -> str:
        """What is done on conflict."""
        keys = table.keys()
        target = ", ".join(col.name for col in keys)
        forms = [f"INSERT {into} ON CONFLICT ({target}) DO NOTHING"]
        if not table.keys_apart:
            # Of several new rows that conflict by two keys, DuckDB leaves out what conflicts with
            # a row that it leaves out itself.
            forms += [
                f"INSERT OR REPLACE {into}", f"INSERT OR IGNORE {into}",
                f"INSERT {into} ON CONFLICT DO NOTHING",
            ]  # fmt: skip
        others = [col for col in cols if not col.key]
        if others:
            col = self.dice.choice(others)
            value = self.dice.choice((
                f"excluded.{col.name}", f"coalesce(excluded.{col.name}, {table.name}.{col.name})",
                self._value(col), "DEFAULT" if not table.numbered else "NULL",
            ))  # fmt: skip
            where = self.dice.choice((
                "", "", "", f" WHERE {table.name}.{col.name} IS DISTINCT FROM excluded.{col.name}",
                f" WHERE excluded.{col.name} IS NOT NULL",
            ))  # fmt: skip
            forms += [
                f"INSERT {into} ON CONFLICT ({target}) DO UPDATE SET {col.name} = {value}{where}"
            ] * 4
        return self.dice.choice(forms)

    def upserted_query(self, table: Tab) -> str:
        """ON CONFLICT of a query's rows, in an order that decides which of them stays."""
        if not table.keys():
            return self.select(table)
        cols = table.written()
        source = self._source(table, cols)
        into = f"INTO {table.name} ({', '.join(c.name for c in cols)}) {source} ORDER BY ALL"
        return self._tail(table, into, cols)

    def rows(self, table: Tab) -> str:
        """A query whose rows can be written into a file and read again: of two wrong values in
        one, either may be the first that DuckDB sees.
        """
        origin = self.queries.table()
        expressions = Expressions(self.dice, [("s", col) for col in origin.cols], True)
        items = ", ".join(
            f"TRY_CAST({expressions.of(col.family, 1)} AS {cast(col.type)}) AS {col.name}"
            for col in table.written()
        )
        return f"SELECT {items} FROM {origin.name} s{self.queries.where(expressions.scope)}"

    def listed(self, table: Tab) -> tuple[str, list[str]]:
        """An INSERT or an upsert by values of Python's, and their types."""
        cols = table.written()
        marks = ", ".join("?" for _ in cols)
        names = ", ".join(c.name for c in cols)
        sql = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"
        if table.keys() and not table.keys_apart and self.dice.random() < 0.5:
            sql += " ON CONFLICT DO NOTHING"
        return sql, [col.type for col in cols]
