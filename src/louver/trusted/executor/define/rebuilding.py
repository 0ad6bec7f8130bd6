"""A column's representations made anew from its sealed values: when its ceiling changes.

All of them are sealed under another generation of the column's keys: the server may still know
the keys of layers that it once opened, and must not open new codes by them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor import row_writer, server_rows
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import constraints, representations, tables
from louver.trusted.vault import scheme, schemes
from louver.trusted.vault.arrays import unwrapped
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.protection import Protection
from louver.wire.messages import Statement

BATCH_ROWS = 131_072
"""Rows read, sealed and written at a time."""
CHANGING = "encrypting"
"""The entry of the catalog's settings for columns whose encryption is being changed, by id."""
_FRESH = "louver_fresh"
_GENERATIONS = 1 << 32


def fit(
    context: Context, table: Table, column: Column, protection: Protection
) -> tuple[list[str], list[str]]:
    """Give a column what it is to have, and drop what it is not, within a transaction.

    ``table`` is the working catalog's. Returns the representations that came, and the server's
    columns that went.
    """
    declared = constraints.read(context.local.schema, table.schema, table.name)
    known = declared.get(fold(column.name), constraints.Known())
    fresh, gone = representations.fit(column, protection, known, context.backend)
    # DuckDB commits no change of a table's columns behind a change of its rows.
    context.storage.drop_columns(table, gone + tables.settle_helpers(table))
    if fresh:
        context.ledger.record(
            row_writer.at_rest(table, context.backend), f"ALTER TABLE {table.label}"
        )
        for name, type_ in representations.columns_of(
            column, context.backend, context.local, fresh
        ):
            sql = context.backend.add_column(table, name, type_)
            context.engine.run(Statement(sql, kind="ddl"))
        if table.row_count or not table.counted:
            _seal_again(context, table, column)
    return fresh, gone


def let_go_of_tags(context: Context, table: Table, only: Sequence[str] | None = None) -> None:
    """Keys (``only`` those with these columns of tags) are decided locally from now on: DuckDB
    drops no column that is UNIQUE, so the server forgets what it holds. Behind every change of the
    table's columns, within a transaction.
    """
    gone = list(table.tags) if only is None else only
    if gone:
        sql = context.backend.clear(table, gone)
        context.engine.run(Statement(sql, kind="write"))
        table.tags = {name: ids for name, ids in table.tags.items() if name not in gone}


def detailed(
    context: Context, table: Table, column: Column, changed: Protection | None = None
) -> Protection:
    """How a column is kept that stays what it is, or is ``changed`` in scheme and ceiling, with
    what the policy adds.
    """
    protection = changed or Protection(True, column.scheme, column.ceiling)
    own = scheme.details(column, [table])
    return context.policy.detailed(protection, table.label, column.name, own=own)


def _seal_again(context: Context, table: Table, column: Column) -> None:
    before, fresh = column.generation, next_generation(column)
    done = 0
    for first, last in _ranges(context, table):
        column.generation = before
        row_ids, values = _read(context, table, column, first, last)
        column.generation = fresh
        # A database of an earlier release did not note which columns of text hold a NULL.
        server_rows.widen(column, pa.chunked_array([values]))
        statement = schemes.seal(context.columns, table, column, values, row_ids)
        done += write(context, table, pa.table({"louver_row": row_ids, **statement}))
    if table.counted and done != table.row_count:
        raise errors.make("row.missing", table=table.label, expected=table.row_count, found=done)


def next_generation(column: Column) -> int:
    """Another generation, at random: the rows keep their ids, and another history of the database
    may seal the same rows anew, for another ceiling.
    """
    drawn = secrets.randbelow(_GENERATIONS - 1)
    return drawn if drawn < column.generation else drawn + 1


def _ranges(context: Context, table: Table) -> Iterator[tuple[int, int]]:
    """First and last row number of every batch."""
    reply = context.engine.query(Statement(context.backend.row_ids(table)))
    numbers = reply.column(0)
    for start in range(0, len(numbers), BATCH_ROWS):
        end = min(start + BATCH_ROWS, len(numbers)) - 1
        yield numbers[start].as_py(), numbers[end].as_py()


def _read(
    context: Context, table: Table, column: Column, first: int, last: int
) -> tuple[pa.Array, pa.Array]:
    """Row numbers and opened values, in Arrow's storage types."""
    sql = context.backend.row_range(table, scheme.read_from(column))
    reply = context.engine.query(Statement(sql, (first, last)))
    row_ids, held = (pa.concat_arrays(reply.column(position).chunks) for position in (0, 1))
    field = context.local.arrow_field(column.type)
    values = context.columns.open_column(table, column, held, row_ids, field)
    return row_ids, unwrapped(values)


def write(context: Context, table: Table, new_rows: pa.Table) -> int:
    """Set stored columns of the rows with the numbers in ``louver_row``; how many there were."""
    names = [name for name in new_rows.column_names if name != "louver_row"]
    sql = context.backend.update_from(table, names, _FRESH, "louver_row")
    return context.engine.run(Statement(sql, kind="write", tables={_FRESH: new_rows}))
