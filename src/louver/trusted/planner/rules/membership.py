"""A IN (u, v, …) with few constants: comparisons joined by OR.

before  WHERE A IN (u, v)   after  WHERE (A = u) OR (A = v), each by rule comparison
Leaks: as comparison.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import SharedExpr, Sql
from louver.trusted.planner.operators.comparisons import compare
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Predicate

MOST = 8
"""More members than this cost the server more than shipping the column costs the client."""


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    members = node.expressions
    value = operand(node.this)
    if not isinstance(value, SharedExpr) or not members or len(members) > MOST:
        return None
    tests = [compare(value, operand(member), "=", scope) for member in members]
    known = [test for test in tests if test is not None]
    if len(known) != len(tests):
        return None
    text = " OR ".join(f"⟦{index}⟧" for index in range(len(known)))
    return Predicate(Sql(f"({text})", tuple(test.node for test in known)), True)


RULE = Rule("membership", (exp.In,), rewrite)
