"""The values of variables, as every local DuckDB is to know them."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from louver.names import quoted
from louver.trusted.executor.local import arrow_values

_INCOMING = "louver_variable"
_UNTYPED = '"NULL"'


class Variables:
    """The values of variables, with their types, for every local DuckDB."""

    def __init__(self) -> None:
        """There are none yet."""
        self._values: dict[str, tuple[pa.Table, str]] = {}

    def put(
        self,
        connections: Iterable[duckdb.DuckDBPyConnection],
        name: str,
        rows: pa.Table,
        type_: str,
    ) -> None:
        """Set a variable to the value of one row of one column."""
        self._values[name] = rows, type_
        self.restore(connections, (name,))

    def restore(
        self, connections: Iterable[duckdb.DuckDBPyConnection], names: Iterable[str] = ()
    ) -> None:
        """Set variables, all of them if none is named, in instances that do not know them."""
        for connection in connections:
            for name in names or self._values:
                rows, type_ = self._values[name]
                arrow_values.register(connection, _INCOMING, rows.rename_columns(["c"]))
                # The type of a row without names cannot be written, and Arrow keeps it.
                own = connection.execute(f"SELECT typeof(c) FROM {_INCOMING}").fetchone()
                value = "c" if type_ == _UNTYPED or own == (type_,) else f"c::{type_}"
                query = f"(SELECT {value} FROM {_INCOMING})"
                connection.execute(f"SET VARIABLE {quoted(name)} = {query}")
                connection.unregister(_INCOMING)

    def drop(self, connections: Iterable[duckdb.DuckDBPyConnection], name: str) -> None:
        """Forget a variable, if there is one."""
        self._values.pop(name, None)
        for connection in connections:
            connection.execute(f"RESET VARIABLE {quoted(name)}")
