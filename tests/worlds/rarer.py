"""Queries of rarer forms; like all that are only read, they may hold anything."""

from __future__ import annotations

from tests.worlds.queries import expression, free, named, scope_of, source
from tests.worlds.schema import State
from tests.worlds.values import NUMBERS


def draws(state: State) -> str:
    """Numbers of a sequence for rows that something encrypted chooses, or for all."""
    names = [name for kind, name in state.objects if kind == "sequence"]
    made = source(state, 1)
    if not names:
        return f"SELECT count(*) AS x FROM {made.text}"
    draw = f"nextval('{state.dice.choice(names)}')"
    secret = [entry for entry in made.scope if not entry[1].plain]
    where = free(state, secret or made.scope)
    return state.pick("draws", [
        ("chosen", f"SELECT {draw} AS x FROM {made.text} WHERE {where}"),
        ("case", f"SELECT CASE WHEN {where} THEN {draw} END AS x FROM {made.text}"),
        ("plain", f"SELECT {draw} AS x"),
        ("with", f"WITH w AS (SELECT 1 AS y FROM {made.text} WHERE {where}) SELECT {draw} AS x"
                 f" FROM w"),
    ])  # fmt: skip


def sets_of_groups(state: State) -> str:
    """ROLLUP, CUBE and GROUPING SETS."""
    made = source(state, 1)
    one, two = (named(state.dice.choice(made.scope)) for _ in range(2))
    group = state.dice.choice((
        f"ROLLUP ({one}, {two})", f"CUBE ({one})", f"GROUPING SETS (({one}), ({two}), ())", "ALL",
    ))  # fmt: skip
    return f"SELECT {one} AS k, count(*) AS n FROM {made.text} GROUP BY {group}"


def pivoted(state: State) -> str:
    """PIVOT and UNPIVOT."""
    made = source(state, 1)
    entry = state.dice.choice(made.scope)
    value, other = state.literal(entry[1]), expression(state, state.dice.choice(made.scope))
    if "NULL" in value:
        value = "1" if entry[1].type in NUMBERS else "'1'"
    inner = f"(SELECT {named(entry)} AS k, 1 AS n FROM {made.text})"
    return state.dice.choice((
        f"SELECT p FROM {inner} PIVOT (sum(n) FOR k IN ({value} AS p))",
        f"SELECT x FROM (SELECT {other} AS one FROM {made.text}) UNPIVOT (x FOR n IN (one))",
    ))  # fmt: skip


def recursive(state: State) -> str:
    """A recursive common table expression that begins with rows of a table."""
    made = source(state, 1)
    where = free(state, made.scope)
    return (
        f"WITH RECURSIVE w(n, x) AS (SELECT 0, {named(state.dice.choice(made.scope))}"
        f" FROM {made.text} WHERE {where} UNION SELECT n + 1, x FROM w WHERE n < 2)"
        f" SELECT n, x FROM w"
    )


def distinct_on(state: State) -> str:
    """DISTINCT ON one column, of which each value comes once."""
    made = source(state, 1)
    key = named(state.dice.choice(made.scope))
    return f"SELECT DISTINCT ON (k) {key} AS k FROM {made.text} ORDER BY k"


def by_name(state: State) -> str:
    """UNION BY NAME, and joins with lists of constants."""
    made = source(state, 1)
    entry = state.dice.choice(made.scope)
    name, value, other = named(entry), state.literal(entry[1]), state.literal(entry[1])
    return state.dice.choice((
        f"SELECT {name} AS x, 1 AS y FROM {made.text} UNION ALL BY NAME SELECT 2 AS y",
        f"SELECT {name} AS x FROM {made.text} JOIN (VALUES ({value}), ({other})) AS v(z)"
        f" ON {name} = v.z",
        f"SELECT {name} AS x FROM {made.text} WHERE {name} IN (SELECT unnest([{value}, {other}]))",
        f"SELECT {name} AS x FROM {made.text} WHERE {name} = ANY ([{value}, {other}])",
        f"SELECT s.one AS x FROM (SELECT {{'one': {name}}} AS s FROM {made.text})",
    ))  # fmt: skip


def explained(state: State) -> str:
    """What would happen; nothing is to be sent for it."""
    made = source(state, 1)
    query = f"SELECT {named(state.dice.choice(made.scope))} AS x FROM {made.text}"
    return f"EXPLAIN (LEAKAGE) {query} WHERE {free(state, made.scope)}"


def called(state: State) -> str:
    """A table that a macro computes."""
    names = [name for kind, name in state.objects if kind == "table macro"]
    if not names:
        table = state.dice.choice(state.sources())
        where = free(state, scope_of("a", table))
        return f"SELECT count(*) AS x FROM {table.name} AS a WHERE {where}"
    return f"SELECT y, count(*) AS n FROM {state.dice.choice(names)}(1) GROUP BY y"


RARER = (draws, sets_of_groups, pivoted, recursive, distinct_on, by_name, explained, called)
