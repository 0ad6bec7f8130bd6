"""Statements that come again: parsed once, and few rows as values, which cost a third of what
registering an Arrow table does.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from louver.names import quoted
from louver.wire.messages import Constant

_MOST_STATEMENTS = 256
_numbers = itertools.count()
MOST_VALUES = 256
"""Values of the rows that are inserted as values; more are cheaper as an Arrow table."""
#: Arrow types whose Python values DuckDB stores as the very same ones.
_SAME = (
    pa.types.is_boolean, pa.types.is_int8, pa.types.is_int16, pa.types.is_int32,
    pa.types.is_int64, pa.types.is_uint8, pa.types.is_uint16, pa.types.is_uint32,
    pa.types.is_uint64, pa.types.is_float64, pa.types.is_binary, pa.types.is_string,
    pa.types.is_decimal128, pa.types.is_date32,
)  # fmt: skip
_PLACE = re.compile(r"\$(\d+)")


class Prepared:
    """The parsed statements of one connection by their texts; the oldest go first."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Nothing is parsed yet."""
        self._connection = connection
        self._known: dict[str, duckdb.Statement] = {}
        self._named: dict[str, duckdb.Statement] = {}
        self._last: dict[str, tuple[tuple[Constant, ...], str]] = {}

    def statement(self, sql: str) -> duckdb.Statement | str:
        """A text with placeholders as DuckDB parsed it; other texts as they are."""
        cached = self._known.get(sql)
        if cached is None:
            parsed = self._connection.extract_statements(sql)
            if len(parsed) != 1:
                return sql
            if len(self._known) >= _MOST_STATEMENTS:
                self._known.pop(next(iter(self._known)))
            cached = self._known[sql] = parsed[0]
        return cached

    def named(self, sql: str) -> duckdb.Statement:
        """A query without placeholders, planned once."""
        cached = self._named.get(sql)
        if cached is None:
            if len(self._named) >= _MOST_STATEMENTS:
                self._named.clear()
            name = f"louver_value_{next(_numbers)}"
            self._connection.execute(f"PREPARE {name} AS {sql}")
            cached = self._named[sql] = self._connection.extract_statements(f"EXECUTE {name}")[0]
        return cached

    def again(self, sql: str, constants: tuple[Constant, ...]) -> duckdb.Statement | None:
        """A statement with the whole numbers that it had the last time too, planned once with them:
        it then takes a third of the time. None of any other.
        """
        last, known = self._last.get(sql, ((), ""))
        if last != constants:
            if len(self._last) >= _MOST_STATEMENTS:
                self._last.clear()
            self._last[sql] = constants, ""
            return None
        if not known:
            if "'" in sql or '"' in sql or {*map(type, constants)} != {int}:
                return None
            known = _PLACE.sub(lambda match: str(constants[int(match[1]) - 1]), sql)
            self._last[sql] = constants, known
        return self.named(known)

    def clear(self) -> None:
        """Forget all."""
        self._last.clear()
        self._known.clear()
        self._named.clear()


def values_of(table: str, rows: pa.Table) -> tuple[str, list[Any]] | None:
    """INSERT … VALUES for a few rows, and the values; None where Arrow is the better way."""
    text = _insertion(table, tuple(rows.schema.names), tuple(rows.schema.types), rows.num_rows)
    if not text:
        return None
    try:
        by_column = [column.to_pylist() for column in rows.columns]
    except (ValueError, OverflowError):
        return None  # days beyond Python's years
    return text, [value for row in zip(*by_column, strict=True) for value in row]


@lru_cache(_MOST_STATEMENTS)
def _insertion(
    table: str, names: tuple[str, ...], types: tuple[pa.DataType, ...], count: int
) -> str:
    """The text for so many rows; "" where their values are too many, or others in Python."""
    width = len(names)
    if not 0 < count * width <= MOST_VALUES or not all(map(_is_same, types)):
        return ""
    groups = (
        ", ".join(f"${row * width + position}" for position in range(1, width + 1))
        for row in range(count)
    )
    listed = ", ".join(f"({group})" for group in groups)
    return f"INSERT INTO {table} ({', '.join(map(quoted, names))}) VALUES {listed}"


def _is_same(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.UuidType):
        return True
    return any(is_one(type_) for is_one in _SAME)
