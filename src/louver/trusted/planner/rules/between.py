"""A BETWEEN u AND v: two comparisons; what they leak is that of comparison.

On shares:
before  WHERE A BETWEEN u AND v   after  WHERE (A >= u) AND (A <= v), each by rule comparison
On order codes:
before  WHERE A BETWEEN 5 AND 7   after  WHERE (A_ord > $1 AND A_ord <= $2)
On the index of a lake's files:
before  WHERE A BETWEEN 5 AND 7   after  only files whose range of A meets [5, 7]
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Sql
from louver.trusted.planner.operators import codes, shares
from louver.trusted.planner.operators.algebra import Numeric
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate


def bucket(
    node: exp.Expr, scope: Scope, value: exp.Column, low: exp.Expr, high: exp.Expr
) -> Predicate | None:
    return _both(codes.bucketed(value, low, ">=", scope), codes.bucketed(value, high, "<=", scope))


def share(
    node: exp.Expr, scope: Scope, value: Numeric, low: Numeric, high: Numeric
) -> Predicate | None:
    return _both(shares.compare(value, low, ">=", scope), shares.compare(value, high, "<=", scope))


def code(
    node: exp.Expr, scope: Scope, value: EncodedColumn, low: exp.Expr, high: exp.Expr
) -> Predicate | None:
    return _both(codes.compared(value, low, ">=", scope), codes.compared(value, high, "<=", scope))


def range_(
    node: exp.Expr, scope: Scope, value: EncodedColumn, low: exp.Expr, high: exp.Expr
) -> Predicate | None:
    least = codes.in_range(value, low, ">=", scope)
    greatest = codes.in_range(value, high, "<=", scope)
    # Either alone keeps every file that matters.
    return _both(least, greatest) or least or greatest


def _both(low: Predicate | None, high: Predicate | None) -> Predicate | None:
    if low is None or high is None:
        return None
    condition = Sql("(⟦0⟧ AND ⟦1⟧)", (low.node, high.node))
    return Predicate(condition, True, low.exact and high.exact)


RULES: tuple[Rule[Value], ...] = (
    Rule("bucket", (exp.Between,), bucket),
    Rule("between", (exp.Between,), share),
    Rule("code_between", (exp.Between,), code),
    Rule("range_between", (exp.Between,), range_),
)
