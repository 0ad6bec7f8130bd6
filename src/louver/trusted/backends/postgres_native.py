"""Expressions over plain columns for a server of the local engine's own kind: the text of a tree
of a small vocabulary, which depends on its operands alone and on no setting of a session.
"""

from __future__ import annotations

import re

from sqlglot import exp

from louver.names import keyword
from louver.trusted.backends.backend import Leaf, TypeOf
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX

_VOCABULARY = (
    exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Paren,
    exp.Null, exp.Boolean, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or,
    exp.Not, exp.Between, exp.In, exp.Is, exp.Like, exp.Case, exp.If, exp.Coalesce, exp.Cast,
    exp.DataType, exp.Interval, exp.Var,
)  # fmt: skip
_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like,
)  # fmt: skip
_NUMBERS = frozenset(("SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"))
_OTHERS = frozenset(("BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "UUID"))
#: Compared alike with its own kind alone: with a date or a time the zone of the session counts.
_ZONED = "TIMESTAMP WITH TIME ZONE"
_DECIMAL = re.compile(r"DECIMAL\(\d+, ?\d+\)")
#: Dates and lengths of time that mean the same under every DateStyle and IntervalStyle.
_DAY = re.compile(r"(?!0000)\d{4}-\d\d-\d\d")
_COUNT = re.compile(r"\d{1,6}")
_UNITS = frozenset(("DAY", "WEEK", "MONTH", "YEAR", "HOUR", "MINUTE", "SECOND"))


def rendered(node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> str | None:
    """An expression as the server's text; None where any part of it is not known."""
    if not all(_is_known(part, type_of) for part in node.walk()):
        return None
    copy = exp.Paren(this=node.copy())
    for part in list(copy.find_all(exp.Column, exp.Literal)):
        text = leaf(part)
        if text is not None:
            part.replace(exp.Var(this=text))
        elif isinstance(part, exp.Column):
            return None
    return str(copy.sql("postgres"))


def _is_known(part: exp.Expr, type_of: TypeOf) -> bool:
    if not isinstance(part, _VOCABULARY) or isinstance(part, exp.TryCast):
        return False
    match part:
        case exp.In():
            return bool(part.expressions) and not part.args.get("query")
        case exp.Between():
            return not part.args.get("symmetric")
        case exp.Like():
            # Of a pattern that is not written out, a backslash at its end is an error.
            pattern = part.expression
            return isinstance(pattern, exp.Literal) and pattern.is_string
        case exp.Column():
            known = _is_placeholder(part) or _is_known_type(type_of(part))
            return known or _is_zoned_alone(part, type_of)
        case exp.Var():
            return isinstance(part.parent, exp.Interval)
        case exp.Interval():
            unit = part.args.get("unit")
            counted = isinstance(part.this, exp.Literal) and _COUNT.fullmatch(part.this.name)
            return bool(counted) and isinstance(unit, exp.Var) and keyword(unit.name) in _UNITS
        case exp.Cast():
            # Of texts that are written out; a cast of a column may fail, or depend on a setting.
            literal = part.this
            text = isinstance(literal, exp.Literal) and literal.is_string
            return text and part.to.is_type("date") and bool(_DAY.fullmatch(literal.name))
        case exp.DataType():
            return isinstance(part.parent, exp.Cast)
        case exp.Literal() if part.is_string:
            return isinstance(part.parent, exp.Cast | exp.Interval) or _is_text(part, type_of)
    return True


def _is_zoned_alone(column: exp.Column, type_of: TypeOf) -> bool:
    """Whether a moment stands in IS NULL, or is compared with columns of its own type alone."""
    parent = column.parent
    if type_of(column) != _ZONED or not isinstance(parent, exp.Is | exp.Between | exp.Binary):
        return False
    if isinstance(parent, exp.Is):
        return isinstance(parent.expression, exp.Null)
    sides = list(parent.iter_expressions())
    columns = all(isinstance(side, exp.Column) and type_of(side) == _ZONED for side in sides)
    return isinstance(parent, _COMPARISONS) and columns


def is_compared(type_: str) -> bool:
    """Whether values of a type, by the catalog's name, are compared by every server alike, and
    equal ones are the same value.
    """
    return _is_known_type(type_) or type_ == _ZONED


def _is_known_type(type_: str) -> bool:
    return type_ in _NUMBERS or type_ in _OTHERS or bool(_DECIMAL.fullmatch(type_))


def _is_placeholder(column: exp.Column) -> bool:
    return not column.table and bool(column.name.startswith(PARAMETER_PREFIX))


def _is_text(literal: exp.Literal, type_of: TypeOf) -> bool:
    """Whether a string is compared with texts, or a day with days. Any other string is a value of
    a type that the server works out, by the settings of its session.
    """
    comparison = literal.parent
    if not isinstance(comparison, _COMPARISONS) or "\\" in literal.name or "\0" in literal.name:
        return False
    sides = [side for side in comparison.iter_expressions() if not isinstance(side, exp.Literal)]
    types = {type_of(side) if isinstance(side, exp.Column) else "" for side in sides}
    if types == {"DATE"}:
        return bool(_DAY.fullmatch(literal.name)) and not isinstance(comparison, exp.Like)
    return types == {"VARCHAR"}
