"""A < u on shares that have buckets beside them (the SDB report's advice; Hore et al., VLDB 2004).

before  WHERE A < u   after  WHERE A_ord <= $1 AND sdb_compare_sum(…) < 0
The first condition is true wherever the second one is, and costs nothing: the server computes
powers only for the rows in the buckets that a query reaches.
Leaks: as comparison; and the order of the buckets.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import SharedExpr, Sql
from louver.trusted.planner.operators import codes, comparisons
from louver.trusted.planner.operators.comparisons import FLIPPED, SIGNS
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope, coded
from louver.trusted.planner.sql.values import EncodedColumn, Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    if isinstance(node, exp.Between):
        if node.args.get("symmetric"):
            return None
        low = _one(node.this, node.args["low"], ">=", operand, scope)
        high = _one(node.this, node.args["high"], "<=", operand, scope)
        if low is None or high is None:
            return None
        return Predicate(Sql("(⟦0⟧ AND ⟦1⟧)", (low.node, high.node)), True)
    sign = SIGNS[type(node)]
    return _one(node.this, node.expression, sign, operand, scope) or _one(
        node.expression, node.this, FLIPPED[sign], operand, scope
    )


def _one(
    column: exp.Expr, constant: exp.Expr, sign: str, operand: Operand, scope: Scope
) -> Predicate | None:
    held = _bucketed(column, scope)
    value = operand(column)
    if held is None or not isinstance(value, SharedExpr):
        return None
    before = scope.collected.mark()
    bucket = codes.ordered_constant(held, constant, sign, scope)
    exact = comparisons.compare(value, operand(constant), sign, scope) if bucket else None
    if bucket is None or exact is None:
        scope.collected.undo(before)
        return None
    return Predicate(Sql("(⟦0⟧ AND ⟦1⟧)", (bucket.node, exact.node)), True)


def _bucketed(node: exp.Expr, scope: Scope) -> EncodedColumn | None:
    match = scope.find(node) if isinstance(node, exp.Column) else None
    if match is None or "sdb" not in match[1].stored:
        return None
    held = coded(*match)
    return held if held is not None and held.answers("<") else None


RULE = Rule("bucket", (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between), rewrite)
