"""What a statement came to, and when two such outcomes are equal."""

from __future__ import annotations

import math
from typing import Any


def outcome(connection: Any, sql: str) -> object:
    """The rows, or the kind of error."""
    try:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []
    except Exception as error:  # noqa: BLE001 - every kind of error is an outcome
        return kind_of(error)


def kind_of(error: Exception) -> str:
    """DuckDB's own kind of error, of DuckDB's or of Louver's exception."""
    code = getattr(error, "code", None)
    if code is None:
        return "error " + type(error).__name__.removesuffix("Exception").lower()
    return "error " + str(code).removeprefix("duckdb.").replace("_", "")


def same(expected: object, found: object, ordered: bool) -> bool:
    """Whether two outcomes are equal: multisets unless the query orders its rows."""
    if isinstance(expected, str) or isinstance(found, str):
        return expected == found
    left, right = _rows(expected), _rows(found)
    return left == right if ordered else sorted(left) == sorted(right)


def _rows(rows: Any) -> list[str]:
    return [repr(tuple(_value(value) for value in row)) for row in rows]


def _value(value: object) -> object:
    """Sums of floats depend on the order of their terms in the last digits, in DuckDB too."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return value
