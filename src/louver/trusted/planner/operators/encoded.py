"""Aggregates over sealed columns: sums that a scheme opens, and rows that codes choose.

Which sums the server computes, and of what, is said in the scheme's row. What is grouped by, or is
a least or greatest value, comes back as the sealed value of one row together with that row's
number.
"""

from __future__ import annotations

from louver.names import keyword
from louver.trusted.planner.ir import Column, Node, Plain, Public, Sql, Summed
from louver.trusted.planner.operators import algebra, codes
from louver.trusted.planner.operators.rule import Aggregate
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.selection import Unsplit
from louver.trusted.planner.sql.values import EncodedColumn, GroupRepresentative
from louver.trusted.vault.scheme import (
    COUNT,
    PUBLIC,
    ROW_ID,
    TOTAL,
    Addends,
    Scheme,
    SumPart,
    read_from,
    representation,
    scheme_of,
    summing,
)
from louver.trusted.vault.stored_types import WIDE_CODE
from louver.trusted.vault.types import decimal_scale, is_integer

INEXACT = ("text", "blob", "uuid", "double", "float")
"""Domains in which an order code is not the whole value, or equal values differ (-0.0, 0.0)."""


def total(value: EncodedColumn, type_: str, scope: Scope) -> Summed | None:
    """SUM under the first scheme that adds the column up."""
    sums = (_summed(row, value, TOTAL, type_, scope) for row in summing())
    return next((sum_ for sum_ in sums if sum_ is not None), None)


def average(value: EncodedColumn, scope: Scope) -> Aggregate | None:
    """AVG: the sum, and how many values are not NULL."""
    sum_ = total(value, sum_type(value), scope)
    if sum_ is None:
        return None
    number = _summed(scheme_of(sum_.scheme), value, COUNT, "BIGINT", scope)
    if number is None and value.nullable:
        return None
    return Aggregate((sum_, number or _all_rows(value)), average=True)


def sum_type(value: EncodedColumn) -> str:
    """The widest exact type of a sum of a column."""
    if is_integer(value.type):
        return spoken().whole_sums
    return f"DECIMAL(38,{decimal_scale(value.type)})"


def counted(value: EncodedColumn, scope: Scope) -> Aggregate | None:
    """COUNT(A): of all rows where A never was NULL, else of what a scheme adds up, or of codes."""
    if not value.nullable:
        return Aggregate((_all_rows(value),))
    for row in summing():
        number = _summed(row, value, COUNT, "BIGINT", scope)
        if number is not None:
            return Aggregate((number,))
    answer = value.answers("COUNT")
    if answer is None:
        return None
    node = codes.shown(value, answer, scope)
    return Aggregate((Plain(Sql("count(⟦0⟧)", (node,)), "BIGINT"),))


def _all_rows(value: EncodedColumn) -> Plain:
    return Plain(Sql("count(⟦0⟧)", (_number(value),)), "BIGINT")


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
    # An engine that compares codes by their bytes has operations for each of their types.
    wide = representation(answer[0]).type(scope.declared(value)) == WIDE_CODE
    suffix = "_wide" if wide and scope.backend.has(f"{name}_value_wide") else ""
    node = scope.operation(f"{name}_value{suffix}", *operands)
    row = scope.operation(f"{name}_row{suffix}", *operands)
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


def _summed(
    row: Scheme, value: EncodedColumn, what: str, type_: str, scope: Scope
) -> Summed | None:
    if row.sums is None or not value.has(row.representations[0].name):
        return None
    rows = algebra.most_rows(scope)
    whole = scope.whole and value.when is None
    parts = row.sums(Addends(scope.declared(value), what, rows, whole))
    nodes = [(part.name, _aggregated(row, part, value, scope)) for part in parts]
    known = tuple((name, node) for name, node in nodes if node is not None)
    if not known or len(known) != len(nodes):
        return None
    names_rows = any(part.names_rows for part in parts)
    return Summed(row.name, what, known, value.slot, value.column, type_, names_rows)


def _aggregated(row: Scheme, part: SumPart, value: EncodedColumn, scope: Scope) -> Node | None:
    named: dict[str, Node] = {ROW_ID: _number(value), PUBLIC: Public(row.name)}
    operands = tuple(named.get(name) or value.node(name) for name in part.operands)
    if part.operation == COUNT:
        return Sql("count(⟦0⟧)", operands)
    return scope.operation(part.operation, *operands)


def _number(value: EncodedColumn) -> Node:
    return value.counted(Column(value.alias, "row_id"))


def _sealed(value: EncodedColumn, scope: Scope) -> Node:
    column = next(c for c in scope.source(value.slot).table.columns if c.id == value.column)
    return value.counted(Column(value.alias, read_from(column)))
