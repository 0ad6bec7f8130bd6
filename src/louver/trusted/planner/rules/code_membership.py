"""A IN (u, v, …) on equality codes.

before  WHERE A IN (5, 7)   after  WHERE A_eq IN ($1, $2)
Leaks: as code_comparison: level equality.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn

MOST = 1_000
"""More members than this are compared locally."""


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value, members = operand(node.this), node.expressions
    if not isinstance(value, EncodedColumn) or not members or len(members) > MOST:
        return None
    return codes.member(value, members, scope)


RULE = Rule("code_membership", (exp.In,), rewrite)
