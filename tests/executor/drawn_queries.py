"""Queries that are drawn: common table expressions, unions, subqueries, stars, joins, groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

#: Names, types and ceilings of columns.
TABLES = {
    "s": (("k", "BIGINT", "plaintext"), ("a", "BIGINT", "access"), ("b", "VARCHAR", "access"),
          ("c", "VARCHAR", "plaintext"), ("d", "BIGINT", "order")),
    "u": (("k", "BIGINT", "plaintext"), ("e", "VARCHAR", "equality"), ("f", "VARCHAR", "plaintext"),
          ("g", "BIGINT", "size")),
    "o": (("k", "BIGINT", "plaintext"), ("h", "VARCHAR", "plaintext")),
}  # fmt: skip
SCHEMA = (
    *(
        f"CREATE TABLE {table} ({', '.join(f'{name} {type_}' for name, type_, _ in columns)})"
        for table, columns in TABLES.items()
    ),
    "CREATE VIEW v AS SELECT a AS x, c AS y, k AS z FROM s WHERE k < 4",
    "CREATE VIEW w(x, y) AS SELECT k, CASE WHEN e = 'q' THEN f END FROM u",
    "CREATE MACRO twice(n) AS n + n",
    "CREATE MACRO those(n) AS TABLE SELECT c AS x, k AS y FROM s WHERE a > n",
)
VIEWS = {"v": {"x": "BIGINT", "y": "VARCHAR", "z": "BIGINT"}, "w": {"x": "BIGINT", "y": "VARCHAR"}}

Columns = dict[str, str]
"""Types by name."""


@dataclass(slots=True)
class Draw:
    """Draws queries; `known` are the tables, views and common table expressions in sight."""

    dice: Random
    known: dict[str, Columns] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        tables = {t: {n: type_ for n, type_, _ in columns} for t, columns in TABLES.items()}
        self.known = {**tables, **tables, **VIEWS}

    def fresh(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def statement(self) -> tuple[str, list[str]]:
        """A query whose columns have different names, and these."""
        heads = []
        for _ in range(self.dice.choice((0, 0, 0, 1, 2))):
            text, columns = self.query(1)
            name = self.fresh()
            hint = self.dice.choice(("", "", "MATERIALIZED "))
            heads.append(f"{name} AS {hint}({text})")
            self.known[name] = columns
        text, columns = self.query(2)
        return (f"WITH {', '.join(heads)} {text}" if heads else text), list(columns)

    def query(self, depth: int) -> tuple[str, Columns]:
        forms: list[Callable[[int], tuple[str, Columns]]] = [
            self.projected, self.projected, self.starred, self.starred, self.grouped, self.distinct,
            self.windowed, self.combined, self.limited, self.listed, self.lateral,
        ]  # fmt: skip
        return self.dice.choice(forms)(depth)

    # -- sources --------------------------------------------------------------------------------

    def source(self, depth: int, alias: str = "") -> tuple[str, Columns]:
        """One element of FROM, under an alias."""
        alias = alias or self.fresh()
        if depth > 0 and self.dice.random() < 0.35:
            text, columns = self.query(depth - 1)
            return f"({text}) AS {alias}", self.qualified(alias, columns)
        if self.dice.random() < 0.05:
            return f"those(2) AS {alias}", self.qualified(alias, {"x": "VARCHAR", "y": "BIGINT"})
        name = self.dice.choice(list(self.known))
        return f"{name} AS {alias}", self.qualified(alias, self.known[name])

    def qualified(self, alias: str, columns: Columns) -> Columns:
        return {f"{alias}.{name}": type_ for name, type_ in columns.items()}

    def joined(self, depth: int) -> tuple[str, Columns]:
        """FROM with one or two elements, and maybe WHERE."""
        text, columns = self.source(depth)
        if self.dice.random() < 0.35:
            right, others = self.source(depth)
            pairs = [(x, y) for x in columns for y in others if columns[x] == others[y]]
            kind = self.dice.choice(
                ("JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN")
            )
            if not pairs or kind == "CROSS JOIN":
                text += f" CROSS JOIN {right}"
            else:
                left, other = self.dice.choice(pairs)
                text += f" {kind} {right} ON {left} = {other}"
            if kind not in ("SEMI JOIN", "ANTI JOIN") or not pairs:
                columns = {**columns, **others}
        if self.dice.random() < 0.4:
            text += f" WHERE {self.condition(columns, depth)}"
        return text, columns

    # -- expressions ----------------------------------------------------------------------------

    def condition(self, columns: Columns, depth: int) -> str:
        name = self.dice.choice(list(columns))
        other = self.expression(columns, columns[name], depth - 1)
        forms = [f"{name} = {other}", f"{name} > {other}", f"{name} IS NULL",
                 f"{name} IN ({other}, {self.constant(columns[name])})",
                 f"coalesce({name} <> {other}, true)"]  # fmt: skip
        if depth > 0:
            text, inner = self.source(depth - 1)
            fitting = [n for n in inner if inner[n] == columns[name]] or [name]
            chosen = self.dice.choice(fitting)
            forms += [f"EXISTS (SELECT 1 FROM {text} WHERE {chosen} = {name})",
                      f"{name} IN (SELECT {chosen} FROM {text})"]  # fmt: skip
        return self.dice.choice(forms)

    def constant(self, type_: str) -> str:
        values = ("1", "2", "NULL") if type_ == "BIGINT" else ("'p'", "'r'", "NULL")
        return f"CAST({self.dice.choice(values)} AS {type_})"

    def expression(self, columns: Columns, type_: str, depth: int) -> str:
        fitting = [name for name in columns if columns[name] == type_]
        if not fitting or self.dice.random() < 0.1:
            return self.constant(type_)
        name = self.dice.choice(fitting)
        any_ = self.dice.choice(list(columns))
        forms = [name] * 5 + [
            f"coalesce({name}, {self.constant(type_)})",
            f"CASE WHEN {any_} IS NULL THEN {name} END",
            f"nullif({name}, {self.dice.choice(fitting)})",
            f"list_extract([{name}, {self.dice.choice(fitting)}], 2)",
            f"struct_extract({{'q': {name}}}, 'q')",
        ]
        if type_ == "BIGINT":
            forms += [f"{name} % 2", f"length(CAST({any_} AS VARCHAR))", f"twice({name})"]
        else:
            forms += [f"upper({name})", f"concat({name}, {any_})"]
        if depth > 0:
            text, inner = self.source(depth - 1)
            inside = [n for n in inner if inner[n] == type_] or [name]
            call = self.dice.choice(("max", "min"))
            forms += [f"(SELECT {call}({self.dice.choice(inside)}) FROM {text})"] * 2
        return self.dice.choice(forms)

    # -- queries --------------------------------------------------------------------------------

    def items(self, columns: Columns, depth: int) -> tuple[str, Columns]:
        parts, given = [], {}
        for _ in range(self.dice.randint(1, 3)):
            type_ = self.dice.choice(("BIGINT", "VARCHAR"))
            name = self.fresh()
            parts.append(f"{self.expression(columns, type_, depth)} AS {name}")
            given[name] = type_
        return ", ".join(parts), given

    def projected(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.joined(depth)
        items, given = self.items(columns, depth)
        return f"SELECT {items} FROM {base}", given

    def starred(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.source(depth, "q")
        plain = {name.removeprefix("q."): type_ for name, type_ in columns.items()}
        name = self.dice.choice(list(plain))
        rest = {n: t for n, t in plain.items() if n != name}
        same = [n for n in plain if plain[n] == plain[name]]
        renamed = {("zz" if n == name else n): t for n, t in plain.items()}
        forms = [("*", plain), (f"* REPLACE ({self.dice.choice(same)} AS {name})", plain),
                 (f"* RENAME ({name} AS zz)", renamed),
                 (f"COLUMNS('^{name}$')", {name: plain[name]}),
                 ]  # fmt: skip
        if "zz" not in plain:
            added = f"q.*, {self.constant('BIGINT')} AS zz"
            forms.append((added, {**plain, "zz": "BIGINT"}))
        if rest:
            forms += [(f"* EXCLUDE ({name})", rest), (f"COLUMNS(c -> c <> '{name}')", rest)]
        star, given = self.dice.choice(forms)
        where = f" WHERE {self.condition(columns, depth)}" if self.dice.random() < 0.3 else ""
        return f"SELECT {star} FROM {base}{where}", given

    def grouped(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.joined(depth)
        key, value = (self.dice.choice(list(columns)) for _ in range(2))
        call = self.dice.choice((f"min({value})", f"max({value})", f"any_value({key})"))
        keep = f" FILTER (WHERE {self.condition(columns, 0)})" if self.dice.random() < 0.3 else ""
        type_ = columns[key] if "any_value" in call else columns[value]
        group = self.dice.choice((f" GROUP BY {key}", f" GROUP BY ROLLUP ({key})", " GROUP BY ALL"))
        group += self.dice.choice(("", "", " HAVING count(*) > 1"))
        names = self.fresh(), self.fresh(), self.fresh()
        if self.dice.random() < 0.3:
            return f"SELECT count(*) AS {names[0]}, {call}{keep} AS {names[1]} FROM {base}", {
                names[0]: "BIGINT", names[1]: type_,
            }  # fmt: skip
        return (
            f"SELECT {key} AS {names[0]}, {call}{keep} AS {names[1]}, count(*){keep} AS {names[2]}"
            f" FROM {base}{group}",
            {names[0]: columns[key], names[1]: type_, names[2]: "BIGINT"},
        )

    def distinct(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.joined(depth)
        items, given = self.items(columns, depth)
        return f"SELECT DISTINCT {items} FROM {base}", given

    def windowed(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.source(depth)
        first, two, part = (self.dice.choice(list(columns)) for _ in range(3))
        name, other = self.fresh(), self.fresh()
        call = self.dice.choice(("rank()", "count(*)", f"count({two})"))
        over = f"(PARTITION BY {part} ORDER BY {two})"
        tail = f" QUALIFY {other} < 2" if self.dice.random() < 0.3 else ""
        text = f"SELECT {first} AS {name}, {call} OVER {over} AS {other} FROM {base}{tail}"
        return text, {name: columns[first], other: "BIGINT"}

    def combined(self, depth: int) -> tuple[str, Columns]:
        names = {self.fresh(): t for t in self.dice.choices(("BIGINT", "VARCHAR"), k=2)}
        sides = []
        for _ in range(2):
            base, columns = self.joined(depth - 1)
            items = ", ".join(
                f"{self.expression(columns, t, depth - 1)} AS {n}" for n, t in names.items()
            )
            sides.append(f"SELECT {items} FROM {base}")
        word = self.dice.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "UNION ALL BY NAME"))
        return f" {word} ".join(sides), names

    def limited(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.joined(depth)
        items, given = self.items(columns, depth)
        return f"SELECT {items} FROM {base} ORDER BY ALL LIMIT {self.dice.randint(1, 3)}", given

    def listed(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.source(depth)
        name = self.dice.choice(list(columns))
        type_, given = columns[name], self.fresh()
        values = f"(VALUES ({self.constant(type_)}), ({self.constant(type_)})) AS vs(z)"
        return self.dice.choice((
            f"SELECT vs.z AS {given} FROM {values} WHERE vs.z IN (SELECT {name} FROM {base})",
            f"SELECT vs.z AS {given} FROM {values}, {base} WHERE vs.z = {name}",
            f"SELECT unnest([{name}, {self.constant(type_)}]) AS {given} FROM {base}",
        )), {given: type_}  # fmt: skip

    def lateral(self, depth: int) -> tuple[str, Columns]:
        base, columns = self.source(depth)
        chosen, given = self.dice.choice(list(columns)), self.fresh()
        join = f"LATERAL (SELECT 1 AS q WHERE {self.condition(columns, 0)}) AS l"
        return f"SELECT {chosen} AS {given} FROM {base}, {join}", {given: columns[chosen]}
