"""A − B, A − u, A − P (paper: Rules 4, 5 and 10): the sum with −B, whose key is (n − 1)·m_B.

before  SELECT A - B   after  SELECT sdb_add(A_e, B_e, S_e, κ_AC, κ_−BC, n)            key ck_C
Leaks: as addition.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import sums
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    left, right = operand(node.this), operand(node.expression)
    return sums.combined(node, left, right, scope, minus=True)


RULE = Rule("subtraction", (exp.Sub,), rewrite)
