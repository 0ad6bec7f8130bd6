"""A BETWEEN u AND v on the index of a lake's files.

before  WHERE A BETWEEN 5 AND 7   after  only files whose range of A meets [5, 7]
Leaks: as range_comparison: level access.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Sql
from louver.trusted.planner.operators import ranges
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    if node.args.get("symmetric"):
        return None
    value = operand(node.this)
    low = ranges.bounded(value, node.args["low"], ">=", scope)
    high = ranges.bounded(value, node.args["high"], "<=", scope)
    if low is None or high is None:
        return low or high
    return Predicate(Sql("(⟦0⟧ AND ⟦1⟧)", (low.node, high.node)), True, exact=False)


RULE = Rule("range_between", (exp.Between,), rewrite)
