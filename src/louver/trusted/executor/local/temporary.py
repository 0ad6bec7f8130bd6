"""Temporary tables: rows in the workspace, an empty twin in the binder, gone with the session."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import duckdb
import pyarrow as pa

from louver.names import fold
from louver.trusted.executor.local.carried_tables import CarriedTables
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.engine import TemporaryState

_TABLES = "SELECT table_name, sql FROM duckdb_tables() WHERE temporary ORDER BY table_oid"
_INDEXES = (
    "SELECT i.index_name, i.sql FROM duckdb_indexes() AS i JOIN duckdb_tables() AS t"
    " USING (table_oid, database_name) WHERE t.temporary"
)


class Instances(Protocol):
    """The two local DuckDB instances."""

    binder: duckdb.DuckDBPyConnection
    workspace: duckdb.DuckDBPyConnection


class DuckDBTemporary(CarriedTables):
    """The temporary tables of both."""

    failures = duckdb.Error

    def __init__(self, home: Instances) -> None:
        """There are none yet."""
        super().__init__()
        self.home = home

    def texts(self, words: set[str]) -> list[str]:
        """The definitions of those that a statement names."""
        rows = self.home.workspace.execute(_TABLES).fetchall() if self.mentioned(words) else []
        return [str(sql) for name, sql in rows if fold(name) in words]

    def state(self) -> TemporaryState:
        """All of them with their rows."""
        workspace = self.home.workspace
        tables = {name: sql for name, sql in workspace.execute(_TABLES).fetchall() if _ours(name)}
        indexes = dict(workspace.execute(_INDEXES).fetchall())
        rows = {
            name: workspace.execute(f"SELECT * FROM {qualified(name)}").to_arrow_table()
            for name in tables
        }
        return tables, indexes, rows

    def restore(self, state: TemporaryState) -> None:
        """Have these and no others."""
        binder, workspace = self.home.binder, self.home.workspace
        for connection in (binder, workspace):
            for name in self.names:
                connection.execute(f"DROP TABLE IF EXISTS {qualified(name)}")
        tables, indexes, rows = state
        for connection in (binder, workspace):
            for sql in tables.values():
                connection.execute(sql)
        for name, held in rows.items():
            _fill(workspace, name, held)
        for connection in (binder, workspace):
            for sql in indexes.values():
                connection.execute(sql)
        self.names = frozenset(map(fold, tables))

    def mirror(self) -> None:
        """Have in the binder, empty, what the workspace has got."""
        with translated():
            tables, indexes, _ = self.state()
            for name in {*self.names, *tables}:
                self.home.binder.execute(f"DROP TABLE IF EXISTS {qualified(name)}")
            for sql in (*tables.values(), *indexes.values()):
                self.home.binder.execute(sql)
        self.names = frozenset(map(fold, tables))

    def fill(self, words: Collection[str]) -> None:
        """Put the rows of those that a statement names into the binder too, within a transaction
        that is undone.
        """
        for name in self.names.intersection(words):
            with translated():
                rows = self.home.workspace.execute(f"SELECT * FROM {qualified(name)}")
                _fill(self.home.binder, name, rows.to_arrow_table())


def qualified(name: str) -> str:
    """A temporary table's name, quoted."""
    return 'temp.main."' + name.replace('"', '""') + '"'


def _fill(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Put rows into a temporary table."""
    connection.register("louver_temporary", rows)
    try:
        connection.execute(f"INSERT INTO {qualified(name)} SELECT * FROM louver_temporary")
    finally:
        connection.unregister("louver_temporary")


def _ours(name: str) -> bool:
    """Whether a table is the user's: Louver keeps some of its own for a moment."""
    return not fold(name).startswith("louver_")
