"""Whole queries, which may hold anything."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.queries import bare_name, expression, free, named, scope_of, source
from tests.worlds.rare_queries import RARER
from tests.worlds.schema import State, Tab, kind_of
from tests.worlds.values import NUMBERS


def read(state: State) -> tuple[str, str]:
    """A query: its kind and its text."""
    kinds = (_plain, _plain, _grouped, _stars, _window, _subqueries, _sets, _with, _lateral,
             _ordered, _functions)  # fmt: skip
    every: list[Callable[[State], str]] = [*kinds, *kinds, *RARER]
    make = state.dice.choice(state.focused(every) or every)
    return kind_of(make), make(state)


def _plain(state: State) -> str:
    base = source(state)
    items = ", ".join(
        f"{expression(state, state.dice.choice(base.scope))} AS x{i}"
        for i in range(state.dice.randint(1, 3))
    )
    distinct = "DISTINCT " if state.chance(0.15) else ""
    return f"SELECT {distinct}{items} FROM {base.text} WHERE {free(state, base.scope)}"


def _grouped(state: State) -> str:
    base = source(state)
    key, value = state.dice.choice(base.scope), state.dice.choice(base.scope)
    number = [e for e in base.scope if e[1].type in NUMBERS]
    total = f"sum({named(state.dice.choice(number))})" if number else "count(*)"
    aggregate = state.dice.choice((
        "count(*)", f"count(DISTINCT {named(value)})", f"min({named(value)})",
        f"max({named(value)})", f"count({named(value)})", total, total))  # fmt: skip
    where = f" WHERE {free(state, base.scope)}" if state.chance(0.5) else ""
    if number and "grouped:sum" in state.focus:
        return f"SELECT {total} AS x FROM {base.text}"
    if state.chance(0.3):
        return f"SELECT {aggregate} AS x, count(*) AS n FROM {base.text}{where}"
    having = " HAVING count(*) > 1" if state.chance(0.3) else ""
    return (
        f"SELECT {named(key)} AS k, {aggregate} AS x FROM {base.text}{where}"
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


def _stars(state: State) -> str:
    table = state.dice.choice(state.sources())
    where = f" WHERE {free(state, scope_of('a', table))}" if state.chance(0.6) else ""
    star = stars(state, "a", table)
    if "REPLACE" in star or "count(" in star or "count(" in where:
        where = ""
    return f"SELECT {star} FROM {table.name} AS a{where}"


def _window(state: State) -> str:
    base = source(state, 1)
    first, two = state.dice.choice(base.scope), state.dice.choice(base.scope)
    call = state.dice.choice(("rank()", "dense_rank()", "count(*)", f"max({named(first)})"))
    part = f"PARTITION BY {named(two)} " if state.chance(0.5) else ""
    qualify = " QUALIFY x < 3" if "rank" in call and state.chance(0.4) else ""
    over = f"OVER ({part}ORDER BY {named(first)})"
    return f"SELECT {named(two)} AS k, {call} {over} AS x FROM {base.text}{qualify}"


def _subqueries(state: State) -> str:
    base, inner = source(state, 1), source(state, 1)
    inner.text = inner.text.replace(" AS a", " AS i")
    entries = [("i", c) for _, c in inner.scope]
    pairs = [(x, y) for x in base.scope for y in entries if x[1].type == y[1].type]
    left, right = state.dice.choice(pairs or [(base.scope[0], base.scope[0])])
    where = free(state, entries)
    form = state.dice.choice((
        f"{named(left)} IN (SELECT {named(right)} FROM {inner.text} WHERE {where})",
        f"EXISTS (SELECT 1 FROM {inner.text} WHERE {named(left)} = {named(right)} AND ({where}))",
        f"NOT EXISTS (SELECT 1 FROM {inner.text} WHERE {named(left)} = {named(right)})",
        f"{named(left)} >= (SELECT max({named(right)}) FROM {inner.text} WHERE {where})",
    ))  # fmt: skip
    if not pairs:
        form = free(state, base.scope)
    return f"SELECT {named(state.dice.choice(base.scope))} AS x FROM {base.text} WHERE {form}"


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
    base = source(state, 1)
    item = state.dice.choice(base.scope)
    hint = state.dice.choice(("", "MATERIALIZED ", "NOT MATERIALIZED "))
    return (
        f"WITH w AS {hint}(SELECT {named(item)} AS x, count(*) AS n FROM {base.text}"
        f" WHERE {free(state, base.scope)} GROUP BY 1) SELECT x, n FROM w WHERE n > 0"
    )


def _lateral(state: State) -> str:
    base = source(state, 1)
    entry = state.dice.choice(base.scope)
    name, value = named(entry), state.literal(entry[1])
    extra = state.dice.choice((
        f", LATERAL (SELECT {name} AS y) AS l",
        f", unnest(CASE WHEN {name} = {value} THEN [1, 2] ELSE [3] END) AS l(y)",
        f" CROSS JOIN LATERAL (SELECT 1 AS y WHERE {name} > {value}) AS l",
    ))  # fmt: skip
    return f"SELECT {named(state.dice.choice(base.scope))} AS x, l.y FROM {base.text}{extra}"


def _ordered(state: State) -> str:
    base = source(state, 1)
    entry = state.dice.choice(base.scope)
    name = named(entry)
    where = f" WHERE {free(state, base.scope)}" if state.chance(0.4) else ""
    limit = f" LIMIT {state.dice.randint(1, 5)}"
    return f"SELECT {name} AS x FROM {base.text}{where} ORDER BY x DESC NULLS LAST{limit}"


def _functions(state: State) -> str:
    macros = [name for kind, name in state.objects if kind == "macro"]
    base = source(state, 1)
    entry = state.dice.choice([e for e in base.scope if e[1].type == "BIGINT"] or [base.scope[0]])
    name = named(entry)
    if macros and entry[1].type == "BIGINT":
        return f"SELECT {state.dice.choice(macros)}({name}) AS x FROM {base.text}"
    if not base.tables[0].attached and state.chance(0.3):
        return f"DESCRIBE {base.tables[0].name}"
    return f"SELECT hash({name}) % 5 AS x FROM {base.text}"
