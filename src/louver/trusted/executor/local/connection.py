"""A connection to a DuckDB as the executor uses it: Arrow and Python values, Louver's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.trusted.executor.local import arrow_values, exact
from louver.trusted.executor.local.local import (
    MOST_ROWS,
    Described,
    ForeignKey,
    LocalConnection,
    Parameters,
    UniqueKey,
)
from louver.trusted.vault.catalog import Table


@contextmanager
def translated() -> Iterator[None]:
    """DuckDB's exceptions as Louver's."""
    try:
        yield
    except duckdb.Error as error:
        raise errors.from_duckdb(error) from None
    except RuntimeError as error:
        if "interrupted" not in str(error):
            raise
        # So DuckDB tells of Ctrl-C.
        raise KeyboardInterrupt from None


class DuckDBConnection(LocalConnection):
    """One of DuckDB's."""

    def __init__(self, raw: duckdb.DuckDBPyConnection) -> None:
        """Over an open one."""
        self._raw = raw

    def _done(self, sql: str, parameters: Parameters) -> duckdb.DuckDBPyConnection:
        return self._raw.execute(sql, parameters) if parameters else self._raw.execute(sql)

    def execute(self, sql: str, parameters: Parameters = ()) -> None:
        """See `LocalConnection`."""
        with translated():
            self._done(sql, parameters)

    def fetchall(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """See `LocalConnection`."""
        with translated():
            return self._done(sql, parameters).fetchall()

    def fetchone(self, sql: str, parameters: Parameters = ()) -> tuple[Any, ...] | None:
        """See `LocalConnection`."""
        with translated():
            row: tuple[Any, ...] | None = self._done(sql, parameters).fetchone()
            return row

    def fetch_arrow(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """See `LocalConnection`."""
        with translated():
            return self._done(sql, parameters).to_arrow_table()

    def fetch_described(self, sql: str, parameters: Parameters = ()) -> tuple[Described, pa.Table]:
        """See `LocalConnection`."""
        with translated():
            done = self._done(sql, parameters)
            return arrow_values.described(done), done.to_arrow_table()

    def stream(
        self, sql: str, parameters: Parameters = (), batch_rows: int = MOST_ROWS
    ) -> pa.RecordBatchReader:
        """See `LocalConnection`."""
        with translated():
            return self._done(sql, parameters).to_arrow_reader(batch_rows)

    def register(self, name: str, rows: object) -> None:
        """See `LocalConnection`."""
        with translated():
            arrow_values.register(self._raw, name, rows)

    def unregister(self, name: str) -> None:
        """See `LocalConnection`."""
        with translated():
            self._raw.unregister(name)

    def over(self, name: str, rows: pa.Table, sql: str) -> pa.Table:
        """See `RowQueries`."""
        self.register(name, rows)
        try:
            return self.fetch_arrow(sql)
        finally:
            self.unregister(name)

    def require_key(self, key: UniqueKey, fresh: str, spared: str) -> None:
        """See `LocalConnection`."""
        from louver.trusted.executor.local import duckdb_keys

        duckdb_keys.require_key(self, key, fresh, spared)

    def require_parent(self, foreign: ForeignKey, fresh: str, parent: str) -> None:
        """See `LocalConnection`."""
        from louver.trusted.executor.local import duckdb_keys

        duckdb_keys.require_parent(self, foreign, fresh, parent)

    def require_unreferenced(self, foreign: ForeignKey, keys: pa.Table, children: pa.Table) -> None:
        """See `LocalConnection`."""
        from louver.trusted.executor.local import duckdb_keys

        duckdb_keys.require_unreferenced(self, foreign, keys, children)

    def taken(self, table: str, rows: pa.Table) -> list[str]:  # noqa: ARG002
        """See `LocalConnection`: it casts what it is given."""
        return [quoted(name) for name in rows.column_names]

    def require_exact(self, source: str, table: Table, rows: pa.Table) -> None:
        """See `exact.require`."""
        with translated():
            exact.require(self._raw, source, table, rows)

    def close(self) -> None:
        """See `LocalConnection`."""
        self._raw.close()
