"""A IN (u, v, …) on the index of a lake's files: ranges of one value each.

before  WHERE A IN (5, 7)   after  only files whose range of A holds 5 or 7
Leaks: as range_comparison: level access.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Node, Sql
from louver.trusted.planner.operators import ranges
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Predicate

MOST = 1_000
"""More members than this are compared locally."""


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    members = node.expressions
    if not members or len(members) > MOST:
        return None
    value = operand(node.this)
    nodes: list[Node] = []
    for member in members:
        range_ = ranges.bounded(value, member, "=", scope)
        if range_ is None:
            return None
        nodes.append(range_.node)
    listed = " OR ".join(f"⟦{index}⟧" for index in range(len(nodes)))
    return Predicate(Sql(f"({listed})", tuple(nodes)), True, exact=False)


RULE = Rule("range_membership", (exp.In,), rewrite)
