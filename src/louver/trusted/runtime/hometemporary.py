"""Temporary tables: rows in the hall, an empty twin in the schema, gone with the session."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from louver.names import fold

_TABLES = "SELECT table_name, sql FROM duckdb_tables() WHERE temporary ORDER BY table_oid"
_INDEXES = (
    "SELECT i.index_name, i.sql FROM duckdb_indexes() AS i JOIN duckdb_tables() AS t"
    " USING (table_oid, database_name) WHERE t.temporary"
)
State = tuple[dict[str, str], dict[str, str], dict[str, pa.Table]]
"""The texts of the tables and of their indexes, and the tables' rows."""


@dataclass(slots=True)
class Temporary:
    """Which temporary tables there are, by folded name, and how they were before a transaction."""

    names: frozenset[str] = frozenset()
    before: State | None = None
    #: what is carried from a DuckDB that is closed to the one that comes after it
    carried: State = field(default_factory=lambda: ({}, {}, {}))

    def mentioned(self, words: set[str]) -> bool:
        """Whether some folded words name a temporary table."""
        return not self.names.isdisjoint(words)

    def state(self, hall: duckdb.DuckDBPyConnection) -> State:
        """All of them with their rows."""
        tables = {name: sql for name, sql in hall.execute(_TABLES).fetchall() if _ours(name)}
        indexes = dict(hall.execute(_INDEXES).fetchall())
        rows = {
            name: hall.execute(f"SELECT * FROM {place(name)}").to_arrow_table() for name in tables
        }
        return tables, indexes, rows

    def restore(
        self, schema: duckdb.DuckDBPyConnection, hall: duckdb.DuckDBPyConnection, state: State
    ) -> None:
        """Have these and no others."""
        for connection in (schema, hall):
            for name in self.names:
                connection.execute(f"DROP TABLE IF EXISTS {place(name)}")
        tables, indexes, rows = state
        for connection in (schema, hall):
            for sql in tables.values():
                connection.execute(sql)
        for name, held in rows.items():
            fill(hall, name, held)
        for connection in (schema, hall):
            for sql in indexes.values():
                connection.execute(sql)
        self.names = frozenset(map(fold, tables))

    def mirror(self, schema: duckdb.DuckDBPyConnection, hall: duckdb.DuckDBPyConnection) -> None:
        """Have in the schema, empty, what the hall has got."""
        tables, indexes, _ = self.state(hall)
        for name in {*self.names, *tables}:
            schema.execute(f"DROP TABLE IF EXISTS {place(name)}")
        for sql in (*tables.values(), *indexes.values()):
            schema.execute(sql)
        self.names = frozenset(map(fold, tables))

    def undo(self, schema: duckdb.DuckDBPyConnection, hall: duckdb.DuckDBPyConnection) -> None:
        """Go back to how they were before the transaction."""
        if self.before is not None:
            before, self.before = self.before, None
            self.restore(schema, hall, before)

    def leave(self, hall: duckdb.DuckDBPyConnection) -> None:
        """Take all along from a DuckDB that will be closed; from one that is broken, nothing."""
        self.carried = {}, {}, {}
        with suppress(duckdb.Error):
            if self.names:
                self.carried = self.state(hall)
        self.names = frozenset()

    def arrive(self, schema: duckdb.DuckDBPyConnection, hall: duckdb.DuckDBPyConnection) -> None:
        """Put them into the DuckDBs that come after."""
        if self.carried[0]:
            self.restore(schema, hall, self.carried)

    def fill(
        self, schema: duckdb.DuckDBPyConnection, hall: duckdb.DuckDBPyConnection, words: set[str]
    ) -> None:
        """Put the rows of those that a statement names into the schema too, within a transaction
        that is undone.
        """
        for name in self.names & words:
            fill(schema, name, hall.execute(f"SELECT * FROM {place(name)}").to_arrow_table())


def place(name: str) -> str:
    """A temporary table's name, quoted."""
    return 'temp.main."' + name.replace('"', '""') + '"'


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Put rows into a temporary table."""
    connection.register("louver_temporary", rows)
    try:
        connection.execute(f"INSERT INTO {place(name)} SELECT * FROM louver_temporary")
    finally:
        connection.unregister("louver_temporary")


def _ours(name: str) -> bool:
    """Whether a table is the user's: Louver keeps some of its own for a moment."""
    return not fold(name).startswith("louver_")
