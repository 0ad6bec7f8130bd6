"""Expressions, conditions and sources of queries.

Queries that are only read may hold anything. What chooses rows that are written is kept to forms
whose outcome the renaming does not change (`invariant`), unless the statement must be refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.worlds.schema import COLLATIONS, Col, State, Tab

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


def bare_name(col: Col) -> str:
    """A column's name without quotes, for patterns."""
    return col.name.strip('"')


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
        name, col, value = named(entry), entry[1], state.any_literal(entry[1])
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
                f"{name} COLLATE {state.dice.choice(COLLATIONS)} = {value}",
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
    base = From(f"{first.name} AS a", scope_of("a", first), [first])
    if most < 2 or state.chance(0.55):
        return base
    second = dice.choice(known)
    right = scope_of("b", second)
    keys = [
        (x, y) for x in base.scope for y in right
        if x[1].type == y[1].type and x[1].universe is y[1].universe
        and (free_joins or (min(x[1].rank, y[1].rank) >= 1 and (x[1].universe or x[1].plain)))
    ]  # fmt: skip
    if not keys:
        return base
    left, other = dice.choice(keys)
    kind = dice.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
    base.text += f" {kind} {second.name} AS b ON {named(left)} = {named(other)}"
    base.tables.append(second)
    if kind not in ("SEMI JOIN", "ANTI JOIN"):
        base.scope += right
    return base
