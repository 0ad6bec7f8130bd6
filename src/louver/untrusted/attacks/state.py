"""The state of a server, as seen by anyone with its file: tables, columns and bytes, no keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import quoted

Ask = Callable[[str], pa.Table]
_COLUMNS = (
    "SELECT c.schema_name, c.table_name, c.column_name, c.data_type, t.estimated_size"
    " FROM duckdb_columns() c JOIN duckdb_tables() t USING (table_oid)"
    " WHERE NOT c.internal AND c.database_name = current_database()"
    " ORDER BY c.schema_name, c.table_name, c.column_index"
)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One table of the server."""

    schema: str
    name: str
    columns: tuple[tuple[str, str], ...]
    row_count: int

    @property
    def quoted(self) -> str:
        """Its name in SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def label(self) -> str:
        """Its name for display."""
        return self.name if self.schema == "main" else f"{self.schema}.{self.name}"

    def named(self, prefix: str) -> list[str]:
        """The columns with this name prefix that contain bytes."""
        return [name for name, type_ in self.columns if name.startswith(prefix) and type_ == "BLOB"]


class State:
    """Reads a server's tables through a function that runs SQL."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask

    def tables(self) -> list[StoredTable]:
        """Every table; Louver's own bookkeeping tables last."""
        columns_by_table: dict[tuple[str, str], list[tuple[str, str]]] = {}
        sizes: dict[tuple[str, str], int] = {}
        for row in self.ask(_COLUMNS).to_pylist():
            name = (row["schema_name"], row["table_name"])
            columns_by_table.setdefault(name, []).append((row["column_name"], row["data_type"]))
            sizes[name] = int(row["estimated_size"] or 0)
        tables = [
            StoredTable(*name, tuple(columns), sizes[name])
            for name, columns in columns_by_table.items()
        ]
        return sorted(tables, key=lambda t: (t.name.startswith("louver_"), t.schema, t.name))

    def rows(self, table: StoredTable, count: int) -> list[dict[str, Any]]:
        """The first rows of a table, as stored."""
        records: list[dict[str, Any]] = self.ask(
            f"SELECT * FROM {table.quoted} LIMIT {count:d}"
        ).to_pylist()
        return records

    def numbers(self, table: StoredTable, names: list[str], count: int) -> dict[str, list[int]]:
        """Columns of ciphertexts as whole numbers, -1 for NULL, in the order of `row_ids`."""
        items = ", ".join(quoted(name) for name in names)
        rows = self.ask(f"SELECT {items} FROM {table.quoted} ORDER BY row_id LIMIT {count:d}")
        return {
            name: [-1 if v is None else int.from_bytes(v, "big") for v in values.to_pylist()]
            for name, values in zip(names, rows.columns, strict=True)
        }


@contextmanager
def file_state(path: str) -> Iterator[State]:
    """The state in a database file, opened read-only and without any of Louver's extensions."""
    if not Path(path).is_file():
        raise errors.make("database.io", place=path, detail="the file does not exist")
    try:
        connection = duckdb.connect(
            path, read_only=True, config={"enable_external_access": "false"}
        )
    except duckdb.Error as error:
        code = "database.locked" if "lock" in str(error) else "database.io"
        raise errors.make(code, place=path, detail=str(error).splitlines()[0]) from None

    def ask(sql: str) -> pa.Table:
        try:
            return connection.execute(sql).to_arrow_table()
        except duckdb.Error as error:
            raise errors.from_duckdb(error) from None

    try:
        yield State(ask)
    finally:
        connection.close()
