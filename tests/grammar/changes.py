"""INSERT, UPDATE, DELETE, MERGE."""

from __future__ import annotations

from random import Random

from tests.grammar.expressions import Expressions
from tests.grammar.queries import Queries
from tests.grammar.types import Col, Tab, cast, literal


class Changes:
    """Draws changes of the rows of a table."""

    def __init__(self, dice: Random, queries: Queries) -> None:
        self.dice = dice
        self.queries = queries

    def any(self, table: Tab) -> tuple[str, str]:
        """The kind of a change, and its text."""
        forms = (self.insert, self.insert, self.insert, self.select, self.upsert, self.update,
                 self.update, self.delete, self.merge, self.by_name, self.defaults)  # fmt: skip
        form = self.dice.choice(forms)
        return form.__name__.replace("_", " "), form(table)

    def insert(self, table: Tab) -> str:
        """INSERT … VALUES."""
        cols = table.written()
        listed = ""
        if self.dice.random() < 0.3:
            cols = [c for c in cols if c.required or c.key or self.dice.random() < 0.7] or cols
            listed = f" ({', '.join(c.name for c in cols)})"
        if table.written() != table.cols and not listed:
            listed = f" ({', '.join(c.name for c in cols)})"
        rows = ", ".join(self._row(cols) for _ in range(self.dice.choice((1, 1, 2, 3, 6))))
        return f"INSERT INTO {table.name}{listed} VALUES {rows}{self._returning(table)}"

    def _row(self, cols: list[Col]) -> str:
        return f"({', '.join(self._value(col) for col in cols)})"

    def _value(self, col: Col) -> str:
        if self.dice.random() < 0.03:
            return "DEFAULT"
        if self.dice.random() < 0.08:
            return Expressions(self.dice, (), False).of(col.family, 1)
        return literal(self.dice, col.type, 0.02 if col.required or col.key else 0.12)

    def _returning(self, table: Tab, share: float = 0.15) -> str:
        if self.dice.random() > share:
            return ""
        scope = [("", col) for col in table.cols]
        return self.dice.choice(
            (" RETURNING *", f" RETURNING {Expressions(self.dice, scope, True).any(1)} AS r")
        )

    def _source(self, table: Tab, cols: list[Col]) -> str:
        """A query that gives values for columns."""
        source = self.queries.table()
        scope = [("s", col) for col in source.cols]
        expressions = Expressions(self.dice, scope, True)
        items = ", ".join(f"{self._given(expressions, col)} AS {col.name}" for col in cols)
        where = self.queries.where(scope, 0.5)
        return f"SELECT {items} FROM {source.name} s{where}"

    def _given(self, expressions: Expressions, col: Col) -> str:
        """An expression that the column takes."""
        text = expressions.of(col.family, 1)
        return text if self.dice.random() < 0.4 else f"TRY_CAST({text} AS {cast(col.type)})"

    def select(self, table: Tab) -> str:
        """INSERT … SELECT."""
        cols = table.written()
        listed = ", ".join(col.name for col in cols)
        source = self._source(table, cols)
        return f"INSERT INTO {table.name} ({listed}) {source}{self._returning(table)}"

    def by_name(self, table: Tab) -> str:
        """INSERT BY NAME."""
        cols = table.written()
        self.dice.shuffle(cols)
        return f"INSERT INTO {table.name} BY NAME {self._source(table, cols)}"

    def upsert(self, table: Tab) -> str:
        """ON CONFLICT, where there is a key."""
        keys = table.keys()
        if not keys:
            return self.insert(table)
        cols = table.written()
        listed = ", ".join(col.name for col in cols)
        row = self._row(cols)
        others = [col for col in cols if not col.key]
        target = ", ".join(col.name for col in keys)
        given = f"INTO {table.name} ({listed}) VALUES {row}"
        forms = [
            f"INSERT OR REPLACE {given}", f"INSERT OR IGNORE {given}",
            f"INSERT {given} ON CONFLICT ({target}) DO NOTHING",
        ]  # fmt: skip
        if others:
            col = self.dice.choice(others)
            scope = [("", c) for c in others]
            new = self.dice.choice(
                (f"excluded.{col.name}", Expressions(self.dice, scope, True).of(col.family, 1))
            )
            where = self.dice.choice(("", "", f" WHERE {col.name} IS NOT NULL"))
            forms += [
                f"INSERT {given} ON CONFLICT ({target}) DO UPDATE SET {col.name} = {new}{where}"
            ] * 2
        return self.dice.choice(forms) + self._returning(table)

    def update(self, table: Tab) -> str:
        """UPDATE, perhaps FROM another table."""
        cols = table.written()
        scope = [("", col) for col in table.cols]
        chosen = self.dice.sample(cols, min(len(cols), self.dice.choice((1, 1, 2))))
        safe = self.dice.random() < 0.8
        expressions = Expressions(self.dice, scope, safe)
        sets = ", ".join(f"{col.name} = {self._set(expressions, col)}" for col in chosen)
        if self.dice.random() < 0.15:
            other = self.queries.table()
            scope = [
                ("", col) for col in table.cols if col.name not in {c.name for c in other.cols}
            ]
            condition = Expressions(self.dice, [*scope], True).condition(1)
            return (
                f"UPDATE {table.name} SET {chosen[0].name} = {literal(self.dice, chosen[0].type)}"
                f" FROM {other.name} AS o WHERE o.{other.cols[0].name} IS NOT NULL"
                + (f" AND {condition}" if scope else "")
            )
        where = self.queries.where(scope, 0.8) if safe else ""
        return f"UPDATE {table.name} SET {sets}{where}{self._returning(table)}"

    def _set(self, expressions: Expressions, col: Col) -> str:
        if self.dice.random() < 0.05:
            return "DEFAULT"
        if self.dice.random() < 0.4:
            return literal(self.dice, col.type)
        return self._given(expressions, col)

    def delete(self, table: Tab) -> str:
        """DELETE, perhaps USING another table; all rows are seldom meant."""
        scope = [("", col) for col in table.cols]
        if self.dice.random() < 0.03:
            return f"DELETE FROM {table.name}"
        if self.dice.random() < 0.2:
            return self._using(table)
        where = self.queries.where(scope, 1)
        return f"DELETE FROM {table.name}{where}{self._returning(table)}"

    def _using(self, table: Tab) -> str:
        other = self.queries.table()
        pairs = [(a, b) for a in table.cols for b in other.cols if a.family == b.family]
        if not pairs:
            return f"DELETE FROM {table.name} WHERE {table.cols[0].name} IS NULL"
        a, b = self.dice.choice(pairs)
        return (
            f"DELETE FROM {table.name} USING {other.name} o"
            f" WHERE {table.name}.{a.name} = o.{b.name} AND o.{other.cols[0].name} IS NOT NULL"
        )

    def merge(self, table: Tab) -> str:
        """MERGE on a column; a row that two rows match is an error in neither."""
        keys = table.keys() or table.written()[:1]
        key = keys[0]
        cols = table.written()
        names = ", ".join(col.name for col in cols)
        row = ", ".join(
            f"{literal(self.dice, c.type, 0.02 if c.key or c.required else 0.1)} AS {c.name}"
            for c in cols
        )
        col = self.dice.choice(cols)
        matched = self.dice.choice(
            ("DELETE", "DO NOTHING", f"UPDATE SET {col.name} = s.{col.name}",
            f"UPDATE SET {col.name} = NULL",
             "UPDATE")
        )  # fmt: skip
        missing = self.dice.choice(
            ("DO NOTHING", f"INSERT ({names}) VALUES ({', '.join(f's.{c.name}' for c in cols)})",
             "INSERT BY NAME")
        )  # fmt: skip
        condition = self.dice.choice(("", "", f" AND s.{col.name} IS NOT NULL"))
        gone = self.dice.choice(("",) * 5 + (" WHEN NOT MATCHED BY SOURCE THEN DELETE",))
        return (
            f"MERGE INTO {table.name} AS t USING (SELECT {row}) AS s ON t.{key.name} = s.{key.name}"
            f" WHEN MATCHED{condition} THEN {matched} WHEN NOT MATCHED THEN {missing}{gone}"
            + self.dice.choice(("", "", " RETURNING merge_action"))
        )

    def defaults(self, table: Tab) -> str:
        """INSERT … DEFAULT VALUES."""
        return f"INSERT INTO {table.name} DEFAULT VALUES{self._returning(table)}"
