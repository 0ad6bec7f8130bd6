"""Temporary tables: rows in the workspace, an empty twin in the binder, gone with the session."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

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


class Instances(Protocol):
    """The two local DuckDB instances."""

    binder: duckdb.DuckDBPyConnection
    workspace: duckdb.DuckDBPyConnection


@dataclass(slots=True)
class Temporary:
    """Which temporary tables there are, by folded name, and how they were before a transaction."""

    names: frozenset[str] = frozenset()
    before: State | None = None
    #: whether the transaction is being undone
    going_back: bool = False
    #: what is carried from a DuckDB that is closed to the one that comes after it
    carried: State = field(default_factory=lambda: ({}, {}, {}))

    def mentioned(self, words: set[str]) -> bool:
        """Whether some folded words name a temporary table."""
        return not self.names.isdisjoint(words)

    def texts(self, workspace: duckdb.DuckDBPyConnection, words: set[str]) -> list[str]:
        """The definitions of those that a statement names."""
        rows = workspace.execute(_TABLES).fetchall() if self.mentioned(words) else []
        return [str(sql) for name, sql in rows if fold(name) in words]

    def state(self, workspace: duckdb.DuckDBPyConnection) -> State:
        """All of them with their rows."""
        tables = {name: sql for name, sql in workspace.execute(_TABLES).fetchall() if _ours(name)}
        indexes = dict(workspace.execute(_INDEXES).fetchall())
        rows = {
            name: workspace.execute(f"SELECT * FROM {qualified(name)}").to_arrow_table()
            for name in tables
        }
        return tables, indexes, rows

    def restore(
        self,
        binder: duckdb.DuckDBPyConnection,
        workspace: duckdb.DuckDBPyConnection,
        state: State,
    ) -> None:
        """Have these and no others."""
        for connection in (binder, workspace):
            for name in self.names:
                connection.execute(f"DROP TABLE IF EXISTS {qualified(name)}")
        tables, indexes, rows = state
        for connection in (binder, workspace):
            for sql in tables.values():
                connection.execute(sql)
        for name, held in rows.items():
            fill(workspace, name, held)
        for connection in (binder, workspace):
            for sql in indexes.values():
                connection.execute(sql)
        self.names = frozenset(map(fold, tables))

    def mirror(
        self, binder: duckdb.DuckDBPyConnection, workspace: duckdb.DuckDBPyConnection
    ) -> None:
        """Have in the binder, empty, what the workspace has got."""
        tables, indexes, _ = self.state(workspace)
        for name in {*self.names, *tables}:
            binder.execute(f"DROP TABLE IF EXISTS {qualified(name)}")
        for sql in (*tables.values(), *indexes.values()):
            binder.execute(sql)
        self.names = frozenset(map(fold, tables))

    def keep(self, workspace: duckdb.DuckDBPyConnection) -> None:
        """Remember how they are before a transaction first changes one."""
        if self.before is None:
            self.before = self.state(workspace)

    @contextmanager
    def undoing(self, home: Instances) -> Iterator[None]:
        """Go back to how they were before the transaction, with a home that goes back too, perhaps
        by being made anew.
        """
        self.going_back = True
        try:
            yield
        finally:
            self.going_back = False
        if self.before is not None:
            before, self.before = self.before, None
            self.restore(home.binder, home.workspace, before)

    def leave(self, workspace: duckdb.DuckDBPyConnection) -> None:
        """Take all along from a DuckDB that will be closed; from one that is broken, nothing."""
        self.carried = {}, {}, {}
        if self.going_back and self.before is not None:
            self.carried = self.before
        else:
            with suppress(duckdb.Error):
                if self.names:
                    self.carried = self.state(workspace)
        self.names = frozenset()

    def arrive(
        self, binder: duckdb.DuckDBPyConnection, workspace: duckdb.DuckDBPyConnection
    ) -> None:
        """Put them into the DuckDBs that come after."""
        if self.carried[0]:
            self.restore(binder, workspace, self.carried)

    def fill(
        self,
        binder: duckdb.DuckDBPyConnection,
        workspace: duckdb.DuckDBPyConnection,
        words: Collection[str],
    ) -> None:
        """Put the rows of those that a statement names into the schema too, within a transaction
        that is undone.
        """
        for name in self.names.intersection(words):
            fill(
                binder, name, workspace.execute(f"SELECT * FROM {qualified(name)}").to_arrow_table()
            )


def qualified(name: str) -> str:
    """A temporary table's name, quoted."""
    return 'temp.main."' + name.replace('"', '""') + '"'


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Put rows into a temporary table."""
    connection.register("louver_temporary", rows)
    try:
        connection.execute(f"INSERT INTO {qualified(name)} SELECT * FROM louver_temporary")
    finally:
        connection.unregister("louver_temporary")


def _ours(name: str) -> bool:
    """Whether a table is the user's: Louver keeps some of its own for a moment."""
    return not fold(name).startswith("louver_")
