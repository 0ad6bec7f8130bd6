"""The private constants of a question, evaluated at home, as points or intervals of points.

Clauses that match nothing, or nothing that another one does not match already, become None: a
dummy goes in their place, so that their number stays the public one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from louver import errors
from louver.trusted.planner.private.question import Clause, End, Secret
from louver.trusted.runtime.home import Home, translated
from louver.wire import keycode, units
from louver.wire.questions import Code, KeyCodes, Prepared, Shape


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """Of each clause: its point or its span (both ends included), and what its records begin with.

    Without an interval `spans` are empty, with one `points` are.
    """

    points: tuple[int | None, ...]
    spans: tuple[tuple[int, int] | None, ...]
    fingerprints: tuple[int | None, ...]

    def __repr__(self) -> str:
        return f"Keys(of {len(self.fingerprints)} clauses)"


@dataclass(frozen=True, slots=True, repr=False)
class Constant:
    """The value of a secret at home: an array of one element."""

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
    """The constants that a clause is equal to, in both forms."""

    units: list[int]
    texts: list[str]


def evaluate(home: Home, shape: Shape, clauses: Sequence[Clause]) -> list[Constants]:
    """Evaluate every constant, before anything is sent: one that cannot be compared stops the
    question here, for what is sent must not depend on what is private.
    """

    def constant(secret: Secret, expression: str) -> Constant:
        try:
            return Constant(secret, _value(home, f"SELECT {secret.sql}", secret))
        except (errors.Error, RuntimeError):
            # Its text holds the value.
            raise errors.make("provider.constant", expression=expression) from None

    return [
        Constants(
            tuple(constant(s, e) for s, e in zip(clause.equals, shape.equal, strict=True)),
            None if clause.low is None else constant(clause.low.secret, shape.interval),
            None if clause.high is None else constant(clause.high.secret, shape.interval),
            _inclusive(clause.low),
            _inclusive(clause.high),
        )
        for clause in clauses
    ]


def bind(home: Home, prepared: Prepared, shape: Shape, clauses: Sequence[Constants]) -> Keys:
    """Constants to points, by the codes that the providers prepared."""
    codes = prepared.codes
    equals = [_equal(home, codes, clause) for clause in clauses]
    marks = [
        None if e is None else keycode.fingerprint(codes, e.units, e.texts) for e in equals
    ]  # fmt: skip
    if not shape.interval:
        points = [None if e is None else keycode.point(codes, e.units, e.texts) for e in equals]
        return _once(points, marks)
    found: list[tuple[tuple[int, int], int | None]] = []
    for clause, equal, mark in zip(clauses, equals, marks, strict=True):
        span = None if equal is None else _span(home, codes, equal, clause)
        if span is not None:
            found.append((span, mark))
    return _merged(found, len(clauses))


def _once(points: Sequence[int | None], marks: Sequence[int | None]) -> Keys:
    """Each key once: a key that is asked twice would count twice."""
    seen: set[tuple[int, int | None]] = set()
    kept: list[int | None] = []
    for point, mark in zip(points, marks, strict=True):
        fresh = point is not None and (point, mark) not in seen
        kept.append(point if fresh else None)
        if point is not None:
            seen.add((point, mark))
    return Keys(tuple(kept), (), tuple(marks))


def _merged(found: list[tuple[tuple[int, int], int | None]], count: int) -> Keys:
    """Spans that meet become one, and dummies make up for them.

    Only those of one fingerprint: keys of different ones may have the same code by chance, and
    the records of each are told apart when they are here.
    """
    merged: list[tuple[tuple[int, int], int | None]] = []
    for (low, high), mark in sorted(found, key=lambda one: (one[1] or 0, one[0])):
        (first, last), of = merged[-1] if merged else ((0, -1), None)
        if merged and mark == of and low <= last:
            merged[-1] = ((first, max(last, high)), of)
        else:
            merged.append(((low, high), mark))
    spare = count - len(merged)
    spans = tuple(span for span, _ in merged) + (None,) * spare
    return Keys((), spans, tuple(mark for _, mark in merged) + (None,) * spare)


def _equal(home: Home, codes: KeyCodes, clause: Constants) -> _Equal | None:
    """The constants of a clause; None where one of them is NULL, which equals nothing."""
    found = _Equal([], [])
    if any(constant.is_null for constant in clause.equals):
        return None
    for code, constant in zip(codes.equal, clause.equals, strict=True):
        if codes.hashed:
            found.texts.append(_text(home, constant, code))
        else:
            place = _place(home, constant, code)
            if not place.exact:
                return None
            found.units.append(place.unit)
    return found


def _span(
    home: Home, codes: KeyCodes, equal: _Equal, clause: Constants
) -> tuple[int, int] | None:  # fmt: skip
    if codes.interval is None:
        raise errors.make("internal", detail="an interval without its code")
    ends: list[units.Place | None] = []
    for constant in (clause.low, clause.high):
        if constant is not None and constant.is_null:
            return None
        ends.append(None if constant is None else _place(home, constant, codes.interval))
    return keycode.span(
        codes, equal.units, equal.texts, ends[0], ends[1],
        low_inclusive=clause.low_inclusive, high_inclusive=clause.high_inclusive,
    )  # fmt: skip


def _inclusive(end: End | None) -> bool:
    return end is None or end.inclusive


def _place(home: Home, constant: Constant, code: Code) -> units.Place:
    """Where a constant lies among the units of its code, as the providers would say."""
    array = _typed(home, constant, code.type)
    try:
        if code.type == "VARCHAR":
            return units.place(array[0].as_py(), code.type, code.length)
        return units.Place(units.units(array, code.type).low)
    except ValueError as error:
        raise errors.make("provider.constant", expression=f"a {code.type}") from error


def _text(home: Home, constant: Constant, code: Code) -> str:
    """What is hashed of a constant."""
    if code.type == "VARCHAR":
        return str(_typed(home, constant, code.type)[0].as_py())
    text = keycode.text_sql("v", code.type)
    sql = f"SELECT {text} FROM (SELECT CAST(({constant.secret.sql}) AS {code.type}) AS v)"
    return str(_value(home, sql, constant.secret)[0].as_py())


def _typed(home: Home, constant: Constant, type_: str) -> pa.Array:
    """A constant as a value of the type that the providers hold."""
    if home.arrow_field(type_).type == constant.value.type:
        return constant.value
    return _value(home, f"SELECT CAST(({constant.secret.sql}) AS {type_})", constant.secret)


def _value(home: Home, sql: str, secret: Secret) -> pa.Array:
    with translated():
        found = home.schema.execute(sql, list(secret.parameters)).to_arrow_table()
    return found.column(0).combine_chunks()
