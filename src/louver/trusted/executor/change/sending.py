"""A rehearsed change on its way to the server, all of it or nothing."""

from __future__ import annotations

import pyarrow as pa

from louver import errors
from louver.trusted.executor import constraint_check, row_writer, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import sequences
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import condition_of, fact, with_condition
from louver.trusted.vault.levels import allows


def send(context: Context, table: Table, fresh: pa.Table, gone: pa.Array | None = None) -> None:
    """Remove rows by number and append others, under numbers never used before."""
    stamp = context.storage.stamp(table)
    with transaction.writing(context) as catalog:
        held = catalog.table(table.schema, table.name)
        if held is None:
            raise errors.make("table.missing", table=table.label)
        if gone is not None:
            row_writer.remove(context, held, gone)
        if fresh.num_rows:
            row_writer.append(context, held, fresh)
        sequences.save(context.local, catalog)
    if gone is None:
        constraint_check.appended(context, stamp, table, fresh)


def hides_rows(table: Table) -> bool:
    """Whether some column may not even show which rows a statement touched."""
    return any(c.encrypted and not allows(c.ceiling, "access") for c in table.columns)


def note_touched(context: Context, table: Table, gone: pa.Array) -> None:
    """Write into the ledger that the server sees which rows a change replaces."""
    columns = [column for column in table.columns if column.encrypted]
    if columns:
        # Rows are replaced once, so each change is a condition of its own.
        condition = condition_of(gone.slice(0, 1).to_pylist(), [table], context.storage.stamp)
        touched = with_condition([fact("rows.write", table, columns)], condition)
        context.ledger.record(touched, f"a change of {table.label}")
