"""A × B, A × u, A × P (paper: Rules 1 and 8).

before  SELECT A * B              after  SELECT sdb_mul(A_e, B_e, n)   key <m_A·m_B, x_A + x_B>
before  SELECT A * u              after  SELECT A_e                    key <u·m_A, x_A>
before  SELECT A * P              after  SELECT sdb_mul(A_e, P, n)     key <m_A, x_A>
Leaks: nothing. A plain column has the key <1, 0> already, so Rule 8's update of P is not needed.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr
from louver.trusted.planner.operators import algebra
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Constant
from louver.trusted.vault.types import decimal_scale as scale_of
from louver.trusted.vault.types import family, fits


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    left, right = operand(node.this), operand(node.expression)
    if isinstance(right, SharedExpr) and not isinstance(left, SharedExpr):
        left, right = right, left
    if not isinstance(left, SharedExpr) or not isinstance(right, SharedExpr | Plain | Constant):
        return None
    type_ = scope.type_of(node)
    scale = left.scale + right.scale
    if family(type_) != "number" or scale_of(type_) != scale:
        return None
    if family(left.type) != "number" or family(right.type) != "number":
        return None
    if isinstance(right, Constant):
        return _by_constant(left, right, type_, scope)
    if isinstance(right, Plain):
        shared = algebra.residue(right, scope)
        if shared is None:
            return None
        right = shared
    product, key = algebra.multiplied(left, right)
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(corners), max(corners)
    if not fits(low, high, type_) or not algebra.stays_signed(low, high, scope):
        return None
    return SharedExpr(
        product,
        key,
        left.factor.times(right.factor),
        low,
        high,
        scale,
        type_,
        left.slots | right.slots,
        left.columns | right.columns,
    )


def _by_constant(left: SharedExpr, right: Constant, type_: str, scope: Scope) -> SharedExpr | None:
    """EC mode touches the key only; a constant 0 has no inverse key and is done locally."""
    if right.value == 0:
        return None
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(corners), max(corners)
    if not fits(low, high, type_) or not algebra.stays_signed(low, high, scope):
        return None
    return replace(
        left,
        factor=left.factor.times(right.factor),
        low=low,
        high=high,
        scale=left.scale + right.scale,
        type=type_,
        single=False,
    )


RULE = Rule("multiplication", (exp.Mul,), rewrite)
