"""Rules applied: expression trees to what the server computes for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Protocol

from sqlglot import exp

from louver import errors
from louver.names import fold
from louver.trusted.planner.ir import Plain, SharedExpr, Sql
from louver.trusted.planner.operators import keys
from louver.trusted.planner.operators.rule import Aggregate, Value, rewritten
from louver.trusted.planner.rules import AGGREGATES_BY_TYPE, BY_TYPE
from louver.trusted.planner.sql import placeholders
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Scope, Source, typed
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.planner.sql.values import EncodedColumn, Predicate, when
from louver.trusted.vault.types import decimal_scale

_CONDITIONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Between,
    exp.In, exp.Is, exp.Like, exp.Boolean,
)  # fmt: skip
_OPPOSITES: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}  # fmt: skip
_TYPED = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
_AGGREGATE_NODES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


def ask_types(
    select: exp.Select, scope: Scope, describe: Callable[[str], list[tuple[str, str]]]
) -> None:
    """The local engine's types of all arithmetic and aggregates of the block, in one question."""
    scope.describe = describe
    scope.tables = tables_text(select, scope)
    aggregates: dict[str, str] = {}
    others: dict[str, str] = {}
    for node in select.find_all(*_TYPED, *_AGGREGATE_NODES):
        if any(_unknown(column, scope) for column in node.find_all(exp.Column)):
            continue
        if isinstance(node, _AGGREGATE_NODES):
            aggregates[local_text(node)] = typed_text(node, scope)
        elif not list(node.find_all(*_AGGREGATE_NODES)):
            others[local_text(node)] = f"({typed_text(node, scope)})"
    texts = [
        f"SELECT {', '.join(known.values())} {scope.tables}"
        for known in (aggregates, others)
        if known
    ]
    if not texts:
        return
    # Aggregates and what is of rows stand in no query together.
    text = texts[0] if len(texts) == 1 else f"SELECT * FROM ({texts[0]}) AS a, ({texts[1]}) AS b"
    try:
        types = describe(text)
    except errors.Error:
        # The statement binds as a whole; what does not bind by itself has no type here, and
        # without a type no rule takes it.
        return
    for key, (_, type_) in zip([*aggregates, *others], types, strict=True):
        scope.types[key] = type_


def tables_text(select: exp.Select, scope: Scope) -> str:
    """FROM with its joins, for the local engine."""
    clause = select.args.get("from_") or select.args["from"]
    joins = " ".join(typed_text(join, scope) for join in select.args.get("joins") or [])
    return f"{typed_text(clause, scope)} {joins}"


def _unknown(column: exp.Column, scope: Scope) -> bool:
    if not column.table and fold(column.name) in scope.virtual:
        return False
    return scope.find(column) is None and not column.name.startswith(PARAMETER_PREFIX)


def typed_text(node: exp.Expr, scope: Scope) -> str:
    """The node's SQL with parameters as typed constants, since their type is their value's."""
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        if column.name.startswith(PARAMETER_PREFIX):
            value = typed(scope.parameters, int(column.name.removeprefix(PARAMETER_PREFIX)))
            column.replace(exp.Var(this=parameter_type(value)))
    return local_text(copy)


def parameter_type(value: object) -> str:
    """A NULL of the type that DuckDB gives to a bound value; of no type elsewhere."""
    if not spoken().has_simple_terms:
        return "NULL"
    match value:
        case bool():
            return "NULL::BOOLEAN"
        case int():
            return "NULL::INTEGER" if -(1 << 31) <= value < 1 << 31 else "NULL::BIGINT"
        case Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            scale = max(-int(exponent), 0)
            return f"NULL::DECIMAL({max(len(digits), scale, 1)},{scale})"
        case float():
            return "NULL::DOUBLE"
        case date():
            return "NULL::DATE"
        case str():
            return "NULL::VARCHAR"
    return "NULL"


def operand(node: exp.Expr, scope: Scope) -> Value | None:
    """A node as a value that the server can compute, or None."""
    if isinstance(node, exp.Paren):
        return operand(node.this, scope)
    constant = scope.constant(node)
    if constant is not None:
        return constant
    if isinstance(node, exp.Column):
        return None if isinstance(node.this, exp.Star) else scope.read(node)
    computed = scope.generated(node)
    if computed is not None:
        return scope.read(computed)
    value = rewritten(BY_TYPE, node, scope, lambda child: operand(child, scope))
    return native(node, scope) if value is None else value


def native(node: exp.Expr, scope: Scope) -> Plain | None:
    """A node over plain columns and literals, as the server's own SQL."""
    slots: set[int] = set()
    values = placeholders.texts(node, scope)
    if values is None:
        return None
    for part in node.find_all(exp.Column):
        if not placeholders.is_placeholder(part):
            match = scope.find(part)
            if match is None or match[1].encrypted:
                return None
            slots.add(match[0].slot)
    # Where an error ends the transaction, the server must not be the one that raises it.
    if not slots or (spoken().fails_whole and _may_raise(node, scope)):
        return None
    text = scope.backend.render(
        node, lambda part: _leaf(part, scope, values), lambda part: _leaf_type(part, scope)
    )
    if text is None:
        return None
    if isinstance(node, exp.EQ) and len(slots) > 1:
        scope.linked.append(frozenset(slots))
    low, high, type_ = _native_bounds(node, scope)
    return Plain(
        Sql(text),
        type_,
        low,
        high,
        decimal_scale(type_),
        frozenset(slots),
    )


def _native_bounds(node: exp.Expr, scope: Scope) -> tuple[int | None, int | None, str]:
    """Bounds are known of bare columns only; computed plain values go home with shares."""
    if isinstance(node, exp.Column):
        value = scope.read(node)
        if isinstance(value, Plain):
            return value.low, value.high, value.type
    return None, None, scope.type_of(node)


def _leaf(part: exp.Expr, scope: Scope, values: dict[int, str]) -> str | None:
    """A column, placeholder or number as the server's text; its numbers are left open."""
    if placeholders.is_placeholder(part):
        return values[placeholders.place_of(part)]
    if isinstance(part, exp.Column):
        match = scope.find(part)
        if match is None:
            return None
        source, column = match
        return f"{source.server_alias}.{source.backend.quote(column.stored['plain'])}"
    if isinstance(part, exp.Literal) and not part.is_string:
        start = part.meta.get("start")
        if start in scope.shape.starts:
            return f"⟪{scope.shape.starts.index(start)}⟫"
    return None


def _leaf_type(part: exp.Expr, scope: Scope) -> str:
    """The type of a column, placeholder or literal; empty where it is not known."""
    if placeholders.is_placeholder(part):
        kind = parameter_type(typed(scope.parameters, placeholders.place_of(part)))
        return kind.removeprefix("NULL").removeprefix("::")
    if isinstance(part, exp.Column):
        match = scope.find(part)
        return match[1].type if match is not None else ""
    if isinstance(part, exp.Literal) and part.is_string:
        return "VARCHAR"
    constant = scope.constant(part)
    return constant.type if constant is not None else ""


def predicate(node: exp.Expr, scope: Scope) -> Predicate | None:
    """A condition that the server decides, or None. What a half-built condition would have
    leaked is not noted.
    """
    before = scope.collected.mark()
    condition = _predicate(node, scope)
    if condition is None:
        scope.collected.undo(before)
    return condition


def _predicate(node: exp.Expr, scope: Scope) -> Predicate | None:
    if isinstance(node, exp.Paren):
        return _predicate(node.this, scope)
    if isinstance(node, exp.And):
        key = keys.conjunction(node, scope)
        if key is not None:
            return key
        node = keys.regrouped(node, keys.finds(scope))
    if isinstance(node, exp.And | exp.Or):
        left, right = _predicate(node.this, scope), _predicate(node.expression, scope)
        if left is None or right is None:
            return None
        if left.secret or right.secret:
            left, right = guarded(left, scope), guarded(right, scope)
        if left is None or right is None:
            return None
        word = "AND" if isinstance(node, exp.And) else "OR"
        either = keys.either(left.node, right.node) if word == "OR" else None
        joined = either or Sql(f"(⟦0⟧ {word} ⟦1⟧)", (left.node, right.node))
        secret, raises = left.secret or right.secret, left.raises or right.raises
        return Predicate(joined, secret, left.exact and right.exact, raises)
    if isinstance(node, exp.Not):
        inner = _predicate(node.this, scope)
        if inner is None or not inner.exact:
            turned = _turned(node.this.copy())
            return None if turned is None else _predicate(turned, scope)
        return Predicate(Sql("(NOT ⟦0⟧)", (inner.node,)), inner.secret, True, inner.raises)
    if not isinstance(node, _CONDITIONS):
        return None
    value = operand(node, scope)
    if isinstance(value, Predicate):
        return value
    if isinstance(value, Plain):
        return Predicate(value.node, False, raises=_may_raise(node, scope))
    return None


def guarded(condition: Predicate, scope: Scope) -> Predicate | None:
    """A condition that is decided apart from others, which may exclude the rows that it fails for:
    these pass. None where the server cannot let them pass.
    """
    if not condition.raises:
        return condition
    tried = scope.operation("tried", condition.node)
    return None if tried is None else Predicate(tried, condition.secret, exact=False)


def _may_raise(node: exp.Expr, scope: Scope) -> bool:
    """Whether arithmetic on columns may leave the range of its type."""
    safe = spoken().exact_types or ("DOUBLE", "FLOAT")
    return any(
        part.find(exp.Column) is not None and scope.type_of(part) not in safe
        for part in node.find_all(*_TYPED)
    )


def _turned(node: exp.Expr) -> exp.Expr | None:
    """The opposite of a condition without NOT around it: as true, as false and as NULL."""
    if isinstance(node, exp.Paren):
        return _turned(node.this)
    if isinstance(node, exp.Not):
        inner: exp.Expr = node.this
        return inner
    if isinstance(node, exp.And | exp.Or):
        word = exp.Or if isinstance(node, exp.And) else exp.And
        return word(this=exp.not_(node.this), expression=exp.not_(node.expression))
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        below = exp.LT(this=node.this, expression=node.args["low"])
        above = exp.GT(this=node.this, expression=node.args["high"])
        return exp.Or(this=below, expression=above)
    opposite = _OPPOSITES.get(type(node))
    return None if opposite is None else opposite(this=node.this, expression=node.expression)


def aggregate(node: exp.Expr, scope: Scope) -> Aggregate | None:
    """An aggregate that the server computes, or None."""
    before = scope.collected.mark()
    conditions = len(scope.filters)
    result = rewritten(AGGREGATES_BY_TYPE, node, scope, lambda child: _aggregated(child, scope))
    if result is None:
        scope.collected.undo(before)
        del scope.filters[conditions:]
    return result


def _aggregated(node: exp.Expr, scope: Scope) -> Value | None:
    """The operand of an aggregate: a value, or one of the rows that meet a condition."""
    choice = _choice(node)
    if choice is None:
        return operand(node, scope)
    condition = predicate(choice.this, scope)
    if condition is None or not condition.exact or condition.raises:
        return None
    scope.filters.append(condition.node)
    other = node.args.get("default")
    if _is_flag(choice.args["true"]):
        value = f"1{' ELSE 0' if other is not None else ''}"
        return Plain(Sql(f"CASE WHEN ⟦0⟧ THEN {value} END", (condition.node,)), "INTEGER")
    if other is not None:
        return None
    match operand(choice.args["true"], scope):
        case EncodedColumn() as column if column.when is None:
            return dataclasses.replace(column, when=condition.node)
        case Plain() as plain:
            return Plain(when(condition.node, plain.node), plain.type, scale=plain.scale)
    return None


def _choice(node: exp.Expr) -> exp.If | None:
    """The one condition of CASE WHEN … THEN … END, whose other rows count as NULL or as 0."""
    if not isinstance(node, exp.Case) or node.args.get("this") or len(node.args["ifs"]) != 1:
        return None
    other = node.args.get("default")
    choice: exp.If = node.args["ifs"][0]
    zero = isinstance(other, exp.Literal) and not other.is_string and other.name == "0"
    if other is not None and not isinstance(other, exp.Null):
        return choice if zero and _is_flag(choice.args["true"]) else None
    return choice


def _is_flag(node: exp.Expr) -> bool:
    """Whether a value is a 1 of the text: that number is in the plan, and not of the data."""
    return isinstance(node, exp.Literal) and not node.is_string and node.name == "1"


class Answer(Protocol):
    """The columns of the server's answer, each asked for once."""

    def add(self, value: SharedExpr | Plain, type_: str) -> str: ...

    def stored(self, source: Source, name: str) -> str: ...


class Replacer:
    """Puts columns of the answer in place of what the server computed."""

    def __init__(self, scope: Scope, answer: Answer, aggregated: bool) -> None:
        self.scope = scope
        self.answer = answer
        self.aggregated = aggregated

    def tree(self, tree: exp.Select) -> None:
        """Replace in every clause that runs locally. In an aggregated block only arguments of
        aggregates are computed values: DuckDB must still see what it groups by.
        """
        for clause in ("expressions", "where", "group", "having", "order", "limit", "offset"):
            part = tree.args.get(clause)
            for node in part if isinstance(part, list) else [part]:
                if isinstance(node, exp.Expr):
                    self._visit(node, inside=not self.aggregated)

    def _visit(self, node: exp.Expr, inside: bool) -> None:
        if isinstance(node, exp.Column):
            match = None if isinstance(node.this, exp.Star) else self.scope.find(node)
            if match is not None:
                node.replace(exp.column(self.answer.stored(match[0], match[1].name)))
            return
        if inside and isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Neg)):
            before = self.scope.collected.mark()
            value = operand(node, self.scope)
            if isinstance(value, SharedExpr):
                node.replace(exp.column(self.answer.add(value, value.type)))
                return
            self.scope.collected.undo(before)
        inside = inside or isinstance(node, _AGGREGATE_NODES)
        for child in list(node.iter_expressions()):
            self._visit(child, inside)
