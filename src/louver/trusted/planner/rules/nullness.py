"""A IS NULL.

On shares, of which a NULL is a NULL on the server:
before  WHERE A IS NULL   after  WHERE A_e IS NULL
Leaks: nothing new; which values are NULL shows at rest.
On codes, of which an open layer shows which values are NULL:
before  WHERE A IS NULL   after  WHERE A_eq IS NULL
Leaks: opens the equality layer. A column that never held a NULL shows nothing and is not asked.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Column, Node, SharedExpr, Sql
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate


def share(node: exp.Expr, scope: Scope, value: SharedExpr, null: exp.Null) -> Predicate | None:
    return _is_null(value.node) if value.single else None


def code(node: exp.Expr, scope: Scope, value: EncodedColumn, null: exp.Null) -> Predicate | None:
    if not value.nullable and value.answers("RANGE") is None:
        # Held for a plan's life: plans are dropped when bounds widen. A row number is NULL only
        # where an outer join made the row.
        return _is_null(Column(value.alias, "row_id"))
    answer = value.answers("IS NULL")
    return None if answer is None else _is_null(codes.shown(value, answer, scope))


def _is_null(node: Node) -> Predicate:
    return Predicate(Sql("⟦0⟧ IS NULL", (node,)), True)


RULES: tuple[Rule[Value], ...] = (
    Rule("nullness", (exp.Is,), share),
    Rule("code_nullness", (exp.Is,), code),
)
