"""Comparisons of two operands of which at least one is secret."""

from __future__ import annotations

import secrets
from dataclasses import replace

from sqlglot import exp

from louver.trusted.planner.ir import PLAIN_KEY, Call, Compared, Factor, Key, Plain, SharedExpr, Sql
from louver.trusted.planner.operators import algebra
from louver.trusted.planner.operators.rule import Value
from louver.trusted.planner.sql.scope import RANDOM_BITS, Scope
from louver.trusted.planner.sql.values import Constant, Predicate

SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}
"""The sign when the sides change places."""


def compare(left: Value | None, right: Value | None, sign: str, scope: Scope) -> Predicate | None:
    """The condition ``left sign right`` where at least one side is secret."""
    if not isinstance(left, SharedExpr | Plain | Constant):
        return None
    if not isinstance(right, SharedExpr | Plain | Constant):
        return None
    partner = left if isinstance(left, SharedExpr) else right
    if not isinstance(partner, SharedExpr) or not algebra.same_family(left, right):
        return None
    if _zero(left) or _zero(right):
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
    _leak(first, second, scope)
    if not slots:
        return _without_rows(first, second, sign)
    random_node, random_key = scope.random(min(slots))
    target = Key("compare_target", (random_key,))
    compared = Compared(random_node, algebra.added(first, second, target))
    return Predicate(Sql(f"⟦0⟧ {sign} 0", (compared,)), True)


def _against_zero(left: Value, right: Value, sign: str, scope: Scope) -> Predicate | None:
    """A > 0 needs no constant: the sign of R·A alone."""
    if _zero(left):
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


def _zero(value: Value) -> bool:
    return isinstance(value, Constant) and value.value == 0


def _leak(first: SharedExpr, second: SharedExpr, scope: Scope) -> None:
    both = first.columns and second.columns
    scope.leak("sdb.compare" if both else "sdb.compare/constant", first, second)
