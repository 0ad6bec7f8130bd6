"""Temporary tables: rows in the workspace, an empty twin in the binder, gone with the session."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor.local.carried_tables import CarriedTables
from louver.trusted.executor.local.engine import TemporaryState
from louver.trusted.executor.local.postgres import declarations
from louver.trusted.executor.local.postgres.connection import PostgresConnection

_TABLES = (
    "SELECT relname::text, oid FROM pg_class WHERE relnamespace = pg_my_temp_schema()"
    " AND relkind = 'r' AND relname !~ '^louver_' ORDER BY oid"
)
_INDEXES = (
    "SELECT c.relname::text, pg_get_indexdef(i.indexrelid) FROM pg_index AS i"
    " JOIN pg_class AS c ON c.oid = i.indexrelid WHERE c.relnamespace = pg_my_temp_schema()"
    " AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid) ORDER BY c.oid"
)


class Instances(Protocol):
    """The two sessions."""

    binder: PostgresConnection
    workspace: PostgresConnection


class PostgresTemporary(CarriedTables):
    """The temporary tables of both."""

    failures = errors.Error

    def __init__(self, home: Instances) -> None:
        """There are none yet."""
        super().__init__()
        self.home = home

    def texts(self, words: set[str]) -> list[str]:
        """The definitions of those that a statement names."""
        if not self.mentioned(words):
            return []
        return [text for name, text in self._texts().items() if fold(name) in words]

    def _texts(self) -> dict[str, str]:
        workspace = self.home.workspace
        tables = workspace.fetchall(_TABLES)
        return {name: declarations.table(workspace, oid) for name, oid in tables}

    def state(self) -> TemporaryState:
        """All of them with their rows."""
        workspace = self.home.workspace
        tables = self._texts()
        indexes = dict(workspace.fetchall(_INDEXES))
        rows = {
            name: workspace.fetch_arrow(f"SELECT * FROM pg_temp.{quoted(name)}") for name in tables
        }
        return tables, indexes, rows

    def restore(self, state: TemporaryState) -> None:
        """Have these and no others."""
        tables, indexes, rows = state
        for connection in (self.home.binder, self.home.workspace):
            for name in self.names:
                connection.execute(f"DROP TABLE IF EXISTS pg_temp.{quoted(name)} CASCADE")
            for sql in tables.values():
                connection.execute(sql)
        for name, held in rows.items():
            fill(self.home.workspace, name, held)
        for connection in (self.home.binder, self.home.workspace):
            for sql in indexes.values():
                connection.execute(sql)
        self.names = frozenset(map(fold, tables))

    def mirror(self) -> None:
        """Have in the binder, empty, what the workspace has got."""
        tables, indexes, _ = self.state()
        for name in {*self.names, *tables}:
            self.home.binder.execute(f"DROP TABLE IF EXISTS pg_temp.{quoted(name)} CASCADE")
        for sql in (*tables.values(), *indexes.values()):
            self.home.binder.execute(sql)
        self.names = frozenset(map(fold, tables))

    def fill(self, words: Collection[str]) -> None:
        """Put the rows of those that a statement names into the binder too, within a transaction
        that is undone.
        """
        for name in self.names.intersection(words):
            rows = self.home.workspace.fetch_arrow(f"SELECT * FROM pg_temp.{quoted(name)}")
            fill(self.home.binder, name, rows)


def fill(connection: PostgresConnection, name: str, rows: pa.Table) -> None:
    """Put rows into a temporary table, except what it computes itself."""
    generated = {
        column
        for (column,) in connection.fetchall(
            "SELECT attname::text FROM pg_attribute WHERE attgenerated <> ''"
            " AND attrelid = format('pg_temp.%I', $1::text)::regclass",
            [name],
        )
    }
    names = [column for column in rows.column_names if column not in generated]
    connection.fill(f"pg_temp.{quoted(name)}", names, rows.select(names))
