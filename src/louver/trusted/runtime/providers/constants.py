"""The private constants of a question, evaluated at home, as points or intervals of points.

Clauses that match nothing, or nothing that another one does not match already, become None: a
dummy goes in their place, so that their number stays the public one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
class _Equal:
    """The constants that a clause is equal to, in both forms."""

    units: list[int]
    texts: list[str]


def require(home: Home, shape: Shape, clauses: Sequence[Clause]) -> None:
    """Evaluate every constant, so that one which cannot be compared stops the question before
    anything is sent: what is sent must not depend on what is private.
    """
    for clause in clauses:
        secrets = [*zip(clause.equals, shape.equal, strict=True)]
        secrets += [(end.secret, shape.interval) for end in (clause.low, clause.high) if end]
        for secret, expression in secrets:
            try:
                with translated():
                    home.schema.execute(f"SELECT {secret.sql}", list(secret.parameters)).fetchone()
            except errors.Error:
                # Its text holds the value.
                raise errors.make("provider.constant", expression=expression) from None


def bind(home: Home, prepared: Prepared, shape: Shape, clauses: Sequence[Clause]) -> Keys:
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
    """Spans that meet become one, and dummies make up for them."""
    merged: list[tuple[tuple[int, int], int | None]] = []
    for (low, high), mark in sorted(found, key=lambda one: one[0]):
        if merged and low <= merged[-1][0][1]:
            (first, last), of = merged[-1]
            merged[-1] = ((first, max(last, high)), of)
        else:
            merged.append(((low, high), mark))
    spare = count - len(merged)
    spans = tuple(span for span, _ in merged) + (None,) * spare
    return Keys((), spans, tuple(mark for _, mark in merged) + (None,) * spare)


def _equal(home: Home, codes: KeyCodes, clause: Clause) -> _Equal | None:
    """The constants of a clause; None where one of them is NULL, which equals nothing."""
    found = _Equal([], [])
    for code, secret in zip(codes.equal, clause.equals, strict=True):
        value, text = _evaluated(home, secret, code)
        if value is None:
            return None
        if codes.hashed:
            found.texts.append(text)
            continue
        place = _place(value, code)
        if not place.exact:
            return None
        found.units.append(place.unit)
    return found


def _span(
    home: Home, codes: KeyCodes, equal: _Equal, clause: Clause
) -> tuple[int, int] | None:  # fmt: skip
    if codes.interval is None:
        raise errors.make("internal", detail="an interval without its code")
    ends: list[units.Place | None] = []
    for end in (clause.low, clause.high):
        if end is None:
            ends.append(None)
            continue
        value, _ = _evaluated(home, end.secret, codes.interval)
        if value is None:
            return None
        ends.append(_place(value, codes.interval))
    return keycode.span(
        codes, equal.units, equal.texts, ends[0], ends[1],
        low_inclusive=_inclusive(clause.low), high_inclusive=_inclusive(clause.high),
    )  # fmt: skip


def _inclusive(end: End | None) -> bool:
    return end is None or end.inclusive


def _place(value: object, code: Code) -> units.Place:
    try:
        return units.place(value, code.type, code.length)
    except ValueError as error:
        # The text of the error could hold the value.
        raise errors.make("provider.constant", expression=f"a {code.type}") from error


def _evaluated(home: Home, secret: Secret, code: Code) -> tuple[object, str]:
    """The value of a constant expression as the type that it is compared with, and its text."""
    text = keycode.text_sql("v", code.type)
    sql = f"SELECT v, {text} FROM (SELECT CAST(({secret.sql}) AS {code.type}) AS v)"
    with translated():
        row = home.schema.execute(sql, list(secret.parameters)).fetchone()
    if row is None:
        raise errors.make("internal", detail="a constant without a value")
    return row[0], str(row[1])
