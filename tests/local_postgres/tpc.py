"""The tables of a benchmark of the TPC, in plaintext PostgreSQL and in Louver."""

from __future__ import annotations

import duckdb

from tests.local_postgres.twin import PostgresTwin
from tests.tpc import sources

_TYPES = {"VARCHAR": "text"}


def load(twin: PostgresTwin, generated: duckdb.DuckDBPyConnection) -> None:
    """Make all tables with every column ENC, and load what DuckDB's generator made."""
    for name, columns in sources.tables(generated).items():
        items = (f"{column} {_TYPES.get(type_, type_)} ENC" for column, type_ in columns)
        twin.run(f"CREATE TABLE {name} ({', '.join(items)})")
        rows = sources.rows_of(generated, name)
        twin.plain.fill(name, rows.column_names, rows)
        assert twin.louver.load(name, rows) == rows.num_rows
