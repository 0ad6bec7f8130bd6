"""−A: the factor n − 1 on A's key; the ciphertext stays.

before  SELECT -A   after  SELECT A_e   key <(n − 1)·m_A, x_A>
Leaks: nothing.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import SharedExpr
from louver.trusted.planner.operators import algebra
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.vault.types import family, fits


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value = operand(node.this)
    type_ = scope.type_of(node)
    if not isinstance(value, SharedExpr) or family(type_) != "number":
        return None
    result = algebra.negated(value)
    if not fits(result.low, result.high, type_) or result.type != type_:
        return None
    return result


RULE = Rule("negation", (exp.Neg,), rewrite)
