"""The private constants of a question, evaluated locally, as points or intervals of points.

Clauses that match nothing, or nothing beyond other clauses, become None: a dummy replaces them, so
that their number stays the public one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from louver import errors
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.planner.private.question import Clause, End, Secret
from louver.trusted.planner.sql import lexer
from louver.wire import keycode, ordinals
from louver.wire.questions import Code, KeyCodes, Prepared, Shape

#: Expressions per SELECT; DuckDB's planner is slow for many subqueries.
_AT_ONCE = 6


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """For each clause: its point or span (both ends inclusive), and its records' fingerprint.

    Without an interval `spans` is empty, with one `points` is.
    """

    points: tuple[int | None, ...]
    spans: tuple[tuple[int, int] | None, ...]
    fingerprints: tuple[int | None, ...]

    def __repr__(self) -> str:
        return f"Keys(of {len(self.fingerprints)} clauses)"


@dataclass(frozen=True, slots=True, repr=False)
class Constant:
    """The value of a secret, known locally only: an array of one element."""

    secret: Secret
    value: pa.Array

    @property
    def is_null(self) -> bool:
        """NULL equals nothing and bounds nothing."""
        return bool(self.value.null_count)


@dataclass(frozen=True, slots=True, repr=False)
class Constants:
    """The constants of one clause; an end that is None is open."""

    equals: tuple[Constant, ...]
    low: Constant | None
    high: Constant | None
    low_inclusive: bool
    high_inclusive: bool


@dataclass(frozen=True, slots=True, repr=False)
class _Equal:
    """The constants that a clause is equal to, in both representations."""

    units: list[int]
    texts: list[str]


def evaluate(home: LocalEngine, shape: Shape, clauses: Sequence[Clause]) -> list[Constants]:
    """Evaluate every constant before anything is sent: one that cannot be compared stops the
    question here, since what is sent must not depend on what is private.
    """
    wanted = [secret for clause in clauses for secret in _secrets(shape, clause)]
    values = iter(_evaluated(home, wanted))
    return [_constants(clause, values) for clause in clauses]


def _secrets(shape: Shape, clause: Clause) -> list[tuple[Secret, str]]:
    """The secrets of a clause in order, with the expressions they are compared with."""
    ends = [end.secret for end in (clause.low, clause.high) if end is not None]
    equals = list(zip(clause.equals, shape.equal, strict=True))
    return equals + [(secret, shape.interval) for secret in ends]


def _constants(clause: Clause, values: Iterator[pa.Array]) -> Constants:
    """A clause with the values of its secrets, in the order of `_secrets`."""
    equals = tuple(Constant(secret, next(values)) for secret in clause.equals)
    low, high = (
        None if end is None else Constant(end.secret, next(values))
        for end in (clause.low, clause.high)
    )
    return Constants(equals, low, high, _inclusive(clause.low), _inclusive(clause.high))


def _evaluated(home: LocalEngine, wanted: Sequence[tuple[Secret, str]]) -> list[pa.Array]:
    """The values of secrets; an error names what the failing one is compared with."""
    try:
        return _values(home, [(secret.sql, secret) for secret, _ in wanted])
    except (errors.Error, RuntimeError):
        # The message contains the value, and does not say which secret failed.
        pass
    arrays = []
    for secret, expression in wanted:
        try:
            arrays += _values(home, [(secret.sql, secret)])
        except (errors.Error, RuntimeError):
            raise errors.make("provider.constant", expression=expression) from None
    return arrays


def bind(home: LocalEngine, prepared: Prepared, shape: Shape, clauses: Sequence[Constants]) -> Keys:
    """Convert constants to points, with the codes that the providers prepared."""
    codes = prepared.codes
    texts = _texts(home, codes, clauses)
    equals = [
        _equal(home, codes, clause, here) for clause, here in zip(clauses, texts, strict=True)
    ]
    marks = [
        None if e is None else keycode.fingerprint(codes, e.units, e.texts) for e in equals
    ]  # fmt: skip
    if not shape.interval:
        points = [None if e is None else keycode.point(codes, e.units, e.texts) for e in equals]
        return _once(points, marks)
    spans: list[tuple[tuple[int, int], int | None]] = []
    for clause, equal, mark in zip(clauses, equals, marks, strict=True):
        span = None if equal is None else _span(home, codes, equal, clause)
        if span is not None:
            spans.append((span, mark))
    return _merged(spans, len(clauses))


def _once(points: Sequence[int | None], marks: Sequence[int | None]) -> Keys:
    """Each key once: a repeated key would be counted twice."""
    seen: set[tuple[int, int | None]] = set()
    unique: list[int | None] = []
    for point, mark in zip(points, marks, strict=True):
        fresh = point is not None and (point, mark) not in seen
        unique.append(point if fresh else None)
        if point is not None:
            seen.add((point, mark))
    return Keys(tuple(unique), (), tuple(marks))


def _merged(bounded: list[tuple[tuple[int, int], int | None]], count: int) -> Keys:
    """Merge overlapping spans; dummies replace those merged away.

    Only spans with the same fingerprint: keys of different fingerprints may collide in their code,
    and their records are distinguished after they arrive.
    """
    merged: list[tuple[tuple[int, int], int | None]] = []
    for (low, high), mark in sorted(bounded, key=lambda entry: (entry[1] or 0, entry[0])):
        (first, last), of = merged[-1] if merged else ((0, -1), None)
        if merged and mark == of and low <= last:
            merged[-1] = ((first, max(last, high)), of)
        else:
            merged.append(((low, high), mark))
    spare = count - len(merged)
    spans = tuple(span for span, _ in merged) + (None,) * spare
    return Keys((), spans, tuple(mark for _, mark in merged) + (None,) * spare)


def _texts(home: LocalEngine, codes: KeyCodes, clauses: Sequence[Constants]) -> list[list[str]]:
    """The hashed texts of the constants of each clause; meaningless for NULL."""
    if not codes.hashed:
        return [[] for _ in clauses]
    wanted = []
    for clause in clauses:
        for code, constant in zip(codes.equal, clause.equals, strict=True):
            value = f"CAST(({constant.secret.sql}) AS {code.type})"
            if code.type != "VARCHAR":
                wanted.append((keycode.text_sql(value, code.type), constant.secret))
    texts = iter(_values(home, wanted))
    return [
        [
            str((_typed(home, c, code.type) if code.type == "VARCHAR" else next(texts))[0].as_py())
            for code, c in zip(codes.equal, clause.equals, strict=True)
        ]
        for clause in clauses
    ]


def _equal(
    home: LocalEngine, codes: KeyCodes, clause: Constants, texts: list[str]
) -> _Equal | None:  # fmt: skip
    """The constants of a clause; None if one of them is NULL, which equals nothing."""
    equal = _Equal([], texts)
    if any(constant.is_null for constant in clause.equals):
        return None
    if codes.hashed:
        return equal
    for code, constant in zip(codes.equal, clause.equals, strict=True):
        position = _position(home, constant, code)
        if not position.exact:
            return None
        equal.units.append(position.unit)
    return equal


def _span(
    home: LocalEngine, codes: KeyCodes, equal: _Equal, clause: Constants
) -> tuple[int, int] | None:  # fmt: skip
    if codes.interval is None:
        raise errors.make("internal", detail="an interval without its code")
    ends: list[ordinals.Position | None] = []
    for constant in (clause.low, clause.high):
        if constant is not None and constant.is_null:
            return None
        ends.append(None if constant is None else _position(home, constant, codes.interval))
    return keycode.span(
        codes, equal.units, equal.texts, ends[0], ends[1],
        low_inclusive=clause.low_inclusive, high_inclusive=clause.high_inclusive,
    )  # fmt: skip


def _inclusive(end: End | None) -> bool:
    return end is None or end.inclusive


def _position(home: LocalEngine, constant: Constant, code: Code) -> ordinals.Position:
    """The position of a constant among the units of its code, as the providers compute it."""
    array = _typed(home, constant, code.type)
    try:
        if code.type == "VARCHAR":
            return ordinals.position(array[0].as_py(), code.type, code.length)
        return ordinals.Position(ordinals.units(array, code.type).low)
    except ValueError as error:
        raise errors.make("provider.constant", expression=f"a {code.type}") from error


def _typed(home: LocalEngine, constant: Constant, type_: str) -> pa.Array:
    """A constant as a value of the type that the providers hold."""
    if home.arrow_field(type_).type == constant.value.type:
        return constant.value
    sql = f"CAST(({constant.secret.sql}) AS {type_})"
    return _values(home, [(sql, constant.secret)])[0]


def _values(home: LocalEngine, wanted: Sequence[tuple[str, Secret]]) -> list[pa.Array]:
    """Evaluate expressions over parameters of secrets, in batches, as arrays of one element."""
    arrays: list[pa.Array] = []
    for first in range(0, len(wanted), _AT_ONCE):
        items: list[str] = []
        parameters: list[object] = []
        for sql, secret in wanted[first : first + _AT_ONCE]:
            items.append(f"{lexer.renumbered(sql, len(parameters))} AS c{len(items)}")
            parameters += secret.parameters
        values = home.statements.values(items, parameters)
        arrays += [column.combine_chunks() for column in values.columns]
    return arrays
