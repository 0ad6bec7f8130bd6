"""Arithmetic on shares (paper: Rules 1, 2, 3, 4, 5, 8, 9 and 10).

before  SELECT A * B   after  SELECT sdb_mul(A_e, B_e, n)   key <m_A·m_B, x_A + x_B>
before  SELECT A * u   after  SELECT A_e                    key <u·m_A, x_A>
before  SELECT A * P   after  SELECT sdb_mul(A_e, P, n)     key <m_A, x_A>
before  SELECT -A      after  SELECT A_e                    key <(n − 1)·m_A, x_A>
before  SELECT A + B   after  SELECT sdb_add(A_e, B_e, S_e, κ_AC, κ_BC, n)   key ck_C
before  SELECT A + u   after  SELECT sdb_add(A_e, U_e, S_e, κ_AC, κ_uUC, n)  key ck_C
before  SELECT A + P   after  SELECT sdb_add(A_e, sdb_mul(P, U_e), S_e, κ_AC, κ_PUC, n)
before  SELECT A - B   after  SELECT sdb_add(A_e, B_e, S_e, κ_AC, κ_−BC, n)  key ck_C
A plain column has the key <1, 0> already, so Rule 8's update of P is not needed.
Leaks: × and −A nothing. A + B and A − B the ratio A/B of every row, with a constant or a plain
column the whole of A: level plaintext.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Plain, SharedExpr
from louver.trusted.planner.operators import algebra, shares
from louver.trusted.planner.operators.algebra import Numeric
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Constant
from louver.trusted.vault.types import decimal_scale as scale_of
from louver.trusted.vault.types import family, fits


def multiplication(
    node: exp.Expr, scope: Scope, left: Numeric, right: Numeric
) -> SharedExpr | None:
    if not isinstance(left, SharedExpr):
        left, right = right, left
    if not isinstance(left, SharedExpr):
        return None
    type_ = scope.type_of(node)
    scale = left.scale + right.scale
    if not family(left.type) == family(right.type) == family(type_) == "number":
        return None
    if scale_of(type_) != scale:
        return None
    corners = [a * b for a in _bounds(left) for b in _bounds(right)]
    low, high = min(corners, default=0), max(corners, default=0)
    if not fits(low, high, type_) or not algebra.stays_signed(low, high, scope):
        return None
    factor, product, key = left.factor, left.node, left.key
    slots, columns = left.slots, left.columns
    if isinstance(right, Constant):
        # A constant touches the key only (EC mode); 0 has no inverse key and is done locally.
        if right.value == 0:
            return None
        factor = factor.times(right.factor)
    else:
        shared = algebra.residue(right, scope) if isinstance(right, Plain) else right
        if shared is None:
            return None
        product, key = algebra.multiplied(left, shared)
        factor = factor.times(shared.factor)
        slots, columns = slots | shared.slots, columns | shared.columns
    return SharedExpr(product, key, factor, low, high, scale, type_, slots, columns)


def _bounds(value: Numeric) -> list[int]:
    return [bound for bound in (value.low, value.high) if bound is not None]


def addition(node: exp.Expr, scope: Scope, left: Numeric, right: Numeric) -> SharedExpr | None:
    return shares.combined(node, left, right, scope, minus=False)


def subtraction(node: exp.Expr, scope: Scope, left: Numeric, right: Numeric) -> SharedExpr | None:
    return shares.combined(node, left, right, scope, minus=True)


def negation(node: exp.Expr, scope: Scope, value: SharedExpr) -> SharedExpr | None:
    type_ = scope.type_of(node)
    result = algebra.negated(value)
    fitting = family(type_) == "number" and fits(result.low, result.high, type_)
    return result if fitting and result.type == type_ else None


RULES: tuple[Rule[Value], ...] = (
    Rule("multiplication", (exp.Mul,), multiplication),
    Rule("addition", (exp.Add,), addition),
    Rule("subtraction", (exp.Sub,), subtraction),
    Rule("negation", (exp.Neg,), negation),
)
