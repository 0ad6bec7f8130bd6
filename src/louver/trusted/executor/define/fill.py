"""Statements that depend on the rows: they are tried locally, in the workspace, on opened rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import constraint_check, storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import postgres_forms
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.write.reads import names_of, tables_named
from louver.trusted.vault.catalog import Table

_NO_TYPE = "42704"


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
    rows of what it refers to from now on, and those of the keys that it writes anew.
    """
    from louver.trusted.executor.local.changed_rows import Filled

    beside = _around(context, table, postgres_forms.written_anew(tokens[head.read(tokens).end :]))
    if "REFERENCES" in {keyword(token.text) for token in tokens}:
        beside += tables_named(context.catalog, names_of(tokens))
    beside = list({other.id: other for other in beside if other.id != table.id}.values())
    filled = [
        Filled(t.schema, t.name, storage.whole(context.storage, t).drop_columns([storage.ROW_ID]))
        for t in beside
    ]
    return context.local.changed_by(table, rows, sql, filled)


def _around(context: Context, table: Table, columns: set[str]) -> list[Table]:
    """The tables that refer to columns of a table, and those that these refer to."""
    if not columns:
        return []
    known = constraint_check.rules(context, table)
    results = [
        constraint_check.parent_of(context, foreign)
        for foreign in known.foreign
        if not columns.isdisjoint(map(fold, foreign.columns))
    ]
    for position in known.children:
        child = context.catalog.table(*position)
        keys = [] if child is None else constraint_check.rules(context, child).foreign
        for foreign in keys:
            is_own = constraint_check.parent_of(context, foreign).id == table.id
            if child and is_own and not columns.isdisjoint(map(fold, foreign.parent_columns)):
                results.append(child)
    return results


def conformed(context: Context, table: Table, rows: pa.Table) -> pa.Table:
    """Rows in just the Arrow types of the table's columns."""
    types = [(column.name, column.type) for column in table.columns]
    wanted = [context.local.arrow_field(type_).type for _, type_ in types]
    if [field.type for field in rows.schema] == wanted:
        return rows
    items = [quoted(name) for name, _ in types]
    if spoken().prints_objects:
        # The answer of a query has rows of a composite type as they are printed.
        for position, (field, want) in enumerate(zip(rows.schema, wanted, strict=True)):
            if pa.types.is_string(field.type) and not pa.types.is_string(want):
                name, type_ = types[position]
                items[position] = f"CAST({items[position]} AS {spoken().own_type(type_)})"
                types[position] = name, "VARCHAR"
    sql = f"SELECT {', '.join(items)} FROM {quoted('louver_rows')}"
    try:
        return context.local.finish({("", "louver_rows"): (types, rows)}, sql)
    except errors.Error as error:
        if error.sqlstate != _NO_TYPE or not context.local.statements.names_row_type(error):
            raise
        # A row of a table is a type where that table is declared, which the workspace does not do.
        statement = "CREATE TABLE AS with whole rows of a table (list the columns)"
        raise errors.make("sql.unsupported", statement=statement) from None
