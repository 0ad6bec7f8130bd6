"""The tables of a database, by the server's own catalog."""

from __future__ import annotations

from louver.untrusted.engines.stored import Ask, StoredTable

_COLUMNS = (
    "SELECT n.nspname::text AS schema_name, c.relname::text AS table_name,"
    " a.attname::text AS column_name, format_type(a.atttypid, a.atttypmod) AS data_type,"
    " greatest(c.reltuples::bigint, pg_stat_get_live_tuples(c.oid), 0) AS estimated"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped"
    " AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'"
    " ORDER BY n.nspname, c.relname, a.attnum"
)


def tables(ask: Ask) -> list[StoredTable]:
    """Every table but the server's own."""
    columns_by_table: dict[tuple[str, str], list[tuple[str, str]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for row in ask(_COLUMNS).to_pylist():
        name = (row["schema_name"], row["table_name"])
        columns_by_table.setdefault(name, []).append((row["column_name"], row["data_type"]))
        sizes[name] = row["estimated"]
    return [
        StoredTable(*name, tuple(columns), sizes[name], home="public")
        for name, columns in columns_by_table.items()
    ]
