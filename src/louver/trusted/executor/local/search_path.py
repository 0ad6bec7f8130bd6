"""The search path: which schemas names without one mean, in every local DuckDB alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from louver import errors
from louver.names import fold, quoted
from louver.trusted.planner.sql import lexer

_SCHEMAS = "SELECT DISTINCT schema_name FROM duckdb_schemas() WHERE database_name = 'memory'"
_NOW = "SELECT current_setting('search_path'), current_schemas(false)"


@dataclass(slots=True)
class SearchPath:
    """The path that a session has set, as DuckDB prints it, and its schemas in order."""

    text: str = ""
    schemas: list[str] = field(default_factory=list)

    def change(
        self,
        schema: duckdb.DuckDBPyConnection,
        workspace: duckdb.DuckDBPyConnection,
        sql: str,
        files: set[str],
    ) -> None:
        """Run USE, or SET and RESET of the path, which DuckDB judges. Without a statement, take
        over what the path has become: DROP SCHEMA may reset it. ``files`` are the folded names of
        attached files, which have no part in it.
        """
        if sql:
            schema.execute(sql)
        row = schema.execute(_NOW).fetchone()
        text, schemas = row or ("", [])
        foreign = {"information_schema", "pg_catalog"} & set(schemas)
        foreign |= {fold(token.text) for token in lexer.tokens(text)} & files
        if foreign:
            _apply(schema, self.text, self.schemas)
            raise errors.make("sql.unsupported", statement=f"{min(foreign)} in the search path")
        # A list of its own: objects remember the one that they were made under.
        self.text, self.schemas = text, list(schemas) if text else []
        _apply(workspace, self.text, self.schemas)

    def restore(self, *connections: duckdb.DuckDBPyConnection) -> None:
        """Set it in instances that do not know it."""
        for connection in connections if self.text else ():
            _apply(connection, self.text, self.schemas)

    @contextmanager
    def instead(
        self, connection: duckdb.DuckDBPyConnection, schemas: Sequence[str]
    ) -> Iterator[None]:
        """Another path in one instance, for as long as something is defined there."""
        if list(schemas) == self.schemas:
            yield
            return
        _apply(connection, ",".join(map(quoted, schemas)), schemas)
        try:
            yield
        finally:
            _apply(connection, self.text, self.schemas)


def _apply(connection: duckdb.DuckDBPyConnection, text: str, schemas: Sequence[str]) -> None:
    """Set a path. It may name a schema that is gone, which DuckDB allows where it was there when
    the path was set.
    """
    # A name in the path may mean another's where the path does not begin with this database.
    connection.execute("RESET search_path")
    if not text:
        return
    known = {fold(name) for (name,) in connection.execute(_SCHEMAS).fetchall()}
    missing = [name for name in dict.fromkeys(schemas) if fold(name) not in known]
    for name in missing:
        connection.execute(f"CREATE SCHEMA {quoted(name)}")
    if missing:
        # With the database before it a schema stays in the path when it is dropped.
        text = ",".join(f"memory.{quoted(name)}" for name in schemas)
    connection.execute(f"SET search_path = '{text.replace(chr(39), chr(39) * 2)}'")
    for name in missing:
        connection.execute(f"DROP SCHEMA {quoted(name)}")
