"""What the constraints of a table say of its columns, and so of what the server need hold of them.

A column that is never NULL needs no flags for its sums; one that others may refer to has a join
group of its own; one whose CHECK bounds it has short order codes.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor.local.local import Schema
from louver.trusted.executor.schema import choices
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.types import (
    family,
    interval_bits,
    order_domain,
    shifted,
    value_range,
)

Bounds = tuple[int | None, int | None]
"""Lowest and highest unscaled value; None where nothing is said."""

_MOMENTS = ("DATE", "TIMESTAMP")
_EPOCH = datetime.datetime(1970, 1, 1)
_UNSTABLE = re.compile(
    r"\b(now|today|current_\w+|get_current_\w+|random|setseed|uuid|gen_random_uuid|uuidv\d|"
    r"nextval|timestamptz|with time zone|timezone|to_timestamp|transaction_timestamp|"
    r"localtime\w*|getvariable)\b"
)
_EXACT = re.compile(r"\d+(\.\d+)?")
# Python has neither infinite days nor years of more digits, and would take others for them.
_ISO = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is declared of one column.

    ``key`` tells whether other tables may refer to it, ``parent`` (table, column) to what it
    refers itself, ``bounds`` what a CHECK leaves of its type; ``expression`` is what a generated
    column is computed by. ``unique`` says that its values differ by themselves, ``choices`` how
    many values it may have where these are listed (0: no list).
    """

    nullable: bool = True
    key: bool = False
    parent: tuple[str, str] | None = None
    bounds: Bounds = (None, None)
    expression: str = ""
    unique: bool = False
    choices: int = 0

    def order_domain(self, type_: str) -> tuple[int, int] | None:
        """The lowest value of the column's order codes and their bits."""
        whole, limits = order_domain(type_), value_range(type_)
        if limits is None or self.bounds == (None, None):
            return whole
        low = limits[0] if self.bounds[0] is None else max(self.bounds[0], limits[0])
        high = limits[1] if self.bounds[1] is None else min(self.bounds[1], limits[1])
        return interval_bits(low, high) if low <= high else whole


def read(declared: Schema, schema: str, name: str) -> dict[str, Known]:
    """What is declared of every column of a local table, by name in lower case."""
    types = {fold(column.name): column.type for column in declared.columns(schema, name)}
    results = {column: Known(choices=choices.of_type(type_)) for column, type_ in types.items()}
    for constraint in declared.constraints(schema, name):
        kind, check = constraint.kind, constraint.expression
        names = [fold(column) for column in constraint.columns]
        if kind in ("NOT NULL", "PRIMARY KEY"):
            for column in names:
                results[column] = replace(results[column], nullable=False)
        if kind in ("PRIMARY KEY", "UNIQUE"):
            for column in names:
                alone = len(names) == 1 or results[column].unique
                results[column] = replace(results[column], key=True, unique=alone)
        elif kind == "FOREIGN KEY":
            for column, other in zip(names, constraint.parent_columns, strict=True):
                if results[column].parent is None:
                    parent = (constraint.parent, other)
                    results[column] = replace(results[column], parent=parent)
        elif kind == "CHECK" and len(set(names)) == 1 and names[0] in results:
            column = names[0]
            bounds = _checked(declared, check, column, types[column])
            listed = choices.fewest(results[column].choices, choices.of_check(check, column))
            results[column] = replace(
                results[column], bounds=_both(results[column].bounds, bounds), choices=listed
            )
    for column, known in results.items():
        room = choices.of_bounds(known.bounds, types[column])
        results[column] = replace(known, choices=choices.fewest(known.choices, room))
    for column, expression in declared.generated(schema, name).items():
        if column in results:
            results[column] = replace(results[column], expression=expression)
    return results


def keys(declared: Schema, schema: str, name: str) -> list[list[str]]:
    """The columns of every PRIMARY KEY and UNIQUE constraint of a local table."""
    constraints = declared.constraints(schema, name)
    return [list(c.columns) for c in constraints if c.kind in ("PRIMARY KEY", "UNIQUE")]


def _both(left: Bounds, right: Bounds) -> Bounds:
    lows = [b for b in (left[0], right[0]) if b is not None]
    highs = [b for b in (left[1], right[1]) if b is not None]
    return max(lows, default=None), min(highs, default=None)


def _checked(declared: Schema, check: str, column: str, type_: str) -> Bounds:
    """What a CHECK proves of a column; nothing where it is not read for certain."""
    if family(type_) != "number" and type_ not in _MOMENTS:
        return None, None
    try:
        node = trees.parse_one(check)
    except (SqlglotError, RecursionError):
        return None, None

    def number(item: exp.Expr) -> int | None:
        return _number(declared, item, type_)

    def bounds(item: exp.Expr) -> Bounds:
        match item:
            case exp.Paren():
                return bounds(item.this)
            case exp.And():
                return _both(bounds(item.this), bounds(item.expression))
            case exp.Between() if _is(item.this, column):
                return number(item.args["low"]), number(item.args["high"])
            case exp.In() if _is(item.this, column) and item.expressions:
                listed = [number(part) for part in item.expressions]
                known = [value for value in listed if value is not None]
                return (min(known), max(known)) if len(known) == len(listed) else (None, None)
            case exp.GTE() | exp.GT() | exp.LTE() | exp.LT() | exp.EQ():
                return _compared(type(item), item.this, item.expression, column, number)
        return None, None

    return bounds(node)


def _compared(
    sign: type[exp.Expr], left: exp.Expr, right: exp.Expr, column: str, number: Any
) -> Bounds:
    if _is(right, column):
        sign, left, right = _TURNED[sign], right, left
    if not _is(left, column):
        return None, None
    value = number(right)
    if sign is exp.EQ:
        return value, value
    return (value, None) if sign in (exp.GT, exp.GTE) else (None, value)


def _is(node: exp.Expr, column: str) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Column) and fold(node.name) == column


def _number(declared: Schema, node: exp.Expr, type_: str) -> int | None:
    """A constant of a CHECK as an unscaled value of the column's type.

    Rounding to the column's type moves a bound by less than one unit, never over a value.
    """
    parts = list(node.walk())
    allowed = (exp.Literal, exp.Neg, exp.Paren, exp.Cast, exp.DataType, exp.DataTypeParam)
    if not all(isinstance(part, allowed) for part in parts):
        return None
    casts = [keyword(local_text(part.to)) for part in parts if isinstance(part, exp.Cast)]
    if any(family(cast) != "number" and cast not in ("INT", *_MOMENTS) for cast in casts):
        return None
    for literal in (part for part in parts if isinstance(part, exp.Literal)):
        # A number with an exponent is a DOUBLE, and compares less exactly than whole numbers do.
        form = _ISO if literal.is_string else _EXACT
        if not form.fullmatch(literal.this) or (literal.is_string and type_ not in _MOMENTS):
            return None
    return _unscaled(declared.constant(f"CAST({local_text(node)} AS {type_})"), type_)


def _unscaled(value: object, type_: str) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case Decimal():
            return int(shifted(value, -int(value.as_tuple().exponent)))
        case datetime.datetime():
            return (value - _EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date() if type_ == "DATE":
            return (value - _EPOCH.date()).days
    return None


def require_stable(
    label: str, columns: Sequence[tuple[str, str]], declared: Mapping[str, Known]
) -> None:
    """Refuse a generated column that depends on more than its row: on the session's time zone, the
    clock, or chance. DuckDB computes it whenever it is read, and here it is stored.
    """
    zoned = {fold(name) for name, type_ in columns if type_.endswith("TIME ZONE")}
    for name, known in declared.items():
        words = [fold(token.text) for token in lexer.tokens(known.expression)]
        text = " ".join(words)
        if zoned.intersection(words) or _UNSTABLE.search(text):
            raise errors.make(
                "sql.unsupported",
                statement=f"A generated column that depends on the time zone, the clock or chance "
                f"({label}.{name}; make it a view's column instead)",
            )
