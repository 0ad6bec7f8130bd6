"""A = B across two tables: both under one key without row numbers, compared as they are.

before  ON T.A = U.B
after   ON sdb_key_update(A_e, S_e, κ_AJ, n) = sdb_key_update(B_e, S_e, κ_BJ, n)
Leaks: level plaintext. A column under a common key gives all its ratios v_i/v_j.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Key, SharedExpr, Sql
from louver.trusted.planner.operators import algebra
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Predicate


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    left, right = operand(node.this), operand(node.expression)
    if not isinstance(left, SharedExpr) or not isinstance(right, SharedExpr):
        return None
    if left.slots & right.slots or not left.slots or not right.slots:
        return None
    if not algebra.same_family(left, right):
        return None
    left, right = algebra.aligned(left, right)
    scope.linked.append(left.slots | right.slots)
    columns = sorted(left.columns | right.columns)
    target = Key("common_target", ("join:" + ",".join(f"{t}.{c}" for t, c in columns),))
    scope.leak("sdb.join", left, right)
    sides = (algebra.brought(left, target), algebra.brought(right, target))
    return Predicate(Sql("⟦0⟧ = ⟦1⟧", sides), True)


RULE = Rule("equi_join", (exp.EQ,), rewrite)
