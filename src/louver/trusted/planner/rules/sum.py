"""SUM(A) (paper: Rule 13).

before  SELECT SUM(A)   after  SELECT sdb_sum(list(sdb_key_update(A_e, S_e, κ_A,SUM, n)), n)
                               key <m_SUM, 0>
The result has a key without row numbers, so it is a share like any other: HAVING and outer
queries compute on it (what Rule 13 gives a row id of its own for).
Of a masked column (spec/sum.md): SELECT sum(A_low), sum(A_high), count(row_id),
row_set(list(row_id)), from which the client takes the masks of these rows away.
Leaks: level access for masked columns: which rows are added. For shares level plaintext:
common-key ciphertexts give all ratios v_i/v_j.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr
from louver.trusted.planner.operators import masked, sums
from louver.trusted.planner.operators.rule import Aggregate, AggregateRule, Operand
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn
from louver.trusted.vault.types import family


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Aggregate | None:
    value = operand(node.this)
    type_ = scope.type_of(node)
    if isinstance(value, Plain) and family(value.type) == "number":
        added = scope.operation("sum", value.node)
        return None if added is None else Aggregate((Plain(added, type_),))
    if isinstance(value, EncodedColumn):
        total_of = masked.total(value, type_, scope)
        return None if total_of is None else Aggregate((total_of,))
    if not isinstance(value, SharedExpr):
        return None
    total = sums.summed(value, type_, scope)
    return None if total is None else Aggregate((total,))


RULE = AggregateRule("sum", (exp.Sum,), rewrite)
