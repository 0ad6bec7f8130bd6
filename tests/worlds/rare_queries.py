"""Queries of rarer forms; like all that are only read, they may hold anything."""

from __future__ import annotations

from tests.worlds.queries import expression, free, named, scope_of, source
from tests.worlds.schema import State
from tests.worlds.values import NUMBERS


def draws(state: State) -> str:
    """Numbers of a sequence for rows that something encrypted chooses, or for all."""
    names = [name for kind, name in state.objects if kind == "sequence"]
    base = source(state, 1)
    if not names:
        return f"SELECT count(*) AS x FROM {base.text}"
    draw = f"nextval('{state.dice.choice(names)}')"
    secret = [entry for entry in base.scope if not entry[1].plain]
    where = free(state, secret or base.scope)
    return state.pick("draws", [
        ("chosen", f"SELECT {draw} AS x FROM {base.text} WHERE {where}"),
        ("case", f"SELECT CASE WHEN {where} THEN {draw} END AS x FROM {base.text}"),
        ("plain", f"SELECT {draw} AS x"),
        ("with", f"WITH w AS (SELECT 1 AS y FROM {base.text} WHERE {where}) SELECT {draw} AS x"
                 f" FROM w"),
    ])  # fmt: skip


def sets_of_groups(state: State) -> str:
    """ROLLUP, CUBE and GROUPING SETS."""
    base = source(state, 1)
    first, two = (named(state.dice.choice(base.scope)) for _ in range(2))
    group = state.dice.choice((
        f"ROLLUP ({first}, {two})", f"CUBE ({first})",
        f"GROUPING SETS (({first}), ({two}), ())", "ALL",
    ))  # fmt: skip
    return f"SELECT {first} AS k, count(*) AS n FROM {base.text} GROUP BY {group}"


def pivoted(state: State) -> str:
    """PIVOT and UNPIVOT."""
    base = source(state, 1)
    entry = state.dice.choice(base.scope)
    value, other = state.literal(entry[1]), expression(state, state.dice.choice(base.scope))
    if "NULL" in value:
        value = "1" if entry[1].type in NUMBERS else "'1'"
    inner = f"(SELECT {named(entry)} AS k, 1 AS n FROM {base.text})"
    return state.dice.choice((
        f"SELECT p FROM {inner} PIVOT (sum(n) FOR k IN ({value} AS p))",
        f"SELECT x FROM (SELECT {other} AS one FROM {base.text}) UNPIVOT (x FOR n IN (one))",
    ))  # fmt: skip


def recursive(state: State) -> str:
    """A recursive common table expression that begins with rows of a table."""
    base = source(state, 1)
    where = free(state, base.scope)
    return (
        f"WITH RECURSIVE w(n, x) AS (SELECT 0, {named(state.dice.choice(base.scope))}"
        f" FROM {base.text} WHERE {where} UNION SELECT n + 1, x FROM w WHERE n < 2)"
        f" SELECT n, x FROM w"
    )


def distinct_on(state: State) -> str:
    """DISTINCT ON one column, of which each value comes once."""
    base = source(state, 1)
    key = named(state.dice.choice(base.scope))
    return f"SELECT DISTINCT ON (k) {key} AS k FROM {base.text} ORDER BY k"


def by_name(state: State) -> str:
    """UNION BY NAME, and joins with lists of constants."""
    base = source(state, 1)
    entry = state.dice.choice(base.scope)
    name, value, other = named(entry), state.literal(entry[1]), state.literal(entry[1])
    return state.dice.choice((
        f"SELECT {name} AS x, 1 AS y FROM {base.text} UNION ALL BY NAME SELECT 2 AS y",
        f"SELECT {name} AS x FROM {base.text} JOIN (VALUES ({value}), ({other})) AS v(z)"
        f" ON {name} = v.z",
        f"SELECT {name} AS x FROM {base.text} WHERE {name} IN (SELECT unnest([{value}, {other}]))",
        f"SELECT {name} AS x FROM {base.text} WHERE {name} = ANY ([{value}, {other}])",
        f"SELECT s.one AS x FROM (SELECT {{'one': {name}}} AS s FROM {base.text})",
    ))  # fmt: skip


def explained(state: State) -> str:
    """What would happen; nothing is to be sent for it."""
    base = source(state, 1)
    query = f"SELECT {named(state.dice.choice(base.scope))} AS x FROM {base.text}"
    return f"EXPLAIN (LEAKAGE) {query} WHERE {free(state, base.scope)}"


def called(state: State) -> str:
    """A table that a macro computes."""
    names = [name for kind, name in state.objects if kind == "table macro"]
    if not names:
        table = state.dice.choice(state.sources())
        where = free(state, scope_of("a", table))
        return f"SELECT count(*) AS x FROM {table.name} AS a WHERE {where}"
    return f"SELECT y, count(*) AS n FROM {state.dice.choice(names)}(1) GROUP BY y"


def filtered(state: State) -> str:
    """Aggregates over the rows of a group that a condition chooses."""
    base = source(state, 1)
    key, value = (named(state.dice.choice(base.scope)) for _ in range(2))
    call = state.dice.choice((f"count({value})", f"count(DISTINCT {value})", f"max({value})"))
    items = (
        f"count(*) FILTER (WHERE {free(state, base.scope)}) AS n,"
        f" {call} FILTER (WHERE {free(state, base.scope)}) AS x"
    )
    if state.chance(0.4):
        return f"SELECT {items} FROM {base.text}"
    group = state.dice.choice((key, f"ROLLUP ({key})"))
    return f"SELECT {key} AS k, {items} FROM {base.text} GROUP BY {group}"


def sampled(state: State) -> str:
    """USING SAMPLE: how many rows there are of some, or all, for which ones is drawn."""
    base = source(state, 1)
    name = named(state.dice.choice(base.scope))
    where = f" WHERE {free(state, base.scope)}" if state.chance(0.4) else ""
    return state.dice.choice((
        # DuckDB takes the sample before it looks at a condition.
        f"SELECT count(*) AS n FROM (SELECT {name} AS x FROM {base.text} USING SAMPLE 2 ROWS)",
        f"SELECT {name} AS x FROM {base.text}{where} USING SAMPLE 9000 ROWS",
        f"SELECT count({name}) AS n FROM {base.text}{where} USING SAMPLE 100%",
    ))  # fmt: skip


RARER = (
    filtered,
    sampled,
    draws,
    sets_of_groups,
    pivoted,
    recursive,
    distinct_on,
    by_name,
    explained,
    called,
)
