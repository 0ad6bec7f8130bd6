"""Rows out and in, in one transaction: noted in the ledger, removed, numbered, sealed, appended."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from louver import errors
from louver.trusted.executor import constraint_check, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import sequences
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import Fact, condition_of, fact, with_condition
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import packed, scheme_of
from louver.trusted.vault.types import has_fixed_length


def append(context: Context, table: Table, rows: pa.Table) -> None:
    """Append rows of declared columns (Arrow without loss) within a transaction.

    ``table`` is the working catalog's; its bounds and row count follow.
    """
    append_stream(context, table, iter([rows]))


def append_stream(context: Context, table: Table, batches: Iterator[pa.Table]) -> None:
    """Append rows as they come, all or nothing; making them must not use the session's connection
    to the server.
    """
    context.ledger.record(at_rest(table), f"INSERT INTO {table.label}")
    context.storage.append(table, batches)


def remove(context: Context, table: Table, row_ids: pa.Array) -> None:
    """Delete rows by number within a transaction."""
    if len(row_ids):
        context.storage.remove(table, row_ids)


def at_rest(table: Table) -> list[Fact]:
    """What the stored forms of a table's encrypted columns show before any query."""
    by_name: dict[tuple[str, str], list[Column]] = {}
    for column in table.columns:
        names = dict.fromkeys((*column.stored, *(name for name, _ in packed(table, column))))
        for representation in names if column.encrypted else ():
            scheme = scheme_of(representation)
            for leak in (scheme.at_rest, None if has_fixed_length(column.type) else scheme.lengths):
                if leak is not None:
                    # What is said of a table as a whole is one fact of all its columns.
                    alone = column.name if "{column}" in leak.text else ""
                    columns = by_name.setdefault((leak.name, alone), [])
                    if column not in columns:
                        columns.append(column)
    return [fact(name, table, columns) for (name, _), columns in by_name.items()]


def send(context: Context, table: Table, fresh: pa.Table, gone: pa.Array | None = None) -> None:
    """Remove rows by number and append others, under numbers never used before."""
    stamp = context.storage.stamp(table)
    with transaction.writing(context) as catalog:
        held = catalog.table(table.schema, table.name)
        if held is None:
            raise errors.make("table.missing", table=table.label)
        if gone is not None:
            remove(context, held, gone)
        if fresh.num_rows:
            append(context, held, fresh)
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
