"""Plans that are kept: two statements of one text whose values are of the same types share all
but the values.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from louver.trusted.planner.private.question import Clause, End, Question, Secret

MOST_PLANS = 1024
_WIDTHS = (31, 32, 63, 64, 127, 128)
_PLAIN = (str, bytes, float, bool, datetime.date, datetime.timedelta, uuid.UUID, type(None))

Key = tuple[object, ...]


class Kept:
    """Plans by text and types; the oldest go first. The parameters of their secrets are places
    among the statement's.
    """

    def __init__(self) -> None:
        self._plans: dict[Key, Question] = {}
        self._lock = threading.Lock()

    def question(
        self, key: Key, values: Sequence[object], make: Callable[[], Question]
    ) -> Question:
        """The plan of a statement with its values; made where it is not known."""
        types = _types(values)
        if types is None:
            return with_values(make(), values)
        whole = (*key, types)
        with self._lock:
            found = self._plans.get(whole)
        if found is None:
            found = make()
            with self._lock:
                if len(self._plans) >= MOST_PLANS:
                    self._plans.pop(next(iter(self._plans)))
                self._plans[whole] = found
        return with_values(found, values)


def with_values(question: Question, values: Sequence[object]) -> Question:
    """A plan whose secrets hold values in the place of places."""

    def secret(of: Secret) -> Secret:
        return Secret(of.sql, tuple(values[int(str(place))] for place in of.parameters))

    def end(of: End | None) -> End | None:
        return None if of is None else End(secret(of.secret), of.inclusive)

    clauses = tuple(
        Clause(tuple(secret(one) for one in clause.equals), end(clause.low), end(clause.high))
        for clause in question.clauses
    )
    return replace(question, clauses=clauses)


def _types(values: Sequence[object]) -> tuple[object, ...] | None:
    """What decides the DuckDB types of values; None where we cannot tell."""
    found: list[object] = []
    for value in values:
        if isinstance(value, bool | None):
            found.append(type(value))
        elif type(value) is int:
            size = (~value if value < 0 else value).bit_length()
            found.append((value < 0, next((w for w in _WIDTHS if size <= w), size)))
        elif type(value) is Decimal:
            _, digits, exponent = value.as_tuple()
            found.append((Decimal, len(digits), exponent))
        elif type(value) is datetime.datetime:
            found.append((datetime.datetime, value.tzinfo is None))
        elif type(value) is datetime.time:
            found.append((datetime.time, value.tzinfo is None))
        elif type(value) in _PLAIN:
            found.append(type(value))
        else:
            return None
    return tuple(found)
