"""A IS NULL on codes: an open layer shows which values are NULL.

before  WHERE A IS NULL   after  WHERE A_eq IS NULL
Leaks: opens the equality layer. A column that never held a NULL shows nothing and is not asked.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Column, Sql
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value = operand(node.this)
    if not isinstance(node.expression, exp.Null) or not isinstance(value, EncodedColumn):
        return None
    if not value.nullable and value.answers("RANGE") is None:
        # Held for a plan's life: plans are dropped when bounds widen. A row number is NULL only
        # where an outer join made the row.
        return Predicate(Sql("⟦0⟧ IS NULL", (Column(value.alias, "row_id"),)), True)
    answer = value.answers("IS NULL")
    if answer is None:
        return None
    return Predicate(Sql("⟦0⟧ IS NULL", (codes.shown(value, answer, scope),)), True)


RULE = Rule("code_nullness", (exp.Is,), rewrite)
