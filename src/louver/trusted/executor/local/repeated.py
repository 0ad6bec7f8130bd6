"""Queries over rows that come in from elsewhere, each prepared once for all rows to come.

What a prepared query reads is a stream, which is opened anew whenever it runs. So nothing is
registered, bound or planned again where only the rows are others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from louver.trusted.executor.local import arrow_values

MOST = 256

Columns = Sequence[tuple[str, str]]


class _Incoming:
    """Where a prepared query finds the rows of the moment."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.nothing = schema.empty_table()
        self.rows = self.nothing

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Called by DuckDB, by the name that Arrow gives it."""
        return self.rows.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
class _Query:
    """A query under its name in a connection, and what it reads."""

    number: int
    incoming: _Incoming

    @property
    def name(self) -> str:
        return f"louver_query_{self.number}"

    @property
    def reads(self) -> str:
        return f"louver_incoming_{self.number}"


class Repeated:
    """The prepared queries of one connection; the oldest go first."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Nothing is prepared yet."""
        self._connection = connection
        self._known: dict[tuple[Columns, str], _Query] = {}
        self._made = 0

    def run(self, name: str, columns: Columns, rows: pa.Table, sql: str) -> pa.Table:
        """A query over `rows`, which stand under a name.

        Args:
            name: what the query calls the rows.
            columns: a plain name and a DuckDB type for each column of the rows.
            rows: their columns are of these types, or cast to them.
            sql: the query; it reads nothing else.
        """
        key = (tuple(columns), sql)
        cached = self._known.get(key)
        # DuckDB reads the rows as the schema says that it was told of at first.
        if cached is None or not cached.incoming.schema.equals(rows.schema):
            cached = self._prepared(key, name, rows.schema)
        cached.incoming.rows = arrow_values.readable(rows)
        try:
            return self._connection.execute(f"EXECUTE {cached.name}").to_arrow_table()
        finally:
            cached.incoming.rows = cached.incoming.nothing

    def forget(self) -> None:
        """A setting has changed that queries may depend on."""
        while self._known:
            self._drop(next(iter(self._known)))

    def _prepared(self, key: tuple[Columns, str], name: str, schema: pa.Schema) -> _Query:
        if key in self._known:
            self._drop(key)
        while len(self._known) >= MOST:
            self._drop(next(iter(self._known)))
        self._made += 1
        cached = _Query(self._made, _Incoming(schema))
        items = ", ".join(f"{column}::{type_} AS {column}" for column, type_ in key[0])
        self._connection.register(cached.reads, cached.incoming)
        try:
            self._connection.execute(
                f"PREPARE {cached.name} AS "
                f"WITH {name} AS (SELECT {items} FROM {cached.reads}) {key[1]}"
            )
        except BaseException:
            self._connection.unregister(cached.reads)
            raise
        self._known[key] = cached
        return cached

    def _drop(self, key: tuple[Columns, str]) -> None:
        query = self._known.pop(key)
        self._connection.execute(f"DEALLOCATE {query.name}")
        self._connection.unregister(query.reads)
