"""Sums: of two operands in a row, and of one operand over the rows of a group."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from louver.trusted.planner.ir import Call, Factor, Key, Plain, SharedExpr
from louver.trusted.planner.operators import algebra, groups
from louver.trusted.planner.operators.rule import Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Constant
from louver.trusted.vault.types import decimal_scale as scale_of
from louver.trusted.vault.types import family, fits, is_integer, value_range


def combined(
    node: exp.Expr,
    left: Value | None,
    right: Value | None,
    scope: Scope,
    *,
    minus: bool,
) -> SharedExpr | None:
    """The sum or difference of two operands of which at least one is secret."""
    if not isinstance(left, SharedExpr | Plain | Constant):
        return None
    if not isinstance(right, SharedExpr | Plain | Constant):
        return None
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
    if _zero(left) or _zero(right):
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
    _leak(first, second, scope)
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


def _alone(first: SharedExpr, second: SharedExpr, left: Value, type_: str) -> SharedExpr:
    """A + 0 is A: a share of 0 would have no key."""
    operand = second if isinstance(left, Constant) and left.value == 0 else first
    return replace(operand, type=type_, single=False)


def _zero(value: Value) -> bool:
    return isinstance(value, Constant) and value.value == 0


def _addable(left: str, right: str, result: str, minus: bool) -> bool:
    """Numbers with numbers, days with days: what DuckDB adds without rounding."""
    if family(left) == family(right) == "number":
        return family(result) == "number"
    if "DATE" in (left, right) and result == "DATE":
        return is_integer(left) or is_integer(right)
    return minus and left == right == "DATE" and result == "BIGINT"


def _leak(first: SharedExpr, second: SharedExpr, scope: Scope) -> None:
    both = first.columns and second.columns
    scope.leak("sdb.add" if both else "sdb.add/constant", first, second)


def summed(value: SharedExpr, type_: str, scope: Scope) -> SharedExpr | None:
    """The sum of a secret over the rows of a group, or None where it might not fit."""
    if family(value.type) != "number" or scale_of(type_) != value.scale:
        return None
    rows = most_rows(scope)
    low, high = min(value.low, 0) * rows, max(value.high, 0) * rows
    if not fits(low, high, type_) or not algebra.stays_signed(low, high, scope):
        return None
    columns = ",".join(f"{table}.{column}" for table, column in sorted(value.columns))
    target = Key("common_target", ("sum:" + columns,))
    gathered = scope.operation("gathered", algebra.brought(value, target))
    if gathered is None:
        return None
    scope.leak("sdb.sum", value)
    call = Call("sdb_sum", (gathered,))
    return replace(groups.under(value, call, target), low=low, high=high, type=type_)


def most_rows(scope: Scope) -> int:
    """No group has more rows than the product of the tables."""
    rows = 1
    for source in scope.sources:
        rows *= max(source.table.row_count, 1)
    return rows
