"""The tables in a DuckDB file, read without anything of Louver's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.untrusted.engines.failures import translate
from louver.untrusted.engines.stored import Ask, StoredRows, StoredTable

_COLUMNS = (
    "SELECT c.schema_name, c.table_name, c.column_name, c.data_type, t.estimated_size"
    " FROM duckdb_columns() c JOIN duckdb_tables() t USING (table_oid)"
    " WHERE NOT c.internal AND c.database_name = current_database()"
    " ORDER BY c.schema_name, c.table_name, c.column_index"
)


def tables(ask: Ask) -> list[StoredTable]:
    """Every table of the current database."""
    columns_by_table: dict[tuple[str, str], list[tuple[str, str]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for row in ask(_COLUMNS).to_pylist():
        name = (row["schema_name"], row["table_name"])
        columns_by_table.setdefault(name, []).append((row["column_name"], row["data_type"]))
        sizes[name] = int(row["estimated_size"] or 0)
    return [
        StoredTable(*name, tuple(columns), sizes[name])
        for name, columns in columns_by_table.items()
    ]


@contextmanager
def of_file(path: str) -> Iterator[StoredRows]:
    """The tables of a database file, opened read-only and without any of Louver's extensions."""
    if not Path(path).is_file():
        raise errors.make("database.io", place=path, detail="the file does not exist")
    try:
        connection = duckdb.connect(
            path, read_only=True, config={"enable_external_access": "false"}
        )
    except duckdb.Error as error:
        raise translate(error, path) from None

    def ask(sql: str) -> pa.Table:
        try:
            return connection.execute(sql).to_arrow_table()
        except duckdb.Error as error:
            raise errors.from_duckdb(error) from None

    try:
        yield StoredRows(ask, tables)
    finally:
        connection.close()
