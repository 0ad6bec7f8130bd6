"""Secret shares compared, added and grouped.

before  GROUP BY A   after  GROUP BY sdb_key_update(A_e, S_e, κ_AG, n)   key <m_G, 0>
All of A comes under one key without row numbers, so that equal values are equal bytes.
Leaks: level plaintext. Common-key ciphertexts give all ratios v_i/v_j.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from sqlglot import exp

from louver.trusted.planner.ir import (
    PLAIN_KEY,
    Call,
    Compared,
    Factor,
    Key,
    Node,
    SharedExpr,
    Sql,
)
from louver.trusted.planner.operators import algebra
from louver.trusted.planner.operators.algebra import Numeric
from louver.trusted.planner.sql.scope import RANDOM_BITS, Scope
from louver.trusted.planner.sql.values import Predicate
from louver.trusted.vault.types import decimal_scale as scale_of
from louver.trusted.vault.types import family, fits, is_integer, value_range

FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}
"""The sign when the sides change places."""


def compare(left: Numeric, right: Numeric, sign: str, scope: Scope) -> Predicate | None:
    """The condition ``left sign right`` where at least one side is secret."""
    partner = left if isinstance(left, SharedExpr) else right
    if not isinstance(partner, SharedExpr) or not algebra.same_family(left, right):
        return None
    if algebra.is_zero(left) or algebra.is_zero(right):
        return _against_zero(left, right, sign, scope)
    first, second = (algebra.as_secret(side, partner, scope) for side in (left, right))
    if first is None or second is None:
        return None
    first, second = algebra.aligned(first, second)
    second = algebra.negated(second)
    low, high = first.low + second.low, first.high + second.high
    if not algebra.stays_signed(low, high, scope, RANDOM_BITS):
        return None
    slots = first.slots | second.slots
    # Each pair costs the server exponentiations, while the local engine spends nanoseconds.
    if len(slots) > 1 and scope.pairs(slots) > scope.backend.costs.most_compared_pairs:
        return None
    _leak("sdb.compare", first, second, scope)
    if not slots:
        return _without_rows(first, second, sign)
    random_node, random_key = scope.random(min(slots))
    target = Key("compare_target", (random_key,))
    compared = Compared(random_node, algebra.added(first, second, target))
    return Predicate(Sql(f"⟦0⟧ {sign} 0", (compared,)), True)


def _against_zero(left: Numeric, right: Numeric, sign: str, scope: Scope) -> Predicate | None:
    """A > 0 needs no constant: the sign of R·A alone."""
    if algebra.is_zero(left):
        left, right, sign = right, left, FLIPPED[sign]
    if not isinstance(left, SharedExpr):
        return None
    if not algebra.stays_signed(left.low, left.high, scope, RANDOM_BITS):
        return None
    scope.leak("sdb.compare/zero", left)
    if not left.slots:
        blinded = left.factor.times(Factor(_blind()))
        node = algebra.brought(_with(left, blinded), PLAIN_KEY)
    else:
        random_node, random_key = scope.random(min(left.slots))
        target = Key("compare_target", (random_key,))
        node = Call("sdb_mul", (random_node, algebra.brought(left, target)))
    return Predicate(Sql(f"⟦0⟧ {sign} 0", (Call("sdb_compare", (node,)),)), True)


def _without_rows(first: SharedExpr, second: SharedExpr, sign: str) -> Predicate:
    """Sums and constants have no row number and no R: one random factor blinds them."""
    blind = Factor(_blind())
    added = algebra.added(
        _with(first, first.factor.times(blind)),
        _with(second, second.factor.times(blind)),
        PLAIN_KEY,
    )
    return Predicate(Sql(f"⟦0⟧ {sign} 0", (Call("sdb_compare", (added,)),)), True)


def _with(value: SharedExpr, factor: Factor) -> SharedExpr:
    return replace(value, factor=factor, single=False)


def _blind() -> int:
    return secrets.randbits(RANDOM_BITS - 1) | 1 << (RANDOM_BITS - 2)


def combined(
    node: exp.Expr,
    left: Numeric,
    right: Numeric,
    scope: Scope,
    *,
    minus: bool,
) -> SharedExpr | None:
    """The sum or difference of two operands of which at least one is secret."""
    type_ = scope.type_of(node)
    partner = left if isinstance(left, SharedExpr) else right
    if not isinstance(partner, SharedExpr) or not _addable(left.type, right.type, type_, minus):
        return None
    first, second = (algebra.as_secret(side, partner, scope) for side in (left, right))
    if first is None or second is None:
        return None
    first, second = algebra.aligned(first, second)
    if minus:
        second = algebra.negated(second)
    if algebra.is_zero(left) or algebra.is_zero(right):
        return _alone(first, second, left, type_)
    return _sum(first, second, type_, scope)


def _sum(first: SharedExpr, second: SharedExpr, type_: str, scope: Scope) -> SharedExpr | None:
    low, high = first.low + second.low, first.high + second.high
    if scale_of(type_) != first.scale or not fits(low, high, type_):
        return None
    limits = value_range(type_)
    for side in (first, second):
        # DuckDB casts each operand of a decimal sum to the result's type first.
        if (
            limits
            and not is_integer(type_)
            and algebra.bits(side.low, side.high) > algebra.bits(*limits)
        ):
            return None
    if not algebra.stays_signed(low, high, scope):
        return None
    target = algebra.sum_target(first, second)
    _leak("sdb.add", first, second, scope)
    return SharedExpr(
        algebra.added(first, second, target),
        target,
        Factor(),
        low,
        high,
        first.scale,
        type_,
        first.slots | second.slots,
        first.columns | second.columns,
    )


def _alone(first: SharedExpr, second: SharedExpr, left: Numeric, type_: str) -> SharedExpr:
    """A + 0 is A: a share of 0 would have no key."""
    operand = second if algebra.is_zero(left) else first
    return replace(operand, type=type_, single=False)


def _addable(left: str, right: str, result: str, minus: bool) -> bool:
    """Numbers with numbers, days with days: what DuckDB adds without rounding."""
    if family(left) == family(right) == "number":
        return family(result) == "number"
    if "DATE" in (left, right) and result == "DATE":
        return is_integer(left) or is_integer(right)
    return minus and left == right == "DATE" and result == "BIGINT"


def _leak(name: str, first: SharedExpr, second: SharedExpr, scope: Scope) -> None:
    both = first.columns and second.columns
    scope.leak(name if both else f"{name}/constant", first, second)


def summed(value: SharedExpr, type_: str, scope: Scope) -> SharedExpr | None:
    """The sum of a secret over the rows of a group, or None where it might not fit."""
    if family(value.type) != "number" or scale_of(type_) != value.scale:
        return None
    rows = algebra.most_rows(scope)
    low, high = min(value.low, 0) * rows, max(value.high, 0) * rows
    if not fits(low, high, type_) or not algebra.stays_signed(low, high, scope):
        return None
    target = algebra.common_target("sum", value)
    gathered = scope.operation("gathered", algebra.brought(value, target))
    if gathered is None:
        return None
    scope.leak("sdb.sum", value)
    call = Call("sdb_sum", (gathered,))
    return replace(algebra.under(value, call, target), low=low, high=high, type=type_)


def tag(value: SharedExpr, scope: Scope) -> Node:
    """The value under the common key of its group."""
    scope.leak("sdb.group", value)
    return algebra.brought(value, algebra.common_target("group", value))


def grouped(value: SharedExpr, scope: Scope) -> SharedExpr:
    """The grouping key as a column of the answer."""
    return algebra.under(value, tag(value, scope), algebra.common_target("group", value))
