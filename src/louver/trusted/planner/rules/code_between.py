"""A BETWEEN u AND v on order codes.

before  WHERE A BETWEEN 5 AND 7   after  WHERE (A_ord > $1 AND A_ord <= $2)
Leaks: as code_comparison: level order.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Sql
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value = operand(node.this)
    if not isinstance(value, EncodedColumn) or node.args.get("symmetric"):
        return None
    low = codes.ordered_constant(value, node.args["low"], ">=", scope)
    high = codes.ordered_constant(value, node.args["high"], "<=", scope)
    if low is None or high is None:
        return None
    condition = Sql("(⟦0⟧ AND ⟦1⟧)", (low.node, high.node))
    return Predicate(condition, True, low.exact and high.exact)


RULE = Rule("code_between", (exp.Between,), rewrite)
