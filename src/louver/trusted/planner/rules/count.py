"""COUNT(*), COUNT(A), COUNT(DISTINCT A).

before  SELECT COUNT(A)   after  SELECT count(A_e)
before  SELECT COUNT(DISTINCT A)   after  SELECT count(DISTINCT sdb_key_update(A_e, S_e, κ_AG, n))
Leaks: COUNT nothing; COUNT(DISTINCT) level plaintext, as grouping.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import groups
from louver.trusted.planner.remote import Sql
from louver.trusted.planner.rule import Aggregate, AggregateRule, Operand
from louver.trusted.planner.scope import Scope
from louver.trusted.planner.values import Plain, Secret


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Aggregate | None:
    inner = node.this
    if inner is None or isinstance(inner, exp.Star):
        return _counted(Plain(Sql("count(*)"), "BIGINT"))
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            return None
        value = operand(inner.expressions[0])
        if isinstance(value, Secret):
            tag = groups.tag(value, scope)
            return _counted(Plain(Sql("count(DISTINCT ⟦0⟧)", (tag,)), "BIGINT"))
        if isinstance(value, Plain):
            return _counted(Plain(Sql("count(DISTINCT ⟦0⟧)", (value.node,)), "BIGINT"))
        return None
    value = operand(inner)
    if isinstance(value, Secret | Plain) and not node.args.get("expressions"):
        return _counted(Plain(Sql("count(⟦0⟧)", (value.node,)), "BIGINT"))
    return None


def _counted(value: Plain) -> Aggregate:
    return Aggregate((value,))


RULE = AggregateRule("count", (exp.Count,), rewrite)
