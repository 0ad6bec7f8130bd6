"""What a query's columns and rows depend on through GROUP BY, HAVING and aggregates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sqlglot import exp

from louver.trusted.planner.sql.placeholders import is_placeholder
from louver.trusted.planner.write import grammar
from louver.trusted.planner.write.reads import Reads
from louver.trusted.planner.write.values import (
    CONSTANT,
    Relation,
    Rows,
    Value,
    apart,
    deciding,
    union,
    unknown,
)


class Scope(Protocol):
    """The names in reach of an expression (see `relation.Scope`)."""

    @property
    def reads(self) -> Reads:
        """What the statement reads."""
        ...

    def value(self, node: exp.Expr) -> Value:
        """What an expression depends on."""
        ...

    def condition(self, node: exp.Expr | None) -> Rows:
        """What a condition lets the rows depend on."""
        ...


def by_keys(nodes: Iterable[exp.Expr], scope: Scope, items: Relation) -> list[Value]:
    """What keys of GROUP BY, ORDER BY and DISTINCT ON are computed from. DuckDB ignores brackets,
    and treats a number as a column position; anything that reads no column may be one here.
    """
    values: list[Value] = []
    for node in nodes:
        if isinstance(node, exp.Ordered | exp.Paren):
            values += by_keys([node.this], scope, items)
        elif isinstance(node, exp.Tuple):
            values += by_keys(node.expressions, scope, items)
        elif any(not is_placeholder(column) for column in node.find_all(exp.Column)):
            values.append(scope.value(node))
        else:
            values.append(scope.value(node) | items.every)
    return values


def grouped(node: exp.Select, scope: Scope, rows: Rows, items: Relation) -> tuple[Rows, Relation]:
    """Aggregates reveal which rows they cover, by their values and by which groups exist."""
    group, having = node.args.get("group"), node.args.get("having")
    aggregated = any(
        grammar.aggregates(part)
        for item in node.expressions
        for part in item.walk(prune=lambda inner: isinstance(inner, exp.Query | exp.Window))
    )
    if group is None and having is None and not aggregated:
        return rows, items
    keys: Value = CONSTANT
    groups = Rows()
    if group is not None:
        each = by_keys(group.expressions, scope, items)
        keys, groups = union(each), apart(each)
        if group.args.get("all"):
            keys = keys | items.every
        if set(filter(group.args.get, group.args)) - {"expressions", "all"}:
            keys = unknown(scope.reads.everything)
    decided = (rows | scope.condition(having) | groups).all_shown(keys.secrets)
    hidden = deciding(decided.shown)
    columns = tuple((name, value | hidden) for name, value in items.columns)
    rest = None if items.rest is None else items.rest | hidden
    return decided, Relation(columns, rest, decided)
