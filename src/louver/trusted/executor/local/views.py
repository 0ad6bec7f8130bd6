"""The columns of views in the local DuckDB."""

from __future__ import annotations

from contextlib import suppress

import duckdb

from louver.names import HERE

_EVERY = f"SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND {HERE}"


def bind(schema: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Binding views brings back their columns, which DuckDB forgets when it looks for names."""
    with suppress(duckdb.Error):
        schema.execute(f"DESCRIBE {sql}")
        return
    for position in schema.execute(_EVERY).fetchall():
        quoted = ('"' + part.replace('"', '""') + '"' for part in position)
        with suppress(duckdb.Error):
            schema.execute(f"DESCRIBE FROM {'.'.join(quoted)}")
