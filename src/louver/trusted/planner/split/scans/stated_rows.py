"""Rows of constants that stand in FROM: VALUES, SELECT without FROM, and UNION ALL of these.

before  FROM t, (VALUES (3, 'a'), (5, 'b')) AS s(id, v) WHERE t.id = s.id
after   the same, and t.id IN (3, 5) of the rows of t

Leaks: what IN with these constants shows. It says as much as the equality where DuckDB compares
the two in the type of the table's own column: where the constants are all of one type that this
holds, or whole numbers. NULL equals nothing, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.operators import codes
from louver.trusted.planner.split.scans.conditions import Conditions
from louver.trusted.planner.split.scans.query_blocks import Block, Occurrence
from louver.trusted.planner.sql import placeholders
from louver.trusted.vault.types import is_integer

MOST_ROWS = 128
"""More rows are rows of a table like any other."""
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}


def members(
    part: exp.Expr, block: Block, conditions: Conditions
) -> Iterator[tuple[Occurrence, exp.In]]:
    """What an equality with a column of such rows says of the other side's column."""
    part = part.unnest()
    if not isinstance(part, exp.EQ):
        return
    sides = (part.this.unnest(), part.expression.unnest())
    for column, other in (sides, sides[::-1]):
        if not isinstance(column, exp.Column) or not isinstance(other, exp.Column):
            continue
        owner = block.resolve(column)
        values = _values(other, block) if owner is not None else None
        if owner is None or not values:
            continue
        declared = owner.table.column(column.name)
        if declared is not None and _compares_as(declared.type, values, owner, conditions):
            copies = [value.copy() for value in values]
            yield owner, exp.In(this=column.copy(), expressions=copies)


def _values(column: exp.Column, block: Block) -> list[exp.Expr] | None:
    """The constants in a column of rows that stand in this block's FROM, but for NULL."""
    if column.args.get("db") or not column.table or placeholders.is_placeholder(column):
        return None
    for node in block.sources:
        if fold(str(node.alias_or_name)) == fold(column.table):
            rows, names = _rows(node), _names(node)
            if not rows or names.count(fold(column.name)) != 1:
                return None
            position = names.index(fold(column.name))
            values = [row[position].unalias() for row in rows if position < len(row)]
            known = [value for value in values if not isinstance(value.unnest(), exp.Null)]
            return known if len(values) == len(rows) else None
    return None


def _rows(node: exp.Expr) -> list[Sequence[exp.Expr]]:
    """The rows of a source that is made of constants, at most `MOST_ROWS`; none of any other."""
    if set(filter(node.args.get, node.args)) - {"this", "expressions", "alias"}:
        return []
    if isinstance(node, exp.Values):
        tuples = [item for item in node.expressions if isinstance(item, exp.Tuple)]
        rows: list[Sequence[exp.Expr]] = [item.expressions for item in tuples]
        return rows if len(rows) == len(node.expressions) <= MOST_ROWS else []
    inner = node.this if isinstance(node, exp.Subquery) else None
    selects: list[exp.Expr] = []
    while isinstance(inner, exp.Union) and inner.args.get("distinct") is False:
        if set(filter(inner.args.get, inner.args)) - {"this", "expression", "distinct"}:
            return []
        selects.append(inner.expression)
        inner = inner.this
    if not isinstance(inner, exp.Select) or len(selects) >= MOST_ROWS:
        return []
    selects.append(inner)
    plain = all(
        isinstance(item, exp.Select) and not set(filter(item.args.get, item.args)) - {"expressions"}
        for item in selects
    )
    return [item.expressions for item in reversed(selects)] if plain else []


def _names(node: exp.Expr) -> list[str]:
    """The folded names of a source's columns; "" of one that is not known."""
    alias = node.args.get("alias")
    given = [fold(name.name) for name in alias.args.get("columns") or []] if alias else []
    rows = _rows(node)
    if isinstance(node, exp.Values):
        own = [f"col{position}" for position in range(len(rows[0]))]
    else:
        own = [fold(item.alias) for item in rows[0]] if rows else []
    return [*given, *own[len(given) :]]


def _compares_as(
    type_: str, values: Sequence[exp.Expr], owner: Occurrence, conditions: Conditions
) -> bool:
    """Whether DuckDB compares a column of a type with all values in the column's type."""
    scope = conditions.scope({owner.slot: 0})
    types = {codes.constant_type(value, scope) for value in values}
    if types <= _WHOLE and is_integer(type_):
        return True
    return len(types) == 1 and codes.holds(type_, *types)
