"""Secrets as SQL that the local engine evaluates to a value of the compared type.

Providers hold one type for each expression, whatever the type of the secret, so that a shape does
not reveal it; DuckDB's cast to a common type is instead applied to the secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlglot import exp

from louver import errors
from louver.trusted.planner.private import marks
from louver.trusted.planner.private.conditions import Constraint
from louver.trusted.planner.private.plan_cache import NULL
from louver.trusted.planner.private.question import Clause, End, Secret
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.private.schema import Schema
from louver.trusted.planner.sql import placeholders
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.types import is_integer, value_range

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_FLOATS = ("FLOAT", "DOUBLE")
_ZONED = "TIMESTAMP WITH TIME ZONE"
_STAMPS = {
    "TIMESTAMP": "INTERVAL 1 MICROSECOND",
    "TIMESTAMP_S": "INTERVAL 1 SECOND",
    "TIMESTAMP_MS": "INTERVAL 1 MILLISECOND",
    "TIMESTAMP_NS": "",
}
#: The date that follows -infinity, and the one that precedes infinity.
_LAST_FINITE = {
    "+": ("-infinity", "5877642-06-25 (BC)"),
    "-": ("infinity", "5881580-07-10"),
}
#: The same for timestamps, by their units.
_LAST_STAMPS = {
    "TIMESTAMP": ("make_timestamp(-9223372022400000000)", "make_timestamp(9223372036854775806)"),
    "TIMESTAMP_S": (
        "TIMESTAMP_S '290309-12-22 (BC) 00:00:00'",
        "TIMESTAMP_S '294247-01-10 04:00:54'",
    ),
    "TIMESTAMP_MS": (
        "TIMESTAMP_MS '290309-12-22 (BC) 00:00:00'",
        "TIMESTAMP_MS '294247-01-10 04:00:54.775'",
    ),
    "TIMESTAMP_NS": (
        "TIMESTAMP_NS '1677-09-22 00:00:00'",
        "make_timestamp_ns(9223372036854775806)",
    ),
}
_EQUAL_ONLY = ("BOOLEAN", "UUID", "BLOB")
_NO_NULL = "a secret that is made of NULL has another type than its column"
_INEXACT = "A secret in floating point is too large to be compared exactly: cast it to DECIMAL."


@dataclass(frozen=True, slots=True)
class Comparand:
    """An expression that secrets are compared with: its SQL in the shape, and its type.

    ``zoned``: it is the microseconds of a TIMESTAMP WITH TIME ZONE, which do not depend on the
    time zone.
    """

    sql: str
    type: str
    zoned: bool = False


def comparand(node: exp.Expr, type_: str, *, interval: bool) -> Comparand:
    """An expression as it appears in the shape; refuses types that have no keys."""
    sql = local_text(node)
    if type_.startswith("ENUM("):
        return Comparand(f"CAST({sql} AS TEXT)", "VARCHAR")
    if type_ == _ZONED:
        return Comparand(f"EPOCH_US({sql})", "BIGINT", zoned=True)
    if type_ in _FLOATS:
        raise refuse(
            f"{sql} is a floating-point number compared with a secret",
            f"Compare it as a decimal: CAST({sql} AS DECIMAL(18, 2))",
        )
    if type_ in _EQUAL_ONLY and interval:
        raise refuse(f"a private interval over {type_}", f"Compare {sql} by = or IN")
    known = _number(type_) or type_ in _STAMPS or type_ in ("DATE", "TIME", "VARCHAR")
    if not known and type_ not in _EQUAL_ONLY:
        raise refuse(f"{sql} of type {type_} compared with a secret", "Cast it to another type")
    return Comparand(sql, type_)


@dataclass(slots=True)
class Values:
    """The types of the values bound to a statement's placeholders, in order. The resulting
    secrets contain positions instead of values.
    """

    schema: Schema
    types: tuple[str, ...]

    def clause(
        self,
        constraints: dict[str, list[Constraint]],
        comparands: dict[str, Comparand],
        interval: str,
    ) -> Clause:
        """One clause from constraints; its equalities are in the order of ``comparands``."""
        equals = tuple(
            self._equal(constraints[key], of) for key, of in comparands.items() if key != interval
        )
        if not interval:
            return Clause(equals)
        of, bounds = comparands[interval], constraints[interval]
        low = self._end(bounds, of, ("=", ">", ">="))
        high = self._end(bounds, of, ("=", "<", "<="))
        return Clause(equals, low, high)

    def _equal(self, constraints: list[Constraint], of: Comparand) -> Secret:
        builder = _SecretBuilder(self)
        texts = list(dict.fromkeys(builder.value(c, of) for c in constraints))
        if len(texts) == 1:
            return builder.secret(texts[0])
        others = " AND ".join(f"v0 = v{i}" for i in range(1, len(texts)))
        return builder.secret(_over(texts, f"CASE WHEN {others} THEN v0 END"))

    def _end(
        self, constraints: list[Constraint], of: Comparand, operators: tuple[str, ...]
    ) -> End | None:
        wanted = [c for c in constraints if c.operator in operators]
        if not wanted:
            return None
        flags = {of.type != "VARCHAR" or c.operator in ("=", "<=", ">=") for c in wanted}
        if len(flags) > 1:
            raise refuse("a text bounded twice, with and without its end", "Bound it once")
        builder = _SecretBuilder(self)
        texts = [builder.value(c, of) for c in wanted]
        inclusive = flags.pop()
        if len(texts) == 1:
            return End(builder.secret(texts[0]), inclusive)
        pick = "greatest" if ">" in operators else "least"
        values = ", ".join(f"v{i}" for i in range(len(texts)))
        known = " AND ".join(f"v{i} IS NOT NULL" for i in range(len(texts)))
        case = f"CASE WHEN {known} THEN {pick}({values}) END"
        return End(builder.secret(_over(texts, case)), inclusive)


@dataclass(slots=True)
class _SecretBuilder:
    """Builds one secret with its own parameters, numbered from 1."""

    values: Values
    parameters: list[object] = field(default_factory=list)

    def secret(self, sql: str) -> Secret:
        return Secret(sql, tuple(self.parameters))

    def value(self, constraint: Constraint, of: Comparand) -> str:
        """A scalar subquery: the constant as a value of the comparand's type, rounded for the
        operator; NULL if nothing can match.
        """
        sql = self._text(constraint.constant)
        try:
            given = self._type(constraint.constant)
            if given is not None:
                _require_comparable(of, given)
        except errors.Error:
            if not self._has_null(constraint.constant):
                raise
            # An expression over NULL has an arbitrary type; the local engine checks that it is
            # NULL.
            other = f"error('{_NO_NULL}')"
            case = f"CASE WHEN s IS NULL THEN CAST(NULL AS {of.type}) ELSE {other} END"
            return f"(SELECT {case} FROM (SELECT {sql} AS s))"
        target = _ZONED if of.zoned else of.type
        if given is None:
            # NULL has no type of its own; nothing is equal to it or below it.
            return f"(SELECT CAST(NULL AS {of.type}) FROM (SELECT {sql} AS s))"
        if given == "BOOLEAN" and _number(of.type):
            sql, given = f"CAST({sql} AS TINYINT)", "TINYINT"
        if not _rounds(target, given):
            sql = f"CAST({sql} AS {target})"
            case = _exact(constraint.operator, of)
            if of.zoned:
                sql = f"epoch_us({sql})"
            if case == "v":
                return sql
            return f"(SELECT {case} FROM (SELECT {sql} AS v))"
        case = _rounded(constraint.operator, of.type, given in _FLOATS)
        inner = f"SELECT s, TRY_CAST(s AS {of.type}) AS v FROM (SELECT {sql} AS s)"
        return f"(SELECT {case} FROM ({inner}))"

    def _text(self, node: exp.Expr) -> str:
        """The constant's SQL, with `$1`, `$2` for its placeholders."""
        return _numbered(node, self.parameters)

    def _type(self, node: exp.Expr) -> str | None:
        """The constant's own type; None for NULL.

        Placeholders are columns here: over typed NULLs, DuckDB would fold an expression to a NULL
        without a type. Placeholders of NULL are NULL itself, which takes any type.
        """
        bare, types = _bare(node), self.values.types
        while isinstance(bare, exp.Paren):
            bare = bare.this
        if isinstance(bare, exp.Null) or self._is_null(bare):
            return None
        bare = bare.transform(lambda part: exp.Null() if self._is_null(part) else part)
        columns = ", ".join(
            f"CAST(NULL AS {type_}) AS {PARAMETER_PREFIX}{i}"
            for i, type_ in enumerate(types)
            if type_ != NULL
        )
        source = f" FROM (SELECT {columns})" if columns else ""
        return self.values.schema.describe(f"SELECT {local_text(bare)} AS v{source}")[0][1]

    def _is_null(self, node: exp.Expr) -> bool:
        return (
            placeholders.is_placeholder(node)
            and self.values.types[placeholders.place_of(node)] == NULL
        )

    def _has_null(self, node: exp.Expr) -> bool:
        return any(self._is_null(part) for part in node.walk())


def _bare(node: exp.Expr) -> exp.Expr:
    """A constant without PRIVATE around its parts."""

    def bare(node: exp.Expr) -> exp.Expr:
        if marks.is_private(node):
            if len(node.expressions) != 1:
                raise refuse("PRIVATE of several things", "Write PRIVATE(expression)")
            return exp.Paren(this=_bare(node.expressions[0]))
        return node

    return node.copy().transform(bare)


def _numbered(node: exp.Expr, positions: list[object]) -> str:
    """A constant's SQL; the positions of its parameters are added to ``positions``."""

    def plain(node: exp.Expr) -> exp.Expr:
        if placeholders.is_placeholder(node):
            positions.append(placeholders.place_of(node))
            return exp.Var(this=f"${len(positions)}")
        return node

    return local_text(_bare(node).transform(plain))


def _over(texts: list[str], case: str) -> str:
    columns = ", ".join(f"{text} AS v{i}" for i, text in enumerate(texts))
    return f"(SELECT {case} FROM (SELECT {columns}))"


def _number(type_: str) -> bool:
    return is_integer(type_) or _DECIMAL.fullmatch(type_) is not None


def _require_comparable(of: Comparand, given: str) -> None:
    if _number(of.type) and not of.zoned:
        fits = _number(given) or given in (*_FLOATS, "VARCHAR", "BOOLEAN")
    elif of.zoned:
        fits = given in (*_STAMPS, "DATE", _ZONED, "VARCHAR")
    elif of.type == "DATE" or of.type in _STAMPS:
        fits = given in (*_STAMPS, "DATE", "VARCHAR")
    else:
        fits = given in (of.type, "VARCHAR")
    if not fits:
        type_ = _ZONED if of.zoned else of.type
        raise refuse(
            f"{of.sql} of type {type_} compared with a secret of type {given}",
            f"Cast the secret: CAST(? AS {type_})",
        )


def _rounds(target: str, given: str) -> bool:
    """Whether a value of the given type may lie between two of the target's."""
    if given in (target, "VARCHAR"):
        return False
    finer = target in ("TIMESTAMP", "TIMESTAMP_NS") and given == "DATE"
    return not finer and target != _ZONED


def _exact(operator: str, of: Comparand) -> str:
    """The value for an operator, if the constant is a value ``v`` of the type."""
    if of.type == "VARCHAR" or operator in ("=", "<=", ">="):
        return "v"
    return _next(of.type) if operator == ">" else _previous(of.type)


def _rounded(operator: str, type_: str, inexact: bool) -> str:
    """The value for an operator, if the constant ``s`` has another type and ``v`` is near it."""
    low, high, zero = _limits(type_)
    up, down = _next(type_), _previous(type_)
    if operator == "=":
        doubt = f"WHEN {up} = s OR {down} = s THEN error('{_INEXACT}') " if inexact else ""
        return f"CASE WHEN v IS NULL OR v <> s THEN NULL {doubt}ELSE v END"
    if operator in (">", ">="):
        doubt = f"WHEN {down} {operator} s THEN error('{_INEXACT}') " if inexact else ""
        beyond = f"CASE WHEN s < {zero} THEN {low} END"
        step = up
    else:
        doubt = f"WHEN {up} {operator} s THEN error('{_INEXACT}') " if inexact else ""
        beyond = f"CASE WHEN s >= {zero} THEN {high} END"
        step = down
    return (
        f"CASE WHEN s IS NULL THEN NULL WHEN v IS NULL THEN {beyond} {doubt}"
        f"WHEN v {operator} s THEN v ELSE {step} END"
    )


def _limits(type_: str) -> tuple[str, str, str]:
    """The least and the greatest value of a type, and a constant whose comparison with a value out
    of range shows on which side it is.
    """
    decimal = _DECIMAL.fullmatch(type_)
    if decimal:
        whole, scale = int(decimal[1]) - int(decimal[2]), int(decimal[2])
        digits = ("9" * whole or "0") + ("." + "9" * scale if scale else "")
        return f"CAST('-{digits}' AS {type_})", f"CAST('{digits}' AS {type_})", "0"
    limits = value_range(type_)
    if is_integer(type_) and limits is not None:
        return f"CAST('{limits[0]}' AS {type_})", f"CAST('{limits[1]}' AS {type_})", "0"
    epoch = "CAST('1970-01-01' AS DATE)"
    return f"CAST('-infinity' AS {type_})", f"CAST('infinity' AS {type_})", epoch


def _next(type_: str) -> str:
    return _step(type_, "+")


def _previous(type_: str) -> str:
    return _step(type_, "-")


def _step(type_: str, sign: str) -> str:
    """The neighbour of ``v``; NULL at the end of the type."""
    if _number(type_):
        low, high, _ = _limits(type_)
        decimal = _DECIMAL.fullmatch(type_)
        scale = int(decimal[2]) if decimal else 0
        unit = f"CAST('{'0.' + '0' * (scale - 1) + '1' if scale else '1'}' AS {type_})"
        inside = f"v < {high}" if sign == "+" else f"v > {low}"
        return f"CASE WHEN {inside} THEN CAST(v {sign} {unit} AS {type_}) END"
    beyond, last = _LAST_FINITE[sign]
    if type_ == "DATE":
        return (
            f"CASE WHEN v = DATE '{beyond}' THEN DATE '{last}' "
            f"ELSE TRY(CASE WHEN isfinite(v) THEN CAST(v {sign} 1 AS DATE) END) END"
        )
    if type_ == "TIME":
        end = "23:59:59.999999" if sign == "+" else "00:00:00"
        inside = f"v {'<' if sign == '+' else '>'} TIME '{end}'"
        return f"CASE WHEN {inside} THEN v {sign} INTERVAL 1 MICROSECOND END"
    last = _LAST_STAMPS[type_][sign == "-"]
    stepped = f"CAST(v {sign} {_STAMPS[type_]} AS {type_})"
    if type_ == "TIMESTAMP_NS":
        stepped = f"make_timestamp_ns(epoch_ns(v) {sign} 1)"
    return (
        f"CASE WHEN v = CAST('{beyond}' AS {type_}) THEN {last} "
        f"ELSE TRY(CASE WHEN isfinite(v) THEN {stepped} END) END"
    )
