"""A + B, A + u, A + P (paper: Rules 2, 3 and 9).

before  SELECT A + B   after  SELECT sdb_add(A_e, B_e, S_e, κ_AC, κ_BC, n)            key ck_C
before  SELECT A + u   after  SELECT sdb_add(A_e, U_e, S_e, κ_AC, κ_uUC, n)           key ck_C
before  SELECT A + P   after  SELECT sdb_add(A_e, sdb_mul(P, U_e), S_e, κ_AC, κ_PUC, n)
Leaks: A/B of every row, and with a constant or a plain column the whole of A: level plaintext.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import sums
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    left, right = operand(node.this), operand(node.expression)
    return sums.combined(node, left, right, scope, minus=False)


RULE = Rule("addition", (exp.Add,), rewrite)
