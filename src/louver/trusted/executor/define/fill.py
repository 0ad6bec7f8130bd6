"""Statements that depend on the rows: they are tried locally, in the workspace, on opened rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot.tokens import Token

from louver.names import keyword, quoted
from louver.trusted.executor import storage
from louver.trusted.executor.context import Context
from louver.trusted.planner.write.reads import names_of, tables_named
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


def rehearsed(
    context: Context, table: Table, rows: pa.Table, sql: str, tokens: Sequence[Token]
) -> pa.Table:
    """The same before the statement runs on the binder, which has all rules of the table, over the
    rows of what it refers to from now on.
    """
    from louver.trusted.executor.local.changed_rows import Filled

    beside = []
    if "REFERENCES" in {keyword(token.text) for token in tokens}:
        beside = [t for t in tables_named(context.catalog, names_of(tokens)) if t.id != table.id]
    filled = [
        Filled(t.schema, t.name, storage.whole(context.storage, t).drop_columns([storage.ROW_ID]))
        for t in beside
    ]
    return context.local.changed_by(table, rows, sql, filled)


def conformed(context: Context, table: Table, rows: pa.Table) -> pa.Table:
    """Rows in just the Arrow types of the table's columns."""
    types = [(column.name, column.type) for column in table.columns]
    wanted = [context.local.arrow_field(type_).type for _, type_ in types]
    if [field.type for field in rows.schema] == wanted:
        return rows
    sql = f"SELECT * FROM {quoted('louver_rows')}"
    return context.local.finish({("", "louver_rows"): (types, rows)}, sql)
