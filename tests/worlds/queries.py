"""Expressions, conditions, sources and whole queries.

Queries that are only read may hold anything. What chooses rows that are written is kept to forms
whose outcome the renaming does not change (`invariant`), unless the statement must be refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.worlds.schema import Col, State, Tab

Scope = Sequence[tuple[str, Col]]
"""Columns by the alias that stands before them."""


@dataclass(slots=True)
class From:
    """A FROM clause and what it gives."""

    text: str
    scope: list[tuple[str, Col]]
    tables: list[Tab]


def scope_of(alias: str, table: Tab) -> list[tuple[str, Col]]:
    """The columns of a table under an alias."""
    return [(alias, c) for c in table.cols]


def named(entry: tuple[str, Col]) -> str:
    """A column as an expression names it."""
    alias, col = entry
    return f"{alias}.{col.name}" if alias else col.name


# ---------------------------------------------------------------------- conditions


def invariant(state: State, scope: Scope, least: int = 1) -> str:
    """A condition that is as true in one world as in the other, on columns of at least a level."""
    usable = [e for e in scope if e[1].rank >= least and (e[1].plain or e[1].universe is not None)]
    parts = []
    for _ in range(state.dice.choice((1, 1, 2))):
        if not usable:
            return "1 = 1"
        parts.append(_invariant(state, state.dice.choice(usable), usable))
    text = state.dice.choice((" AND ", " OR ")).join(parts)
    return f"NOT ({text})" if state.chance(0.1) else text


def _invariant(state: State, entry: tuple[str, Col], usable: Scope) -> str:
    name, col, dice = named(entry), entry[1], state.dice
    value = state.literal(col)
    forms = [f"{name} = {value}", f"{name} <> {value}", f"{value} = {name}",
             f"{name} IN ({value}, {state.literal(col)})", f"{name} IS NULL",
             f"{name} IS NOT NULL", f"{name} IS NOT DISTINCT FROM {value}"]  # fmt: skip
    if col.plain or col.level == "order":
        forms += [f"{name} < {value}", f"{name} >= {value}",
                  f"{name} BETWEEN {value} AND {state.literal(col)}"]  # fmt: skip
    pairs = [e for e in usable if e[1].universe is col.universe and e[1].type == col.type]
    pairs = [e for e in pairs if e != entry and e[1].plain == col.plain]
    if pairs:
        forms.append(f"{name} = {named(dice.choice(pairs))}")
    return dice.choice(forms)


def free(state: State, scope: Scope) -> str:
    """Any condition."""
    parts = []
    for _ in range(state.dice.choice((1, 1, 2, 3))):
        entry = state.dice.choice(scope)
        name, col, value = named(entry), entry[1], state.literal(entry[1])
        forms = [
            f"{name} = {value}",
            f"{name} < {value}",
            f"{name} >= {value}",
            f"{name} IN ({value}, {state.literal(col)}, NULL)",
            f"{name} IS NULL",
            f"{name} IS DISTINCT FROM {value}",
            f"coalesce({name}, {value}) = {value}",
            f"{name} BETWEEN {value} AND {state.literal(col)}",
            f"CASE WHEN {name} = {value} THEN true ELSE {name} > {value} END",
        ]
        if col.type == "VARCHAR":
            forms += [
                f"{name} LIKE {value} || '%'",
                f"length({name}) > 5",
                f"{name} || 'y' = {value} || 'y'",
                f"upper({name}) = upper({value})",
            ]
        if col.type == "BIGINT":
            forms += [f"{name} + 1 > {value}", f"{name} % 2 = 0", f"{name} * 2 < {value}"]
        same = [e for e in scope if e[1].type == col.type and e != entry]
        if same:
            forms.append(f"{name} {state.dice.choice('=<>')} {named(state.dice.choice(same))}")
        parts.append(state.dice.choice(forms))
    return state.dice.choice((" AND ", " OR ")).join(parts)


def expression(state: State, entry: tuple[str, Col]) -> str:
    """Something computed from a column, of its type."""
    name, col = named(entry), entry[1]
    forms = [name, name, f"coalesce({name}, {state.literal(col)})",
             f"CASE WHEN {name} = {state.literal(col)} THEN {name} END",
             f"nullif({name}, {state.literal(col)})", f"greatest({name}, {state.literal(col)})",
             f"({name})", f"CAST({name} AS {col.type})"]  # fmt: skip
    if col.type == "VARCHAR":
        forms += [f"{name} || 'z'", f"upper({name})", f"substr({name}, 2, 3)"]
    if col.type == "BIGINT":
        forms += [f"{name} + 1", f"-{name}", f"{name} % 7", f"abs({name}) * 2"]
    return state.dice.choice(forms)


# ---------------------------------------------------------------------- sources


def source(
    state: State, most: int = 2, tables: Sequence[Tab] = (), free_joins: bool = True
) -> From:
    """A FROM clause over one or two tables."""
    dice = state.dice
    known = list(tables) or state.sources(vaults=free_joins)
    first = dice.choice(known)
    made = From(f"{first.name} AS a", scope_of("a", first), [first])
    if most < 2 or state.chance(0.55):
        return made
    second = dice.choice(known)
    right = scope_of("b", second)
    keys = [
        (x, y) for x in made.scope for y in right
        if x[1].type == y[1].type and x[1].universe is y[1].universe
        and (free_joins or (min(x[1].rank, y[1].rank) >= 1 and (x[1].universe or x[1].plain)))
    ]  # fmt: skip
    if not keys:
        return made
    left, other = dice.choice(keys)
    kind = dice.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
    made.text += f" {kind} {second.name} AS b ON {named(left)} = {named(other)}"
    made.tables.append(second)
    if kind not in ("SEMI JOIN", "ANTI JOIN"):
        made.scope += right
    return made


# ---------------------------------------------------------------------- reads


def read(state: State) -> tuple[str, str]:
    """A query: its kind and its text."""
    kinds = (_plain, _plain, _grouped, _stars, _window, _subqueries, _sets, _with, _lateral,
             _ordered, _functions)  # fmt: skip
    made = state.dice.choice(kinds)
    return made.__name__.strip("_"), made(state)


def _plain(state: State) -> str:
    made = source(state)
    items = ", ".join(
        f"{expression(state, state.dice.choice(made.scope))} AS x{i}"
        for i in range(state.dice.randint(1, 3))
    )
    distinct = "DISTINCT " if state.chance(0.15) else ""
    return f"SELECT {distinct}{items} FROM {made.text} WHERE {free(state, made.scope)}"


def _grouped(state: State) -> str:
    made = source(state)
    key, value = state.dice.choice(made.scope), state.dice.choice(made.scope)
    number = [e for e in made.scope if e[1].type in ("BIGINT", "HUGEINT")]
    total = f"sum({named(state.dice.choice(number))})" if number else "count(*)"
    aggregate = state.dice.choice((
        "count(*)", f"count(DISTINCT {named(value)})", f"min({named(value)})",
        f"max({named(value)})", f"count({named(value)})", total, total))  # fmt: skip
    where = f" WHERE {free(state, made.scope)}" if state.chance(0.5) else ""
    if state.chance(0.3):
        return f"SELECT {aggregate} AS x, count(*) AS n FROM {made.text}{where}"
    having = " HAVING count(*) > 1" if state.chance(0.3) else ""
    return (
        f"SELECT {named(key)} AS k, {aggregate} AS x FROM {made.text}{where}"
        f" GROUP BY {named(key)}{having}"
    )


def stars(state: State, alias: str, table: Tab) -> str:
    """A star with arguments."""
    dice = state.dice
    col = dice.choice(table.cols)
    same = [c for c in table.cols if c.type == col.type]
    rest = f" EXCLUDE ({col.name})" if len(table.cols) > 1 else ""
    return dice.choice((
        "*", f"{alias}.*", f"*{rest}", f"{alias}.*{rest}",
        f"* REPLACE ({dice.choice(same).name} AS {col.name})",
        f"* RENAME ({col.name} AS x)", "COLUMNS(*)", f"COLUMNS(c -> c <> '{bare_name(col)}')",
        f"COLUMNS('{bare_name(col)}')", f"count(COLUMNS({alias}.*))",
    ))  # fmt: skip


def bare_name(col: Col) -> str:
    """A column's name without quotes, for patterns."""
    return col.name.strip('"')


def _stars(state: State) -> str:
    table = state.dice.choice(state.sources())
    where = f" WHERE {free(state, scope_of('a', table))}" if state.chance(0.6) else ""
    star = stars(state, "a", table)
    if "REPLACE" in star or "count(" in star or "count(" in where:
        where = ""
    return f"SELECT {star} FROM {table.name} AS a{where}"


def _window(state: State) -> str:
    made = source(state, 1)
    one, two = state.dice.choice(made.scope), state.dice.choice(made.scope)
    call = state.dice.choice(("rank()", "dense_rank()", "count(*)", f"max({named(one)})"))
    part = f"PARTITION BY {named(two)} " if state.chance(0.5) else ""
    qualify = " QUALIFY x < 3" if "rank" in call and state.chance(0.4) else ""
    over = f"OVER ({part}ORDER BY {named(one)})"
    return f"SELECT {named(two)} AS k, {call} {over} AS x FROM {made.text}{qualify}"


def _subqueries(state: State) -> str:
    made, inner = source(state, 1), source(state, 1)
    inner.text = inner.text.replace(" AS a", " AS i")
    entries = [("i", c) for _, c in inner.scope]
    pairs = [(x, y) for x in made.scope for y in entries if x[1].type == y[1].type]
    left, right = state.dice.choice(pairs or [(made.scope[0], made.scope[0])])
    where = free(state, entries)
    form = state.dice.choice((
        f"{named(left)} IN (SELECT {named(right)} FROM {inner.text} WHERE {where})",
        f"EXISTS (SELECT 1 FROM {inner.text} WHERE {named(left)} = {named(right)} AND ({where}))",
        f"NOT EXISTS (SELECT 1 FROM {inner.text} WHERE {named(left)} = {named(right)})",
        f"{named(left)} >= (SELECT max({named(right)}) FROM {inner.text} WHERE {where})",
    ))  # fmt: skip
    if not pairs:
        form = free(state, made.scope)
    return f"SELECT {named(state.dice.choice(made.scope))} AS x FROM {made.text} WHERE {form}"


def _sets(state: State) -> str:
    first, second = source(state, 1), source(state, 1)
    pairs = [(x, y) for x in first.scope for y in second.scope if x[1].type == y[1].type]
    if not pairs:
        return _plain(state)
    left, right = state.dice.choice(pairs)
    word = state.dice.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
    return (
        f"SELECT {named(left)} AS x FROM {first.text} {word}"
        f" SELECT {named(right)} FROM {second.text} WHERE {free(state, second.scope)}"
    )


def _with(state: State) -> str:
    made = source(state, 1)
    item = state.dice.choice(made.scope)
    hint = state.dice.choice(("", "MATERIALIZED ", "NOT MATERIALIZED "))
    return (
        f"WITH w AS {hint}(SELECT {named(item)} AS x, count(*) AS n FROM {made.text}"
        f" WHERE {free(state, made.scope)} GROUP BY 1) SELECT x, n FROM w WHERE n > 0"
    )


def _lateral(state: State) -> str:
    made = source(state, 1)
    entry = state.dice.choice(made.scope)
    name, value = named(entry), state.literal(entry[1])
    extra = state.dice.choice((
        f", LATERAL (SELECT {name} AS y) AS l",
        f", unnest(CASE WHEN {name} = {value} THEN [1, 2] ELSE [3] END) AS l(y)",
        f" CROSS JOIN LATERAL (SELECT 1 AS y WHERE {name} > {value}) AS l",
    ))  # fmt: skip
    return f"SELECT {named(state.dice.choice(made.scope))} AS x, l.y FROM {made.text}{extra}"


def _ordered(state: State) -> str:
    made = source(state, 1)
    entry = state.dice.choice(made.scope)
    name = named(entry)
    where = f" WHERE {free(state, made.scope)}" if state.chance(0.4) else ""
    limit = f" LIMIT {state.dice.randint(1, 5)}"
    return f"SELECT {name} AS x FROM {made.text}{where} ORDER BY x DESC NULLS LAST{limit}"


def _functions(state: State) -> str:
    macros = [name for kind, name in state.objects if kind == "macro"]
    made = source(state, 1)
    entry = state.dice.choice([e for e in made.scope if e[1].type == "BIGINT"] or [made.scope[0]])
    name = named(entry)
    if macros and entry[1].type == "BIGINT":
        return f"SELECT {state.dice.choice(macros)}({name}) AS x FROM {made.text}"
    if not made.tables[0].attached and state.chance(0.3):
        return f"DESCRIBE {made.tables[0].name}"
    return f"SELECT hash({name}) % 5 AS x FROM {made.text}"
