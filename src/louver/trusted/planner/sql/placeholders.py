"""Bound values in conditions on plain columns, as constants of the server's text.

Only where the server compares exactly what the local DuckDB would compare: each value has the type
that DuckDB gives it when it is bound, and no comparison of these types can fail. A value that is
compared with anything else stays locally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.vault.types import decimal_width

# A number that is an operand of one of these changes no name and no type of the answer.
_FREE = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Add, exp.Sub,
    exp.Mul, exp.Limit, exp.Offset,
)  # fmt: skip
# Functions whose types are those of their operands.
_TRANSPARENT = (
    exp.And, exp.Or, exp.Case, exp.If, exp.Coalesce, exp.Cast, exp.Abs, exp.Count, exp.Sum,
    exp.Avg, exp.Min, exp.Max,
)  # fmt: skip
_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like,
)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
_WHOLE = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
"""Digits of the whole numbers."""
_FLOATING = {"DOUBLE", "FLOAT"}
_MOST_DIGITS = 38


def is_placeholder(node: exp.Expr) -> bool:
    """Whether a node is a placeholder, which the lexer made an identifier."""
    return (
        isinstance(node, exp.Column) and not node.table and node.name.startswith(PARAMETER_PREFIX)
    )


def place_of(node: exp.Expr) -> int:
    """Which of the statement's placeholders a node is."""
    return int(node.name.removeprefix(PARAMETER_PREFIX))


def texts(node: exp.Expr, scope: Scope) -> dict[int, str] | None:
    """The server's text for each placeholder of a condition, where whole numbers are left open as
    ``⟪i⟫``; None where one of them may not be compared there.
    """
    by_index: dict[int, str] = {}
    for column in filter(is_placeholder, node.find_all(exp.Column)):
        comparison = _comparison(column, node)
        if comparison is None or not _is_exact(comparison, scope):
            return None
        by_index[place_of(column)] = _text(place_of(column), scope)
    return by_index


def _comparison(column: exp.Expr, within: exp.Expr) -> exp.Expr | None:
    """The comparison that a placeholder is a side of."""
    node = column
    while node is not within and node.parent is not None:
        node = node.parent
        if isinstance(node, _COMPARISONS):
            return node
        if not isinstance(node, exp.Paren):
            return None
    return None


def _is_exact(comparison: exp.Expr, scope: Scope) -> bool:
    """Whether the server compares as home does, and neither can fail."""
    columns = list(comparison.find_all(exp.Column))
    values = [scope.parameters[place_of(c)] for c in columns if is_placeholder(c)]
    named = [scope.find(c) for c in columns if not is_placeholder(c)]
    types = {column[1].type if column else "" for column in named}
    kinds = {type(value) for value in values}
    if isinstance(comparison, exp.Like) and kinds != {str}:
        return False
    strings = any(literal.is_string for literal in comparison.find_all(exp.Literal))
    if comparison.find(*_ARITHMETIC) is not None:
        return kinds == {int} and types <= _WHOLE.keys() and all(map(_is_whole, values))
    if kinds == {str}:
        return types == {"VARCHAR"} and all(map(lexer.is_open_text, values))
    if kinds == {date}:
        return types == {"DATE"} and not strings
    if kinds == {datetime}:
        naive = all(isinstance(v, datetime) and v.tzinfo is None for v in values)
        return types == {"TIMESTAMP"} and naive and not strings
    return not strings and _is_numeric(types, values)


def _is_numeric(types: set[str], values: Sequence[object]) -> bool:
    """Numbers among numbers, of a type that holds them all."""
    sizes = [*map(_digits, types), *map(_digits_of, values)]
    if None in sizes:
        return False
    known = [size for size in sizes if size is not None]
    if types & _FLOATING or any(isinstance(value, float) for value in values):
        return True
    return max(whole for whole, _ in known) + max(scale for _, scale in known) <= _MOST_DIGITS


def _digits(type_: str) -> tuple[int, int] | None:
    """How many digits a type has before and behind its point."""
    if type_ in _FLOATING:
        return 0, 0
    decimal = decimal_width(type_)
    if decimal is not None:
        width, scale = decimal
        return width - scale, scale
    return (_WHOLE[type_], 0) if type_ in _WHOLE else None


def _digits_of(value: object) -> tuple[int, int] | None:
    if type(value) is int:
        return (_WHOLE["BIGINT"], 0) if _is_whole(value) else None
    if type(value) is float:
        return (0, 0) if math.isfinite(value) else None
    if type(value) is Decimal and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        fine = 0 <= scale <= len(digits) <= _MOST_DIGITS
        return (len(digits) - scale, scale) if fine else None
    return None


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and abs(value) < 1 << 63


def _text(position: int, scope: Scope) -> str:
    """A value as a constant of standard SQL, of the type that the local engine binds it with."""
    value = scope.parameters[position]
    if isinstance(value, int):
        index = len(scope.shape.literals) - len(scope.parameters) + position
        type_ = "INT" if -(1 << 31) <= value < 1 << 31 else "BIGINT"
        return f"CAST(⟪{index}⟫ AS {type_})"
    if isinstance(value, float):
        return f"({value!r})" if "e" in repr(value) else f"({value!r}e0)"
    if isinstance(value, Decimal):
        whole, scale = _digits_of(value) or (0, 0)
        return f"CAST('{value}' AS DECIMAL({max(whole + scale, 1)}, {scale}))"
    if isinstance(value, datetime):
        return f"CAST('{value}' AS TIMESTAMP)"
    if isinstance(value, date):
        return f"CAST('{value}' AS DATE)"
    return spoken().string(str(value))


def fixed_literals(
    tree: exp.Expr | None, shape: lexer.Shape, names: Sequence[str]
) -> tuple[tuple[int, str], ...]:
    """The numbers that a plan holds for only as they are: those that stand where they might
    decide a type or a position, or in the name of a column of the answer.
    """
    free: set[int] = set()
    for node in tree.find_all(exp.Literal) if tree is not None else ():
        if _is_free(node) and node.meta.get("start") in shape.starts:
            free.add(shape.starts.index(node.meta["start"]))
    text = " ".join(names)
    written = shape.literals[: len(shape.starts)]
    return tuple(
        (index, literal)
        for index, literal in enumerate(written)
        # Numbers that are equal may be one expression to the plan; others need not be.
        if index not in free or literal in text or written.count(literal) > 1
    )


def _is_free(literal: exp.Literal) -> bool:
    """Whether a number changes no name and no type of the answer: it is an operand, and not of an
    argument by which a function chooses its type, as of the 2 of ``round(d, 1 + 2)``.
    """
    node = literal.parent
    while isinstance(node, exp.Neg | exp.Paren):
        node = node.parent
    if not isinstance(node, _FREE):
        return False
    while node is not None and not isinstance(node, exp.Query):
        if isinstance(node, exp.Func | exp.Bracket) and not isinstance(node, _TRANSPARENT):
            return False
        node = node.parent
    return True


def fixed_texts(
    tree: exp.Expr | None, shape: lexer.Shape, values: lexer.Values
) -> tuple[tuple[int, str], ...]:
    """The bound texts that a plan holds for only as they are: those that were looked at while it
    was made, and those that stand elsewhere than beside ``=`` or in the list of IN.
    """
    beside: dict[int, bool] = {}
    for node in tree.find_all(exp.Column) if tree is not None else ():
        if is_placeholder(node):
            position = place_of(node)
            beside[position] = beside.get(position, True) and _is_compared(node)
    first = len(shape.literals) - len(values)
    return tuple(
        (first + position, shape.literals[first + position])
        for position in range(len(values))
        if values.is_text(position) and (position in values.seen or not beside.get(position))
    )


def _is_compared(node: exp.Expr) -> bool:
    """Whether a placeholder is compared with a column, and stands in nothing else."""
    parent = node.parent
    if not isinstance(parent, exp.EQ | exp.In):
        return False
    other = parent.expression if parent.this is node else parent.this
    return isinstance(other, exp.Column) and not is_placeholder(other)
