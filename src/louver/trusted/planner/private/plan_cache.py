"""Plan cache: statements with equal text and equal value types share everything but the values.

A plan depends on types only, so no value of a placeholder reaches the planner's DuckDB.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from louver import errors
from louver.trusted.planner.private.question import Clause, End, Question, Secret

MOST_PLANS = 1024
NULL = '"NULL"'
"""DuckDB's name for the type of NULL by itself."""
_INTEGERS = (("INTEGER", 31), ("BIGINT", 63), ("HUGEINT", 127))
_TYPES: dict[type, str] = {
    type(None): NULL,
    bool: "BOOLEAN",
    float: "DOUBLE",
    str: "VARCHAR",
    bytes: "BLOB",
    bytearray: "BLOB",
    Decimal: "DECIMAL(38,10)",
    datetime.date: "DATE",
    datetime.timedelta: "INTERVAL",
    uuid.UUID: "UUID",
}
Key = tuple[object, ...]


class PlanCache:
    """Plans by text and types; the oldest are evicted first. The parameters of their secrets are
    positions among the statement's.
    """

    def __init__(self) -> None:
        self._plans: dict[Key, Question] = {}
        self._lock = threading.Lock()

    def question(
        self,
        key: Key,
        values: Sequence[object],
        make: Callable[[tuple[str, ...]], Question],
    ) -> Question:
        """The plan of a statement with its values; built from their types if it is not cached."""
        types = tuple(map(type_of, values))
        whole = (*key, types)
        with self._lock:
            question = self._plans.get(whole)
        if question is None:
            question = make(types)
            with self._lock:
                if len(self._plans) >= MOST_PLANS:
                    self._plans.pop(next(iter(self._plans)))
                self._plans[whole] = question
        return _with_values(question, values)


def type_of(value: object) -> str:
    """The DuckDB type that a value is bound as; for a decimal, except for its digits.

    Raises:
        parameter.kind: for types that are not compared with columns.
    """
    if type(value) is int:
        if 1 << 63 <= value < 1 << 64:
            return "UBIGINT"
        size = (~value if value < 0 else value).bit_length()
        return next((name for name, most in _INTEGERS if size <= most), "UHUGEINT")
    if isinstance(value, datetime.datetime):
        return "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
    if isinstance(value, datetime.time):
        return "TIME" if value.tzinfo is None else "TIME WITH TIME ZONE"
    for kind in type(value).__mro__:
        if kind in _TYPES:
            return _TYPES[kind]
    if hasattr(value, "item") and hasattr(value, "dtype") and not getattr(value, "shape", ()):
        # A numpy scalar is bound as the Python number that it holds.
        return type_of(value.item())
    raise errors.make(
        "parameter.kind", detail=f"a {type(value).__name__} is not compared with a column"
    )


def _with_values(question: Question, values: Sequence[object]) -> Question:
    """A plan whose secrets hold values instead of positions."""

    def secret(of: Secret) -> Secret:
        return Secret(of.sql, tuple(values[int(str(position))] for position in of.parameters))

    def end(of: End | None) -> End | None:
        return None if of is None else End(secret(of.secret), of.inclusive)

    clauses = tuple(
        Clause(tuple(secret(item) for item in clause.equals), end(clause.low), end(clause.high))
        for clause in question.clauses
    )
    return replace(question, clauses=clauses)
