"""What is said of ENC where tables are described: DESCRIBE, SHOW ALL TABLES, SHOW PROTECTION."""

from __future__ import annotations

import pyarrow as pa

from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import printed
from louver.trusted.vault.catalog import DATABASE, Column, Table
from louver.trusted.vault.scheme import scheme_of

_EXTRA = "extra"
_TYPES = "column_types"
_COLUMNS = (
    "table_name", "column_name", "column_type", "scheme", "may_reveal", "open", "revealed",
    "clause",
)  # fmt: skip


def with_clauses(context: Context, table: Table, answer: Answer) -> Answer:
    """DuckDB's DESCRIBE of a table, whose column ``extra`` has the clause of ENC and what is open.
    DuckDB fills it for no table.
    """
    if answer.rows is None or _EXTRA not in answer.rows.column_names:
        return answer
    names = answer.rows.column("column_name").to_pylist()
    columns = [table.column(name) for name in names]
    texts = [None if c is None else _said(context, c) or None for c in columns]
    position = answer.rows.column_names.index(_EXTRA)
    rows = answer.rows.set_column(position, _EXTRA, pa.array(texts, pa.string()))
    return Answer(rows, answer.columns, home_sql=answer.home_sql)


def with_types(context: Context, answer: Answer) -> Answer:
    """DuckDB's SHOW ALL TABLES, whose types are followed by the clause of ENC and what is open."""
    rows = answer.rows
    if rows is None or not {"schema", "name", "column_names", _TYPES} <= set(rows.column_names):
        return answer
    texts = []
    for row in rows.to_pylist():
        own = row.get("database") == DATABASE
        table = context.catalog.table(row["schema"], row["name"]) if own else None
        known = [table.column(name) if table is not None else None for name in row["column_names"]]
        texts.append(
            [
                f"{type_} {_said(context, column)}" if column is not None and column.encrypted
                else type_
                for type_, column in zip(row[_TYPES], known, strict=True)
            ]
        )  # fmt: skip
    position = rows.column_names.index(_TYPES)
    rows = rows.set_column(position, _TYPES, pa.array(texts, rows.schema.field(_TYPES).type))
    return Answer(rows, answer.columns, home_sql=answer.home_sql)


def _said(context: Context, column: Column) -> str:
    clause = printed.clause(column, context.catalog, context.backend)
    layers = open_layers(column)
    return f"{clause}; open: {layers}" if layers else clause


def open_layers(column: Column) -> str:
    """What the layers that were opened show, as ``equality, order``; "" for nothing."""
    names = []
    for onion, state in column.layers.items():
        row = scheme_of(onion)
        if row.rank(state):
            names.append(row.layer(state).called)
    return ", ".join(dict.fromkeys(names))


def protection(context: Context, table: Table | None) -> Answer:
    """How the columns of one table or of all are protected, and what was revealed of them."""
    rows = [
        (
            entry.label,
            column.name,
            column.type,
            column.scheme or None,
            column.ceiling,
            open_layers(column) or None,
            (context.ledger.level(entry.label, column.name) or None)
            if column.encrypted
            else "plaintext",
            printed.clause(column, context.catalog, context.backend) or None,
        )
        for entry in context.catalog.tables.values()
        if table is None or entry.id == table.id
        for column in entry.columns
    ]
    columns = {
        name: pa.array([row[position] for row in rows], pa.string())
        for position, name in enumerate(_COLUMNS)
    }
    return Answer(pa.table(columns), [(name, "VARCHAR") for name in _COLUMNS])
