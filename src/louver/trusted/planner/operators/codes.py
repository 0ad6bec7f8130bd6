"""Comparisons on codes: what the server holds of a sealed column compares as its values do.

Which representation answers an operation, and what that shows, is said in its scheme's row. Codes
that are native types the server compares as it compares anything; others by the scheme's function.
A constant is sent as its own code; the client evaluates it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from louver import errors
from louver.trusted.planner.ir import Code, Column, Node, Opening, SharedExpr, Sql
from louver.trusted.planner.operators import shares
from louver.trusted.planner.sql import lexer, placeholders
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Scope, coded, typed
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.planner.sql.values import EncodedColumn, Predicate
from louver.trusted.vault.scheme import Answer, representation
from louver.trusted.vault.types import (
    UNORDERED,
    decimal_scale,
    decimal_width,
    family,
    value_range,
)

# What a constant expression is made of: nothing here depends on a row, on chance or on a clock.
_CONSTANT = (
    exp.Literal, exp.Neg, exp.Paren, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Interval,
    exp.Var, exp.Add, exp.Sub, exp.Mul, exp.Boolean, exp.Null, exp.Column, exp.Identifier,
)  # fmt: skip
_MARKER = re.compile(r"⟪(\d+)⟫")
_MOMENTS = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"))
_MOST_DIGITS = 38
_UNTOLD = ("text", "blob", "uuid")
"""Domains of which order codes know the first eight bytes only, or none at all."""


def equals_constant(
    value: EncodedColumn, node: exp.Expr, sign: str, scope: Scope
) -> Predicate | None:
    """``value = constant`` or ``<>``."""
    answer = value.answers(sign)
    if answer is None:
        return None
    code = constant(value, node, answer[0], sign, scope)
    if code is None:
        return None
    return _decided(value, answer, Sql(f"⟦0⟧ {sign} ⟦1⟧", (value.node(answer[0]), code)), scope)


def member(value: EncodedColumn, nodes: Sequence[exp.Expr], scope: Scope) -> Predicate | None:
    """``value IN (constants)``."""
    answer = value.answers("IN")
    if answer is None:
        return None
    if spoken().reads_off and _has_common_type(nodes):
        return None
    codes = [constant(value, node, answer[0], "=", scope) for node in nodes]
    known: list[Node] = [code for code in codes if code is not None]
    if len(known) != len(nodes):
        return None
    listed = ", ".join(f"⟦{index}⟧" for index in range(1, len(known) + 1))
    node = Sql(f"⟦0⟧ IN ({listed})", (value.node(answer[0]), *known))
    return _decided(value, answer, node, scope)


def _has_common_type(nodes: Sequence[exp.Expr]) -> bool:
    """Whether parameters of a list have the type that PostgreSQL finds for all of it, which need
    not be the column's.
    """
    bare = [node.unnest() for node in nodes]
    others = [node for node in bare if not placeholders.is_placeholder(node)]
    untyped = (
        isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and "." not in node.name)
        for node in others
    )
    return len(others) < len(bare) and not all(untyped)


def ordered_constant(
    value: EncodedColumn, node: exp.Expr, sign: str, scope: Scope
) -> Predicate | None:
    """``value < constant`` and the like: the constant's code is that of the boundary, which is
    the largest value that the column's domain has on the lower side.
    """
    request = value.answers(sign)
    if request is None or value.domain in UNORDERED:
        return None
    name, answer = request
    code = constant(value, node, name, sign, scope)
    if code is None:
        return None
    exact = orders_exactly(value)
    compared = "<=" if sign in ("<", "<=") else ">" if exact else ">="
    if not answer.operation:
        condition = Sql(f"⟦0⟧ {compared} ⟦1⟧", (value.node(name), code))
        return _decided(value, request, condition, scope, exact)
    order = scope.operation(answer.operation, value.node(name), code)
    if order is None:
        return None
    return _decided(value, request, Sql(f"⟦0⟧ {compared} 0", (order,)), scope, exact)


def compared(value: EncodedColumn, node: exp.Expr, sign: str, scope: Scope) -> Predicate | None:
    """``value sign constant``."""
    compare = equals_constant if sign in ("=", "<>") else ordered_constant
    return compare(value, node, sign, scope)


def in_range(value: EncodedColumn, node: exp.Expr, sign: str, scope: Scope) -> Predicate | None:
    """``value sign constant`` as a range that a lake's index is asked for (spec/eds.md); ``sign``
    is a comparison but ``<>``, or ``prefix``. Files that its token does not meet hold no row that
    matters; what it keeps is too much, never too little, so the local engine decides again.
    """
    answer = value.answers("RANGE")
    if answer is None or sign == "<>":
        return None
    code = constant(value, node, answer[0], sign, scope)
    if code is None:
        return None
    shown(value, answer, scope)
    return Predicate(code, True, exact=answer[1].exact)


def bucketed(column: exp.Column, node: exp.Expr, sign: str, scope: Scope) -> Predicate | None:
    """``share sign constant`` where buckets are stored beside the shares: the bucket first."""
    match, value, limit = scope.find(column), scope.read(column), scope.constant(node)
    if match is None or not isinstance(value, SharedExpr) or limit is None:
        return None
    buckets = coded(*match)
    before = scope.collected.mark()
    bucket = ordered_constant(buckets, node, sign, scope) if buckets else None
    exact = shares.compare(value, limit, sign, scope) if bucket else None
    if bucket is None or exact is None:
        scope.collected.undo(before)
        return None
    return Predicate(Sql("(⟦0⟧ AND ⟦1⟧)", (bucket.node, exact.node)), True)


def matched(value: EncodedColumn, code: Code, name: str, scope: Scope) -> Predicate | None:
    """What an operation of the backend decides on a representation."""
    answer = value.answers(name)
    if answer is None:
        return None
    row_id = (Column(value.alias, "row_id"),) if answer[1].by_row else ()
    condition = scope.operation(answer[1].operation, value.node(answer[0]), *row_id, code)
    return None if condition is None else _decided(value, answer, condition, scope)


def _decided(
    value: EncodedColumn, request: tuple[str, Answer], node: Node, scope: Scope, exact: bool = True
) -> Predicate:
    """The condition, and what it shows."""
    answer = request[1]
    shown(value, request, scope)
    exact = exact and answer.exact and not (answer.hides_nulls and value.nullable)
    return Predicate(node, True, exact)


def shown(value: EncodedColumn, request: tuple[str, Answer], scope: Scope) -> Node:
    """Note what an operation on a representation shows; the server's column."""
    name, answer = request
    if answer.opens:
        opened(value, name, answer.opens, scope)
    if answer.leak:
        scope.leak_of(answer.leak, value)
    return value.node(name)


def columns(left: EncodedColumn, right: EncodedColumn, sign: str, scope: Scope) -> Predicate | None:
    """Two columns compared: on codes under one key."""
    request = left.answers(sign)
    if request is None or left.domain != right.domain or not right.has(request[0]):
        return None
    name, answer = request
    same = (left.table, left.column) == (right.table, right.column)
    if answer.operation or (not same and (not left.group or left.group != right.group)):
        return None
    state = answer.opens if same else answer.pairs
    rejoined = not same and state != answer.opens
    if not state or (rejoined and not scope.backend.has("rejoin")):
        return None
    if sign not in ("=", "<>") and not _ordered_alike(left, right):
        return None
    for side in (left, right):
        opened(side, name, state, scope)
    if sign == "=" and left.slot != right.slot:
        scope.linked.append(frozenset({left.slot, right.slot}))
    return Predicate(Sql(f"⟦0⟧ {sign} ⟦1⟧", (left.node(name), right.node(name))), True)


def _ordered_alike(left: EncodedColumn, right: EncodedColumn) -> bool:
    exact = orders_exactly(left) and orders_exactly(right)
    return exact and (left.low, left.bits) == (right.low, right.bits)


def orders_exactly(value: EncodedColumn) -> bool:
    """Whether order codes tell any two values apart."""
    return value.domain not in _UNTOLD and not value.coarse


def opened(value: EncodedColumn, onion: str, state: str, scope: Scope) -> None:
    """Note that a layer must be open. What this shows is said where plans become facts."""
    scope.collected.open(Opening(value.table, value.column, onion, state))


def constant(
    value: EncodedColumn, node: exp.Expr, onion: str, sign: str, scope: Scope
) -> Code | None:
    """A constant expression as a code of a column, if DuckDB would compare the two without
    changing the column's values.
    """
    text = constant_text(node, scope, texts_open=True)
    if text is None or scope.describe is None:
        return None
    bare = node.unnest()
    is_string = isinstance(bare, exp.Literal) and bare.is_string
    if isinstance(bare, exp.Null) or (is_string and value.type != "VARCHAR"):
        # A string, or NULL, of no type of its own takes the column's.
        text = f"CAST({text} AS {_type_beside(value.type)})"
    if spoken().reads_off and (of_column := _bare(bare, scope)) is not None:
        text = f"CAST({spoken().string(of_column)} AS {_type_beside(value.type)})"
    elif spoken().reads_off and _is_open(bare, scope) and is_read_as_it_is(value.type):
        text = f"CAST({text} AS {_type_beside(value.type)})"
    type_ = _type_of(_filled(text, scope), scope)
    if not type_ or not _comparable(value.type, type_):
        return None
    if value.type == "DOUBLE" and type_ != "DOUBLE":
        text = f"CAST({text} AS {spoken().own_type('DOUBLE')})"
    stored = representation(onion).type(scope.declared(value))
    bound = spoken().reads_off and placeholders.is_placeholder(bare)
    return Code(onion, value.table, value.column, sign, text, stored, bound=bound)


def constant_type(node: exp.Expr, scope: Scope) -> str:
    """DuckDB's type of a constant expression as it is written; empty where it has none."""
    text = constant_text(node, scope, texts_open=True)
    return "" if text is None else _type_of(_filled(text, scope), scope)


def holds(column: str, constant_type: str) -> bool:
    """Whether every value of a constant's type is one of a column's, but for its size."""
    if family(constant_type) != "number" or family(column) != "number":
        return column == constant_type
    return decimal_scale(constant_type) <= decimal_scale(column)


def _type_of(text: str, scope: Scope) -> str:
    """DuckDB's type of a constant expression; empty where it has none."""
    known = scope.types.get(text)
    if known is None and scope.describe is not None:
        try:
            ((_, known),) = scope.describe(f"SELECT {text}")
            known = spoken().catalog_type(known)
        except errors.Error:
            known = ""
        scope.types[text] = known
    return known or ""


def _comparable(column: str, constant_type: str) -> bool:
    if column == constant_type or constant_type == '"NULL"':
        return True
    if column in _MOMENTS and constant_type in _MOMENTS:
        return True
    if constant_type == "numeric":
        # PostgreSQL's, which compares numbers of any scale as they are.
        return column == "DOUBLE" or family(column) == "number"
    if family(constant_type) == "number":
        return column == "DOUBLE" or (family(column) == "number" and _fit(column, constant_type))
    return False


def _fit(column: str, constant_type: str) -> bool:
    """Whether every value of a column has a place in the DECIMAL in which it and a constant are
    compared; else DuckDB fails for some rows.
    """
    limits = value_range(column)
    if limits is None or not any(map(decimal_width, (column, constant_type))):
        return True
    digits = len(str(limits[1])) - decimal_scale(column)
    return digits + max(decimal_scale(column), decimal_scale(constant_type)) <= _MOST_DIGITS


def constant_text(node: exp.Expr, scope: Scope, *, texts_open: bool = False) -> str | None:
    """DuckDB's text of an expression without columns, with its numbers left open, and bound texts
    too where ``texts_open``.
    """
    for part in node.walk():
        if not isinstance(part, _CONSTANT) or isinstance(part, exp.TryCast):
            return None
        if isinstance(part, exp.Column) and not _is_written(part, scope):
            return None
    copy = exp.Paren(this=node.copy())
    for part in list(copy.find_all(exp.Column, exp.Literal)):
        filled = _marked(part, scope, texts_open)
        if filled is not None:
            part.replace(exp.Var(this=filled))
    return str(local_text(copy.this))


def _is_written(part: exp.Column, scope: Scope) -> bool:
    """Whether a column is a placeholder, and DuckDB's text can say what is bound to it."""
    if not part.name.startswith(PARAMETER_PREFIX):
        return False
    value = typed(scope.parameters, int(part.name.removeprefix(PARAMETER_PREFIX)))
    return isinstance(value, int) or written(value) is not None


def written(value: object) -> str | None:
    """DuckDB's text of a bound value, of the type that it has when it is bound."""
    match value:
        case str() if not lexer.is_open_text(str(value)):
            return None
        case None | str() | bytes() | bool():
            return local_text(exp.convert(value))
        case float():
            # Not the value's own repr: numpy's numbers are floats too.
            return f"CAST('{float(value)!r}' AS {spoken().own_type('DOUBLE')})"
        case Decimal() if value.is_finite() and int(value.as_tuple().exponent) <= 0:
            return f"{value:f}"
        case datetime() if value.tzinfo is None:
            return local_text(exp.convert(value))
        case date() if not isinstance(value, datetime):
            # Four digits: PostgreSQL reads fewer as a year of this century or the last.
            return f"CAST('{value.isoformat()}' AS DATE)"
    return None


def _type_beside(column: str) -> str:
    """The type that a constant of none of its own has beside a column: in PostgreSQL's language it
    is not rounded to the column's digits.
    """
    own = spoken().own_type(column)
    return own.partition("(")[0] if spoken().reads_off else own


def is_read_as_it_is(type_: str) -> bool:
    """Whether a text is read as the same value of a type under all settings, at any time."""
    return type_ == "UUID" or decimal_width(type_) is not None


def _is_open(node: exp.Expr, scope: Scope) -> bool:
    """Whether a node is a bound text by itself, which a plan does not hold."""
    values = scope.parameters
    if isinstance(values, lexer.Values) and placeholders.is_placeholder(node):
        return values.is_text(placeholders.place_of(node))
    return False


def _bare(node: exp.Expr, scope: Scope) -> str | None:
    """The text of a bound value that stands alone: PostgreSQL reads it as the type of what it is
    compared with. Whole numbers and texts are open in a plan.
    """
    if not placeholders.is_placeholder(node):
        return None
    value = typed(scope.parameters, placeholders.place_of(node))
    match value:
        case bool() | datetime() | date():
            return str(value)
        case float():
            return repr(float(value))
        case Decimal():
            return f"{value:f}"
    return None


def _marked(part: exp.Expr, scope: Scope, texts_open: bool) -> str | None:
    if isinstance(part, exp.Literal):
        if part.is_string or part.meta.get("start") not in scope.shape.starts:
            return None
        return f"⟪{scope.shape.starts.index(part.meta['start'])}⟫"
    index = int(part.name.removeprefix(PARAMETER_PREFIX))
    values, number = scope.parameters, len(scope.shape.literals) - len(scope.parameters) + index
    if texts_open and isinstance(values, lexer.Values) and values.is_text(index):
        return f"⟪{number}⟫"
    value = values[index]
    if isinstance(value, int) and not isinstance(value, bool):
        return f"(⟪{number}⟫)"
    # Any other value is part of the plan's key.
    return written(value)


def _filled(text: str, scope: Scope) -> str:
    return fill(text, scope.shape.literals)


def fill(text: str, literals: Sequence[str]) -> str:
    """The text with the statement's numbers put in."""
    return _MARKER.sub(lambda match: literals[int(match[1])], text)
