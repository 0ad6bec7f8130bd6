"""AVG(A) (paper: Rule 14): SUM and COUNT from the server, the quotient locally.

before  SELECT AVG(A)   after  SELECT sdb_sum(list(…), n), count(A_e)
Leaks: as SUM.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr, Sql
from louver.trusted.planner.operators import masked, sums
from louver.trusted.planner.operators.rule import Aggregate, AggregateRule, Operand
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn
from louver.trusted.vault.types import decimal_scale, family, is_integer


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Aggregate | None:
    value = operand(node.this)
    if isinstance(value, EncodedColumn):
        return masked.average(value, scope)
    if not isinstance(value, SharedExpr) or family(value.type) != "number":
        return None
    type_ = "HUGEINT" if is_integer(value.type) else f"DECIMAL(38,{decimal_scale(value.type)})"
    total = sums.summed(value, type_, scope)
    if total is None:
        return None
    counted = Plain(Sql("count(⟦0⟧)", (value.node,)), "BIGINT")
    return Aggregate((total, counted), average=True)


RULE = AggregateRule("average", (exp.Avg,), rewrite)
