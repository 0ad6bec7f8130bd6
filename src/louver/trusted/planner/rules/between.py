"""A BETWEEN u AND v: two comparisons.

before  WHERE A BETWEEN u AND v   after  WHERE (A >= u) AND (A <= v), each by rule comparison
Leaks: as comparison.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Sql
from louver.trusted.planner.operators.comparisons import compare
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    if node.args.get("symmetric"):
        return None
    value = operand(node.this)
    low = compare(value, operand(node.args["low"]), ">=", scope)
    high = compare(value, operand(node.args["high"]), "<=", scope)
    if low is None or high is None:
        return None
    return Predicate(Sql("(⟦0⟧ AND ⟦1⟧)", (low.node, high.node)), True)


RULE = Rule("between", (exp.Between,), rewrite)
