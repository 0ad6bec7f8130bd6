"""Statements that depend on the rows: they are tried locally, in the workspace, on opened rows."""

from __future__ import annotations

import pyarrow as pa

from louver.names import quoted
from louver.trusted.executor import storage
from louver.trusted.executor.context import Context
from louver.trusted.vault.catalog import Table


def read(context: Context, table: Table) -> pa.Table | None:
    """Every row of a table, opened; None when it has none."""
    if table.counted and not table.row_count:
        return None
    rows = storage.whole(context.storage, table)
    return rows.drop_columns([storage.ROW_ID]) if rows.num_rows else None


def tried(context: Context, table: Table, rows: pa.Table, sql: str) -> pa.Table:
    """Run a statement in the workspace on the table with its rows; what the table is afterwards.

    The engine's own error comes up where the rows do not allow it: duplicates, NULLs, failed casts.
    """
    return context.local.changed_by(table, rows, sql)


def conformed(context: Context, table: Table, rows: pa.Table) -> pa.Table:
    """Rows in just the Arrow types of the table's columns."""
    types = [(column.name, column.type) for column in table.columns]
    wanted = [context.local.arrow_field(type_).type for _, type_ in types]
    if [field.type for field in rows.schema] == wanted:
        return rows
    sql = f"SELECT * FROM {quoted('louver_rows')}"
    return context.local.finish({("", "louver_rows"): (types, rows)}, sql)
