"""A IN (u, v, …); what it leaks is that of comparison.

On the tags of a key:
before  WHERE K IN (5, 7)   after  WHERE T_key IN ($1, $2)
before  WHERE (A, B) IN ((5, 'x'), (7, 'y'))   after  WHERE T_key IN ($1, $2)
On shares, with few constants:
before  WHERE A IN (u, v)   after  WHERE (A = u) OR (A = v), each by rule comparison
On equality codes:
before  WHERE A IN (5, 7)   after  WHERE A_eq IN ($1, $2)
On the index of a lake's files, as ranges of one value each:
before  WHERE A IN (5, 7)   after  only files whose range of A holds 5 or 7
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from louver.trusted.planner.ir import SharedExpr, Sql
from louver.trusted.planner.operators import codes, keys, shares
from louver.trusted.planner.operators.algebra import Numeric
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate

MOST = 8
"""More members than this cost the server more than shipping the column costs the client."""


def key(node: exp.Expr, scope: Scope, value: exp.Column, *members: exp.Expr) -> Predicate | None:
    return keys.member(value, members, scope)


def key_rows(
    node: exp.Expr, scope: Scope, value: exp.Tuple, *members: exp.Expr
) -> Predicate | None:
    return keys.rows(value, members, "IN", scope)


def share(node: exp.Expr, scope: Scope, value: SharedExpr, *members: Numeric) -> Predicate | None:
    if len(members) > MOST:
        return None
    return _any([shares.compare(value, member, "=", scope) for member in members])


def code(
    node: exp.Expr, scope: Scope, value: EncodedColumn, *members: exp.Expr
) -> Predicate | None:
    return codes.member(value, members, scope)


def range_(
    node: exp.Expr, scope: Scope, value: EncodedColumn, *members: exp.Expr
) -> Predicate | None:
    return _any([codes.in_range(value, member, "=", scope) for member in members])


def _any(conditions: Sequence[Predicate | None]) -> Predicate | None:
    known = [condition for condition in conditions if condition is not None]
    if len(known) != len(conditions):
        return None
    text = " OR ".join(f"⟦{index}⟧" for index in range(len(known)))
    node = Sql(f"({text})", tuple(condition.node for condition in known))
    return Predicate(node, True, all(condition.exact for condition in known))


RULES: tuple[Rule[Value], ...] = (
    Rule("key_membership", (exp.In,), key),
    Rule("key_membership", (exp.In,), key_rows),
    Rule("membership", (exp.In,), share),
    Rule("code_membership", (exp.In,), code),
    Rule("range_membership", (exp.In,), range_),
)
