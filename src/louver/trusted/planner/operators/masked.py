"""Aggregates over sealed columns: masked sums, and rows that codes choose.

A masked sum (spec/sum.md) is opened by the masks of the rows that were added, so the server says
which they were. What is grouped by, or is a least or greatest value, comes back as the sealed
value of one row together with that row's number.
"""

from __future__ import annotations

from louver.names import keyword
from louver.trusted.planner.ir import Column, HomModulus, Node, Plain, Sql
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Aggregate
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.selection import Unsplit
from louver.trusted.planner.sql.values import EncodedColumn, GroupRepresentative, HomSum, Masked
from louver.trusted.vault.types import code_width, decimal_scale, is_integer, value_range

_LIMB_BITS = {8: 60, 16: 64}
"""Bits of a limb, by the width of the type's codes (spec/sum.md)."""
INEXACT = ("text", "blob", "uuid", "double", "float")
"""Domains in which an order code is not the whole value, or equal values differ (-0.0, 0.0)."""


def total(value: EncodedColumn, type_: str, scope: Scope) -> Masked | HomSum | None:
    """SUM of a masked or packed column."""
    return _masked(value, "total", type_, scope) or _packed(value, "total", type_, scope)


def average(value: EncodedColumn, scope: Scope) -> Aggregate | None:
    """AVG: the sum, and how many values are not NULL."""
    scale = decimal_scale(value.type)
    type_ = "HUGEINT" if is_integer(value.type) else f"DECIMAL(38,{scale})"
    packed = _packed(value, "total", type_, scope)
    sum_ = _masked(value, "total", type_, scope)
    if sum_ is None:
        counts = _packed(value, "count", "BIGINT", scope)
        return Aggregate((packed, counts), average=True) if packed and counts else None
    number = _masked(value, "count", "BIGINT", scope) if sum_.flagged else None
    return Aggregate((sum_, number or Plain(sum_.count, "BIGINT")), average=True)


def counted(value: EncodedColumn, scope: Scope) -> Aggregate | None:
    """COUNT(A): of all rows where A never was NULL, else of codes or of flags."""
    if not value.nullable:
        return Aggregate((Plain(Sql("count(⟦0⟧)", (_number(value),)), "BIGINT"),))
    if value.has("sum_count"):
        flags = _masked(value, "count", "BIGINT", scope)
        return None if flags is None else Aggregate((flags,))
    counts = _packed(value, "count", "BIGINT", scope)
    if counts is not None:
        return Aggregate((counts,))
    answer = value.answers("COUNT")
    if answer is None:
        return None
    node = codes.shown(value, answer, scope)
    return Aggregate((Plain(Sql("count(⟦0⟧)", (node,)), "BIGINT"),))


def distinct(value: EncodedColumn, scope: Scope) -> Aggregate | None:
    """COUNT(DISTINCT A) on equality codes."""
    answer = value.answers("DISTINCT")
    if answer is None:
        return None
    node = codes.shown(value, answer, scope)
    return Aggregate((Plain(Sql("count(DISTINCT ⟦0⟧)", (node,)), "BIGINT"),))


def extreme(value: EncodedColumn, name: str, scope: Scope) -> Aggregate | None:
    """MIN and MAX: the row with the least or greatest order code."""
    answer = value.answers(keyword(name))
    if answer is None or value.domain in INEXACT or value.coarse:
        return None
    operands = (_sealed(value, scope), _number(value), value.node(answer[0]))
    node = scope.operation(f"{name}_value", *operands)
    row = scope.operation(f"{name}_row", *operands)
    if node is None or row is None:
        return None
    codes.shown(value, answer, scope)
    return Aggregate((GroupRepresentative(node, row, value.slot, value.column, value.type),))


def grouped(value: EncodedColumn, scope: Scope) -> tuple[Node, GroupRepresentative]:
    """What is grouped by, and the value of a group: that of its row with the least number."""
    answer = value.answers("GROUP BY")
    if answer is None or value.domain in ("double", "float"):
        # Equal floats may differ (-0.0, 0.0), and DuckDB shows the one that it met first.
        raise Unsplit
    number = _number(value)
    node = scope.operation("of_least", _sealed(value, scope), number)
    row = scope.operation("least_row", number)
    if node is None or row is None:
        raise Unsplit
    code = codes.shown(value, answer, scope)
    return code, GroupRepresentative(node, row, value.slot, value.column, value.type)


def _masked(value: EncodedColumn, what: str, type_: str, scope: Scope) -> Masked | None:
    if not value.has("sum") or (value.nullable and not value.has("sum_count")):
        return None
    number = _number(value)
    added = scope.operation("row_set", number)
    if added is None or not scope.backend.has("limb_sum"):
        return None
    rows = scope.pairs(frozenset(s.slot for s in scope.sources))
    # The server sees what it is asked for: what is declared decides, not what is stored.
    most = _largest(*(value_range(value.type) or (None, None))) * rows
    if what == "total" and code_width(value.domain) == 16 and most >= 10**38:
        # The local engine's sum may overflow, and then the error is its own. Of 64-bit values no
        # server adds enough.
        return None
    # The client takes the total from half of what one limb can tell apart.
    fits = most < 1 << (_LIMB_BITS[code_width(value.domain)] - 1)
    return Masked(
        what,
        _sum(value, "sum_count" if what == "count" else "sum", scope),
        None if fits or what == "count" else _sum(value, "sum_high", scope),
        Sql("count(⟦0⟧)", (number,)) if not value.nullable else _sum(value, "sum_count", scope),
        None if scope.whole and value.when is None else added,
        value.nullable,
        value.slot,
        value.table,
        value.column,
        type_,
    )


def _largest(low: int | None, high: int | None) -> int:
    return max(abs(low or 0), abs(high or 0))


def _packed(value: EncodedColumn, what: str, type_: str, scope: Scope) -> HomSum | None:
    if not value.has("hom"):
        return None
    added = scope.operation("hom_sum", value.node("hom"), HomModulus())
    if added is None:
        return None
    rows = Sql("count(⟦0⟧)", (_number(value),))
    return HomSum(what, added, rows, value.slot, value.column, type_)


def _sum(value: EncodedColumn, representation: str, scope: Scope) -> Node:
    node = scope.operation("limb_sum", value.node(representation))
    if node is None:
        raise Unsplit
    return node


def _number(value: EncodedColumn) -> Node:
    return value.counted(Column(value.alias, "row_id"))


def _sealed(value: EncodedColumn, scope: Scope) -> Node:
    column = next(c for c in scope.source(value.slot).table.columns if c.id == value.column)
    return value.counted(Column(value.alias, column.stored["rnd"]))
