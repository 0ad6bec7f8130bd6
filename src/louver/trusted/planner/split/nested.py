"""Split of a query over an aggregating subquery: the server filters its groups too.

before  SELECT … FROM (SELECT G, SUM(A) AS S FROM T GROUP BY G) AS Q WHERE S > 100
A SUM is a share under a key without row numbers, so an outer condition on it is decided where
the sum was made (the purpose of the paper's Rule 13). What the outer query computes is finished at
home, which applies the condition once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.ir import Plain, Plan, SharedExpr
from louver.trusted.planner.split import rewrite, whole_block
from louver.trusted.planner.sql import selection
from louver.trusted.planner.sql.lexer import Shape
from louver.trusted.planner.sql.scope import Scope, Servers
from louver.trusted.planner.sql.selection import Unsplit

Describe = Callable[[str], list[tuple[str, str]]]
# With one of these the subquery's rows are not all of its groups, so none may be dropped early.
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Grouping, exp.Tuple)
_ROW_CHOOSING = ("limit", "offset", "distinct", "where", "order")


def is_nested(select: exp.Select) -> bool:
    """Whether FROM is one subquery."""
    clause = select.args.get("from_") or select.args.get("from")
    return isinstance(clause and clause.this, exp.Subquery) and not select.args.get("joins")


def plan_nested(
    select: exp.Select,
    resolve: selection.Resolve,
    shape: Shape,
    servers: Servers,
    parameters: Sequence[object],
    describe: Describe,
    *,
    target: str = whole_block.ROWS,
) -> Plan:
    """Plan a query over one aggregating subquery; raises `Unsplit`."""
    clause = select.args.get("from_") or select.args["from"]
    inner = clause.this.this
    if not isinstance(inner, exp.Select) or not selection.is_aggregated(inner):
        raise Unsplit
    _require_outer(select, clause.this)
    sources = selection.sources_of(inner, resolve, servers)
    block = whole_block.plan_block(
        inner, sources, shape, servers, parameters, describe, target=target
    )
    plan, tree = block.plan, block.tree
    if plan.kind != "whole" or any(tree.args.get(key) for key in _ROW_CHOOSING):
        raise Unsplit
    names = [name for name, _ in describe(block_text(inner, parameters))]
    scope = Scope(sources, shape, servers.modulus_bits, parameters)
    scope.virtual = _columns(names, block)
    # Only the subquery's columns are in reach of the outer conditions.
    scope.sources, scope.shown = [], sources
    rewrite.ask_types(select, scope, describe)
    where, having = select.args.get("where"), list(plan.remotes[0].having)
    for part in selection.conjuncts(where.this if where else None):
        condition = rewrite.predicate(part, scope)
        if condition is not None and condition.secret:
            having.append(condition.node)
    new = [leak for leak in scope.collected.leaks if leak not in plan.leaks]
    return replace(
        plan,
        remotes=(replace(plan.remotes[0], having=tuple(having)), *plan.remotes[1:]),
        leaks=(*plan.leaks, *dict.fromkeys(new)),
        home_sql=_home(select, tree, names, scope),
    )


def block_text(inner: exp.Expr, parameters: Sequence[object]) -> str:
    """The subquery's own text, with parameters as typed constants."""
    scope = Scope([], Shape("", (), ()), 0, parameters)
    return rewrite.typed_text(inner, scope)


def _require_outer(select: exp.Select, subquery: exp.Subquery) -> None:
    for node in select.walk(prune=lambda node: node is subquery):
        if node is not subquery and not isinstance(node, (*selection.VOCABULARY, *_SETS)):
            raise Unsplit
    alias = subquery.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise Unsplit


def _columns(names: list[str], block: whole_block.BlockPlan) -> dict[str, SharedExpr | Plain]:
    """The subquery's output columns that are values of the answer as they are."""
    columns: dict[str, SharedExpr | Plain] = {}
    for item, name in zip(block.tree.expressions, names, strict=True):
        bare = item.this if isinstance(item, exp.Alias) else item
        value = block.values.get(bare.name) if isinstance(bare, exp.Column) else None
        if value is not None:
            columns[fold(name)] = value
    return columns


def _home(select: exp.Select, tree: exp.Select, names: list[str], scope: Scope) -> str:
    """The outer query with the opened groups in place of its subquery."""
    outer, groups = select.copy(), tree.copy()
    items = []
    for item, name in zip(groups.expressions, names, strict=True):
        bare = item.this if isinstance(item, exp.Alias) else item
        items.append(exp.alias_(bare.copy(), name, quoted=True))
    groups.set("expressions", items)
    clause = outer.args.get("from_") or outer.args["from"]
    clause.this.set("this", groups)
    return selection.home_text(outer, scope)
