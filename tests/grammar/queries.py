"""Queries of every form over the tables of a session."""

from __future__ import annotations

from collections.abc import Callable

from tests.grammar.expressions import Scope, named
from tests.grammar.parts import WINDOWS, Parts
from tests.grammar.types import FAMILIES, KEYS

_JOINS = (
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "SEMI JOIN",
    "ANTI JOIN",
    "CROSS JOIN",
    ",",
)
_FRAMES = (
    "", "", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
)  # fmt: skip


class Queries(Parts):
    """Draws queries over tables."""

    def any(self) -> tuple[str, str]:
        """The kind of a query, and its text."""
        forms: tuple[Callable[[], str], ...] = (
            self.scan, self.scan, self.scan, self.join, self.join, self.grouped, self.grouped,
            self.window, self.united, self.common, self.recursive, self.correlated, self.lateral,
            self.unnested, self.pivoted, self.unpivoted, self.distinct_on, self.values,
            self.starred,
            self.schema, self.total, self.relation,
        )  # fmt: skip
        form = self.dice.choice(forms)
        return form.__name__.replace("_", " "), form()

    def scan(self) -> str:
        """One table; only here may parts fail, for nothing stands beside them."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        fails = self.chance(0.3)
        if fails:
            return f"SELECT {self.items(scope, safe=False)} FROM {table.name}"
        if self.chance(0.2):
            return f"SELECT * FROM {table.name} WHERE {self.expressions(scope, False).condition(1)}"
        distinct = ""
        items = self.items(scope)
        if self.chance(0.15):
            distinct, items = "DISTINCT ", f"{self.key(scope)} AS k0, {self.key(scope)} AS k1"
        return f"SELECT {distinct}{items} FROM {table.name}{self.where(scope, 0.6)}{self.ordered()}"

    def starred(self) -> str:
        """All columns of a table, said in some way."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        col = self.dice.choice(table.cols).name
        form = self.dice.choice(
            (
                f"FROM {table.name}", f"SELECT * EXCLUDE ({col}), 1 AS one FROM {table.name}",
                f"SELECT * REPLACE ({col} IS NULL AS {col}) FROM {table.name}",
                f"TABLE {table.name}",
                f"SELECT COLUMNS(*) IS NULL FROM {table.name}", f"SELECT t.* FROM {table.name} t",
                f"SELECT t FROM {table.name} t", f"SELECT count(COLUMNS(*)) FROM {table.name}",
                f"FROM {table.name} SELECT {col}",
                f"SELECT * RENAME ({col} AS other) FROM {table.name}",
                f"SELECT COLUMNS('.*') FROM {table.name}",
                f"SELECT max(rowid) < 0 FROM {table.name}",
            )
        )  # fmt: skip
        if "SELECT" in form and "max(" not in form and "count(" not in form:
            return form + self.where(scope, 0.3)
        return form

    def total(self) -> str:
        """Aggregates of a whole table."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        parts = []
        for number in range(self.dice.choice((1, 2, 3))):
            text = self.aggregate(scope)
            if self.chance(0.2) and text.endswith(")") and text.count("(") == 1:
                text += f" FILTER (WHERE {self.expressions(scope).condition(1)})"
            parts.append(f"{text} AS a{number}")
        return f"SELECT {', '.join(parts)} FROM {table.name}{self.where(scope, 0.4)}"

    def grouped(self) -> str:
        """GROUP BY in its forms."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        keys = [self.key(scope) for _ in range(self.dice.choice((1, 1, 2)))]
        shown = ", ".join(f"{key} AS g{number}" for number, key in enumerate(keys))
        columns = ", ".join(
            f"{self.aggregate(scope)} AS a{number}" for number in range(self.dice.choice((1, 2)))
        )
        listed = ", ".join(keys)
        by = self.dice.choice(
            (listed, listed, "ALL", f"ROLLUP ({listed})", f"CUBE ({listed})",
             f"GROUPING SETS (({listed}), ({keys[0]}), ())",
             ", ".join(str(number + 1) for number in range(len(keys))))
        )  # fmt: skip
        having = ""
        if self.chance(0.25):
            having = f" HAVING {self.dice.choice(('count(*) > 1', 'count(*) < 3', 'max(1) = 1'))}"
        return (
            f"SELECT {shown}, {columns} FROM {table.name}{self.where(scope, 0.3)}"
            f" GROUP BY {by}{having}{self.ordered(limited=False)}"
        )

    def joined(self) -> tuple[str, Scope]:
        """A join as a FROM, and what it gives."""
        first, second = self.table(), self.table()
        left, right = [("l", col) for col in first.cols], [("r", col) for col in second.cols]
        join = self.dice.choice(_JOINS)
        text = f"{first.name} l{'' if join == ',' else ' '}{join} {second.name} r"
        pairs = [(a, b) for a in left for b in right if a[1].family == b[1].family]
        shared = [a[1].name for a, b in pairs if a[1].name == b[1].name and a[1].family in KEYS]
        if join not in ("CROSS JOIN", ","):
            if shared and self.chance(0.3) and join in ("JOIN", "LEFT JOIN"):
                text += f" USING ({self.dice.choice(shared)})"
                left = [e for e in left if e[1].name not in shared]
                right = [e for e in right if e[1].name not in shared]
            elif pairs and self.chance(0.8):
                a, b = self.dice.choice(pairs)
                sign = self.dice.choice(("=", "=", "=", "<", ">=", "IS NOT DISTINCT FROM"))
                text += f" ON {named(a)} {sign} {named(b)}"
            else:
                text += f" ON {self.expressions([*left, *right]).condition(1)}"
        scope = left if join in ("SEMI JOIN", "ANTI JOIN") else [*left, *right]
        return text, scope

    def join(self) -> str:
        """Two tables."""
        text, scope = self.joined()
        if self.chance(0.25):
            return f"SELECT {self.aggregate(scope)} AS a FROM {text}{self.where(scope, 0.3)}"
        items, where = self.items(scope, names=True), self.where(scope, 0.4)
        return f"SELECT {items} FROM {text}{where}{self.ordered()}"

    def window(self) -> str:
        """Window functions over a total order."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        over = f"ORDER BY {', '.join(col.name for col in table.cols)}"
        if self.chance(0.5):
            over = f"PARTITION BY {self.key(scope)} {over}"
        call = self.aggregate(scope, WINDOWS)
        plain = not call.startswith(
            ("row_n", "rank", "dense", "ntile", "lag", "lead", "perc", "cume")
        )
        frame = self.dice.choice(_FRAMES) if plain else ""
        keys = self.key(scope)
        qualify = self.dice.choice(("", "", f" QUALIFY row_number() OVER ({over}) <= 2"))
        if self.chance(0.3):
            return (
                f"SELECT {keys} AS k, {call} OVER w AS w FROM {table.name}"
                f" WINDOW w AS ({over}{frame}){qualify}"
            )
        return f"SELECT {keys} AS k, {call} OVER ({over}{frame}) AS w FROM {table.name}{qualify}"

    def united(self) -> str:
        """Set operations."""
        word = self.dice.choice(
            ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL",
             "UNION BY NAME", "UNION ALL BY NAME")
        )  # fmt: skip
        family = self.dice.choice(KEYS)
        kinds = self.dice.choice(list(FAMILIES)) if word.startswith("UNION ALL") else family
        sides = []
        for _ in range(2):
            table = self.table()
            scope = [("", col) for col in table.cols]
            text = self.expressions(scope).of(kinds, 1)
            sides.append(f"SELECT {text} AS u FROM {table.name}{self.where(scope, 0.3)}")
        return f"{sides[0]} {word} {sides[1]}{self.ordered() if kinds == family else ''}"

    def common(self) -> str:
        """WITH, one inside of the other."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        key = self.key(scope)
        word = self.dice.choice(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
        return (
            f"WITH x AS {word}(SELECT {key} AS k, {self.items(scope, names=True)} FROM {table.name}"
            f"{self.where(scope)}), y AS (SELECT k, count(*) AS n FROM x GROUP BY k)"
            f" SELECT x.*, y.n FROM x JOIN y ON x.k IS NOT DISTINCT FROM y.k{self.ordered()}"
        )

    def recursive(self) -> str:
        """WITH RECURSIVE."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        word = self.dice.choice(("UNION", "UNION ALL"))
        return (
            f"WITH RECURSIVE r(n) AS (SELECT 1 {word} SELECT n + 1 FROM r WHERE n < 4)"
            f" SELECT n, {self.aggregate(scope)} AS a FROM r, {table.name} GROUP BY n"
        )

    def correlated(self) -> str:
        """Subqueries, of which most know the row outside."""
        outer, inner = self.table(), self.table()
        left, right = [("o", col) for col in outer.cols], [("i", col) for col in inner.cols]
        pairs = [(a, b) for a in left for b in right if a[1].family == b[1].family]
        on = "true"
        if pairs:
            a, b = self.dice.choice(pairs)
            on = f"{named(a)} = {named(b)}"
        key, own = self.key(left), self.key(right)
        head, rows = f"SELECT {key} AS k", f"FROM {inner.name} i WHERE {on}"
        form = self.dice.choice(
            (
                f"{head} FROM {outer.name} o WHERE {{not}}EXISTS (SELECT 1 {rows})",
                f"{head}, (SELECT count(*) {rows}) AS n FROM {outer.name} o",
                f"{head}, (SELECT max({own}) {rows}) AS m FROM {outer.name} o",
                f"{head} FROM {outer.name} o WHERE (SELECT count(*) FROM {inner.name} i) > 2",
                f"{head}, ARRAY(SELECT {own} {rows} ORDER BY 1) AS l FROM {outer.name} o",
                f"{head} FROM (SELECT * FROM {outer.name}) o WHERE {{not}}({key} IS NULL)",
            )
        )
        if pairs and self.chance(0.3):
            a, b = self.dice.choice(pairs)
            form = (
                f"SELECT {key} AS k FROM {outer.name} o WHERE {named(a)} {{not}}IN"
                f" (SELECT {named(b)} FROM {inner.name} i{self.where(right, 0.4)})"
            )
        return form.replace("{not}", self.dice.choice(("", "NOT ")))

    def lateral(self) -> str:
        """A subquery in FROM that knows the row beside it."""
        outer, inner = self.table(), self.table()
        left, right = [("o", col) for col in outer.cols], [("i", col) for col in inner.cols]
        word = self.dice.choice((", LATERAL", " LEFT JOIN LATERAL", " CROSS JOIN LATERAL"))
        on = " ON true" if "LEFT" in word else ""
        condition = self.expressions([*left, *right]).condition(1)
        return (
            f"SELECT {self.key(left)} AS k, s.* FROM {outer.name} o{word} (SELECT count(*) AS n,"
            f" min({self.key(right)}) AS m FROM {inner.name} i WHERE {condition}) s{on}"
        )

    def unnested(self) -> str:
        """Lists and structs in rows of their own."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        family = self.dice.choice(("ints", "texts", "decs", "structs", "moods", "dates"))
        text = self.expressions(scope).of(family, 1)
        return self.dice.choice(
            (
                f"SELECT {self.key(scope)} AS k, unnest({text}) AS u FROM {table.name}",
                f"SELECT u FROM {table.name} t, unnest({text}) AS n(u)",
                f"SELECT unnest({text}, recursive := true) FROM {table.name}",
                f"SELECT count(*) AS n, u FROM (SELECT unnest({text}) AS u FROM {table.name})"
                " GROUP BY u",
            )
        )  # fmt: skip

    def pivoted(self) -> str:
        """PIVOT, both ways of writing it."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        keys = [c.name for c in table.cols if c.family in ("text", "bool", "mood", "int", "date")]
        if not keys:
            return self.total()
        key, by = self.dice.choice(keys), self.dice.choice(keys)
        call = self.dice.choice(("count(*)", f"min({self.key(scope)})", f"max({self.key(scope)})"))
        return self.dice.choice(
            (
                f"PIVOT {table.name} ON {key} USING {call} GROUP BY {by}",
                f"PIVOT (SELECT {key}, {by} AS b FROM {table.name}) ON {key} USING count(*) AS n",
                f"FROM (PIVOT {table.name} ON {key} IN (1, 2) USING count(*) GROUP BY {by})",
                f"SELECT * FROM (SELECT {key} AS p, 1 AS v FROM {table.name})"
                " PIVOT (sum(v) FOR p IN ('a', 'b', 'ok'))",
            )
        )  # fmt: skip

    def unpivoted(self) -> str:
        """UNPIVOT."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        family = self.dice.choice(("int", "text", "dec", "date"))
        parts = ", ".join(f"{self.expressions(scope).of(family, 1)} AS u{n}" for n in range(2))
        nulls = self.dice.choice(("", " INCLUDE NULLS"))
        inner = f"(SELECT {parts}, {self.key(scope)} AS k FROM {table.name})"
        return self.dice.choice(
            (
                f"UNPIVOT{nulls} {inner} ON u0, u1 INTO NAME n VALUE v",
                f"UNPIVOT{nulls} {inner} ON COLUMNS(* EXCLUDE (k))",
                f"SELECT * FROM {inner} UNPIVOT{nulls} (v FOR n IN (u0, u1))",
            )
        ).replace("UNPIVOT INCLUDE NULLS (SELECT", "UNPIVOT (SELECT")

    def distinct_on(self) -> str:
        """DISTINCT ON with a total order."""
        table = self.table()
        scope = [("", col) for col in table.cols]
        columns = ", ".join(col.name for col in table.cols)
        key = self.key(scope)
        return f"SELECT DISTINCT ON ({key}) * FROM {table.name} ORDER BY {key}, {columns}"

    def values(self) -> str:
        """No table at all."""
        expressions = self.expressions((), safe=False)
        if self.chance(0.5):
            return f"SELECT {expressions.any(2)} AS v"
        row = f"({expressions.of('int', 0)}, {expressions.of('text', 0)})"
        return f"SELECT * FROM (VALUES {row}, (1, 'a')) v(a, b){self.ordered()}"

    def relation(self) -> str:
        """Functions that are tables."""
        table = self.table()
        return self.dice.choice(
            (
                "SELECT * FROM range(5) r(i)", "FROM generate_series(3, 1, -1)",
                f"SELECT i, count(*) AS n FROM range(2) r(i), {table.name} GROUP BY i",
                f"FROM query_table('{table.name}')",
                f"SELECT count(*) AS n FROM query('FROM {table.name}')",
                "SELECT * FROM repeat_row(1, 'a', num_rows := 2)",
                f"SELECT column_name, column_type FROM (DESCRIBE {table.name})",
                f"SELECT n FROM (SELECT count(*) AS n FROM {table.name}) WHERE n >= 0",
            )
        )  # fmt: skip

    def schema(self) -> str:
        """What there is."""
        table = self.table()
        return self.dice.choice(
            (
                f"DESCRIBE {table.name}", f"DESCRIBE SELECT * FROM {table.name}",
                "SELECT table_name, column_name, data_type, is_nullable"
                " FROM information_schema.columns WHERE table_schema = 'main' ORDER BY ALL",
                "SELECT table_name FROM duckdb_tables() ORDER BY ALL", "SHOW TABLES",
                "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
                f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table.name}')",
                "SELECT constraint_type, constraint_column_names FROM duckdb_constraints()",
                f"SELECT column_name, null_percentage FROM (SUMMARIZE {table.name})",
                "SELECT sequence_name FROM duckdb_sequences() ORDER BY ALL",
                f"SELECT typeof(COLUMNS(*)) FROM {table.name}",
            )
        )  # fmt: skip
