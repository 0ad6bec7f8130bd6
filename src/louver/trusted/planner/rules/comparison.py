"""A = B, A < u and the like (paper: Rules 6, 7 and 11).

before  WHERE A > B   after  WHERE sdb_compare_sum(R_e, A_e, B_e, S_e, S_e, κ_A, κ_−B, n) > 0
The sum is brought under <m_R⁻¹, −x_R>, so that its product with R has the key <1, 0> at once and
the last update of Rules 6 and 7 is not needed (those print x_B + x_C for x_R + x_C).
Leaks: level plaintext. With a constant, R·u and R·A open separately; with a column, A/B does.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators.comparisons import SIGNS, compare
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    left, right = operand(node.this), operand(node.expression)
    return compare(left, right, SIGNS[type(node)], scope)


RULE = Rule("comparison", tuple(SIGNS), rewrite)
