"""COUNT(*), COUNT(A), COUNT(DISTINCT A).

before  SELECT COUNT(A)   after  SELECT count(A_e)
before  SELECT COUNT(DISTINCT A)   after  SELECT count(DISTINCT sdb_key_update(A_e, S_e, κ_AG, n))
On codes: count(A_eq), count(DISTINCT A_eq); of a masked column the sum of its flags.
Leaks: COUNT nothing; COUNT(DISTINCT) level plaintext, as grouping; on codes level equality.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr, Sql
from louver.trusted.planner.operators import groups, masked
from louver.trusted.planner.operators.rule import Aggregate, AggregateRule, Operand
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Aggregate | None:
    inner = node.this
    if inner is None or isinstance(inner, exp.Star):
        return _counted(Plain(Sql("count(*)"), "BIGINT"))
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            return None
        value = operand(inner.expressions[0])
        if isinstance(value, SharedExpr):
            tag = groups.tag(value, scope)
            return _counted(Plain(Sql("count(DISTINCT ⟦0⟧)", (tag,)), "BIGINT"))
        if isinstance(value, EncodedColumn):
            return masked.distinct(value, scope)
        if isinstance(value, Plain):
            return _counted(Plain(Sql("count(DISTINCT ⟦0⟧)", (value.node,)), "BIGINT"))
        return None
    value = operand(inner)
    if isinstance(value, EncodedColumn) and not node.args.get("expressions"):
        return masked.counted(value, scope)
    if isinstance(value, SharedExpr | Plain) and not node.args.get("expressions"):
        return _counted(Plain(Sql("count(⟦0⟧)", (value.node,)), "BIGINT"))
    return None


def _counted(value: Plain) -> Aggregate:
    return Aggregate((value,))


RULE = AggregateRule("count", (exp.Count,), rewrite)
