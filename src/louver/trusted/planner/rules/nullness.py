"""A IS NULL: a NULL of a shared column is a NULL on the server.

before  WHERE A IS NULL   after  WHERE A_e IS NULL
Leaks: nothing new; which values are NULL shows at rest.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import SharedExpr, Sql
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value = operand(node.this)
    if not isinstance(node.expression, exp.Null) or not isinstance(value, SharedExpr):
        return None
    return Predicate(Sql("⟦0⟧ IS NULL", (value.node,)), True) if value.single else None


RULE = Rule("nullness", (exp.Is,), rewrite)
