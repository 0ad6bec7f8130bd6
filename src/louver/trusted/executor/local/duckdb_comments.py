"""The comments of a DuckDB database as the statements that write them."""

from __future__ import annotations

import duckdb

from louver.names import HERE, quoted
from louver.trusted.vault.catalog import TEMPORARY, HomeObject

_SOURCES = (
    ("TABLE", "duckdb_tables()", "table_name", "NULL"),
    ("VIEW", "duckdb_views()", "view_name", "NULL"),
    ("INDEX", "duckdb_indexes()", "index_name", "NULL"),
    ("SEQUENCE", "duckdb_sequences()", "sequence_name", "NULL"),
    ("TYPE", "duckdb_types()", "type_name", "NULL"),
    ("COLUMN", "duckdb_columns()", "table_name", "column_name"),
    ("MACRO", "duckdb_functions()", "function_name", "NULL"),
)
_MACRO_WORDS = {"macro": "MACRO", "table_macro": "MACRO TABLE"}


def of(connection: duckdb.DuckDBPyConnection, *, temporary: bool = False) -> list[HomeObject]:
    """The comments of a database as statements, or those of what is temporary."""
    objects: list[HomeObject] = []
    for word, source, name, column in _SOURCES:
        kind = "function_type" if word == "MACRO" else "NULL"
        rows = connection.execute(
            f"SELECT schema_name, {name}, {column}, comment, {kind} FROM {source}"
            f" WHERE comment IS NOT NULL AND {HERE}"
            f" AND (database_name = '{TEMPORARY}') = {temporary}"
            + ("" if word in ("INDEX", "SEQUENCE") else " AND NOT internal")
        ).fetchall()
        for schema, thing, part, text, function in rows:
            qualified_name = f"{quoted(schema)}.{quoted(thing)}"
            qualified_name += f".{quoted(part)}" if part else ""
            verb = _MACRO_WORDS.get(function, "MACRO") if word == "MACRO" else word
            said = text.replace("'", "''")
            objects.append(
                HomeObject(
                    "COMMENT", schema, thing, f"COMMENT ON {verb} {qualified_name} IS '{said}'"
                )
            )
    return objects
