"""A = B, A < u and the like.

Shares (paper: Rules 6, 7 and 11):
before  WHERE A > B   after  WHERE sdb_compare_sum(R_e, A_e, B_e, S_e, S_e, κ_A, κ_−B, n) > 0
The sum is brought under <m_R⁻¹, −x_R>, so that its product with R has the key <1, 0> at once and
the last update of Rules 6 and 7 is not needed (those print x_B + x_C for x_R + x_C).
Leaks: level plaintext. With a constant, R·u and R·A open separately; with a column, A/B does.
Shares of two tables: both under one key without row numbers, compared as they are.
before  ON T.A = U.B
after   ON sdb_key_update(A_e, S_e, κ_AJ, n) = sdb_key_update(B_e, S_e, κ_BJ, n)
Leaks: level plaintext. A column under a common key gives all its ratios v_i/v_j.
Shares that have buckets beside them (the SDB report's advice; Hore et al., VLDB 2004):
before  WHERE A < u   after  WHERE A_ord <= $1 AND sdb_compare_sum(…) < 0
The first condition is true wherever the second one is, and costs nothing: the server computes
powers only for the rows in the buckets that a query reaches.
Leaks: as shares; and the order of the buckets.

Codes (CryptDB: equality, order and join; Relational Cloud, section 5):
before  WHERE A = 5   after  WHERE A_eq = $1      $1 the code of 5
before  WHERE A < 5   after  WHERE A_ord <= $1    $1 the code of the largest value below 5
before  ON T.A = U.B  after  ON T.A_eq = U.B_eq   both under the key of their join group
Leaks: opens the layer that the comparison reads: level equality for = and <>, order for the rest.

The tag of a key, of which the column is all (`operators.keys`; a key of several columns is looked
for where their conditions are joined by AND, or where rows are compared):
before  WHERE K = 5               after  WHERE T_key = $1   $1 the tag of the key that holds 5
before  WHERE (A, B) = (5, 'x')   after  WHERE T_key = $1   $1 the tag of the key (5, 'x')
Leaks: level access: which row was asked for, and that a key is asked for again.

The index of a lake's files (BF-EDS, section 4.3):
before  WHERE A < 5   after  only files whose range of A meets [lowest, 5)
Leaks: level access: which files hold a value in the range; equal and overlapping ranges show.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import SharedExpr, Sql
from louver.trusted.planner.operators import algebra, codes, keys, shares
from louver.trusted.planner.operators.algebra import Numeric
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate

SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)


def equi_join(
    node: exp.Expr, scope: Scope, left: SharedExpr, right: SharedExpr
) -> Predicate | None:
    if left.slots & right.slots or not left.slots or not right.slots:
        return None
    if not algebra.same_family(left, right):
        return None
    left, right = algebra.aligned(left, right)
    scope.linked.append(left.slots | right.slots)
    target = algebra.common_target("join", left, right)
    scope.leak("sdb.join", left, right)
    sides = (algebra.brought(left, target), algebra.brought(right, target))
    return Predicate(Sql("⟦0⟧ = ⟦1⟧", sides), True)


def two_shares(node: exp.Expr, scope: Scope, left: Numeric, right: Numeric) -> Predicate | None:
    return shares.compare(left, right, SIGNS[type(node)], scope)


def key(node: exp.Expr, scope: Scope, left: exp.Column, right: exp.Expr) -> Predicate | None:
    return keys.equals(left, right, scope)


def key_last(node: exp.Expr, scope: Scope, left: exp.Expr, right: exp.Column) -> Predicate | None:
    return keys.equals(right, left, scope)


def key_row(node: exp.Expr, scope: Scope, left: exp.Tuple, right: exp.Tuple) -> Predicate | None:
    return keys.rows(left, (right,), "=", scope) or keys.rows(right, (left,), "=", scope)


def bucket(node: exp.Expr, scope: Scope, left: exp.Column, right: exp.Expr) -> Predicate | None:
    return codes.bucketed(left, right, SIGNS[type(node)], scope)


def bucket_last(
    node: exp.Expr, scope: Scope, left: exp.Expr, right: exp.Column
) -> Predicate | None:
    return codes.bucketed(right, left, shares.FLIPPED[SIGNS[type(node)]], scope)


def two_codes(
    node: exp.Expr, scope: Scope, left: EncodedColumn, right: EncodedColumn
) -> Predicate | None:
    return codes.columns(left, right, SIGNS[type(node)], scope)


def code(node: exp.Expr, scope: Scope, left: EncodedColumn, right: exp.Expr) -> Predicate | None:
    return codes.compared(left, right, SIGNS[type(node)], scope)


def code_last(
    node: exp.Expr, scope: Scope, left: exp.Expr, right: EncodedColumn
) -> Predicate | None:
    return codes.compared(right, left, shares.FLIPPED[SIGNS[type(node)]], scope)


def range_(node: exp.Expr, scope: Scope, left: EncodedColumn, right: exp.Expr) -> Predicate | None:
    return codes.in_range(left, right, SIGNS[type(node)], scope)


def range_last(
    node: exp.Expr, scope: Scope, left: exp.Expr, right: EncodedColumn
) -> Predicate | None:
    return codes.in_range(right, left, shares.FLIPPED[SIGNS[type(node)]], scope)


RULES: tuple[Rule[Value], ...] = (
    Rule("key_comparison", (exp.EQ,), key),
    Rule("key_comparison", (exp.EQ,), key_last),
    Rule("key_comparison", (exp.EQ,), key_row),
    Rule("equi_join", (exp.EQ,), equi_join),
    Rule("bucket", _ORDERS, bucket),
    Rule("bucket", _ORDERS, bucket_last),
    Rule("comparison", tuple(SIGNS), two_shares),
    Rule("code_comparison", tuple(SIGNS), two_codes),
    Rule("code_comparison", tuple(SIGNS), code),
    Rule("code_comparison", tuple(SIGNS), code_last),
    Rule("range_comparison", tuple(SIGNS), range_),
    Rule("range_comparison", tuple(SIGNS), range_last),
)
