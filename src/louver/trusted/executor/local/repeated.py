"""Queries over a few rows that come in from elsewhere, of which only the rows are new.

What such a query reads is a stream, which is opened anew whenever it runs; of very few rows it is
their values. So nothing is filled, registered or parsed again where only the rows are others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from louver.names import quoted
from louver.trusted.executor.local import arrow_values

MOST = 256
_ALL = 1 << 62
MOST_ROWS = 2_048
"""Rows that a query is remembered for; more take so much longer that parsing it is nothing."""
_MANY = "louver_incoming"
MOST_VALUES = 64
"""Values of the rows that stand in the query as values; DuckDB opens a stream sooner than more."""
#: Arrow types whose Python values DuckDB casts to the column's very same ones.
_SAME = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string,
    pa.types.is_binary, pa.types.is_decimal128,
)  # fmt: skip

Columns = Sequence[tuple[str, str]]


class _Incoming:
    """Where queries find the rows of the moment, under a name in a connection."""

    def __init__(self, number: int, schema: pa.Schema) -> None:
        self.reads = f"louver_incoming_{number}"
        self.schema = schema
        self.nothing = schema.empty_table()
        self.rows = self.nothing

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Called by DuckDB, by the name that Arrow gives it."""
        return self.rows.__arrow_c_stream__(requested_schema)


class Repeated:
    """The streams and the parsed queries of one connection; the oldest go first."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Nothing is known yet."""
        self._connection = connection
        self._incoming: dict[tuple[tuple[str, str], ...], _Incoming] = {}
        self._statements: dict[str, duckdb.Statement] = {}
        self._made = 0

    def run(
        self, name: str, columns: Columns, rows: pa.Table, sql: str,
        parameters: Sequence[object] | Mapping[str, object] = (),
    ) -> tuple[list[tuple[str, str]], pa.Table]:  # fmt: skip
        """A query over `rows`, which stand under a name: the columns of its answer, and the answer.

        Args:
            name: what the query calls the rows.
            columns: a name and a DuckDB type for each column of the rows.
            rows: their columns are of these types, or cast to them.
            sql: the query, without WITH; it reads nothing else.
            parameters: the values of its placeholders, which have numbers where they are a list.
        """
        if "?" not in sql and not isinstance(parameters, Mapping):
            few = _as_values(columns, rows, len(parameters))
            if few is not None:
                text = f"WITH {quoted(name)} AS ({few[0]}) {sql}"
                return self._answer(text, [*parameters, *few[1]])
        items = ", ".join(f"{quoted(c)}::{type_} AS {quoted(c)}" for c, type_ in columns)
        if rows.num_rows > MOST_ROWS:
            return self._once(
                f"WITH {quoted(name)} AS (SELECT {items} FROM {_MANY}) {sql}", rows, parameters
            )
        rows = arrow_values.readable(rows)
        incoming = self._ready(tuple(columns), rows.schema)
        # No filter goes through a LIMIT: Arrow would decide it, to which NaN is greater than
        # nothing and some types are unknown.
        fenced = f"SELECT {items} FROM {incoming.reads} LIMIT {_ALL}"
        incoming.rows = rows
        try:
            return self._answer(f"WITH {quoted(name)} AS ({fenced}) {sql}", parameters)
        finally:
            incoming.rows = incoming.nothing

    def _once(
        self, text: str, rows: pa.Table, parameters: Sequence[object] | Mapping[str, object]
    ) -> tuple[list[tuple[str, str]], pa.Table]:
        """A query over many rows, which all threads read as a stream that ends with it."""
        from louver import arrow_streams

        self._connection.register(_MANY, arrow_streams.once(arrow_values.readable(rows)))
        try:
            done = self._connection.execute(text, parameters or None)
            return arrow_values.described(done), done.to_arrow_table()
        finally:
            self._connection.unregister(_MANY)

    def _answer(
        self, text: str, parameters: Sequence[object] | Mapping[str, object]
    ) -> tuple[list[tuple[str, str]], pa.Table]:
        statement = self._statements.get(text) or self._connection.extract_statements(text)[0]
        done = self._connection.execute(statement, parameters or None)
        reply = arrow_values.described(done), done.to_arrow_table()
        if text not in self._statements:
            while len(self._statements) >= MOST:
                self._statements.pop(next(iter(self._statements)))
            self._statements[text] = statement
        return reply

    def forget(self) -> None:
        """A setting has changed that queries may depend on."""
        self._statements.clear()
        while self._incoming:
            self._drop(next(iter(self._incoming)))

    def _ready(self, columns: tuple[tuple[str, str], ...], schema: pa.Schema) -> _Incoming:
        cached = self._incoming.get(columns)
        if cached is not None and cached.schema.equals(schema):
            return cached
        if cached is not None:
            # DuckDB reads the rows as the schema says that it was told of at first.
            self._drop(columns)
        while len(self._incoming) >= MOST:
            self._drop(next(iter(self._incoming)))
        self._made += 1
        cached = self._incoming[columns] = _Incoming(self._made, schema)
        self._connection.register(cached.reads, cached)
        return cached

    def _drop(self, columns: tuple[tuple[str, str], ...]) -> None:
        reads = self._incoming.pop(columns).reads
        self._connection.unregister(reads)
        mark = f"{reads} LIMIT"
        self._statements = {s: known for s, known in self._statements.items() if mark not in s}


def _as_values(columns: Columns, rows: pa.Table, after: int) -> tuple[str, list[Any]] | None:
    """A query of very few rows, whose values are placeholders after so many others, and these
    values; None where a stream is the better way.
    """
    if not 0 < rows.num_rows * len(columns) <= MOST_VALUES:
        return None
    chosen = rows.select([name for name, _ in columns])
    if not all(any(is_one(field.type) for is_one in _SAME) for field in chosen.schema):
        return None
    width = len(columns)
    groups = (
        ", ".join(f"${after + row * width + i}::{type_}" for i, (_, type_) in enumerate(columns, 1))
        for row in range(rows.num_rows)
    )
    names = ", ".join(quoted(name) for name, _ in columns)
    by_column = [column.to_pylist() for column in chosen.columns]
    values = [value for row in zip(*by_column, strict=True) for value in row]
    listed = ", ".join(f"({group})" for group in groups)
    return f"SELECT * FROM (VALUES {listed}) AS louver_few({names})", values
