"""Rows on their way to the server: numbered, bounded, noted in the ledger, sealed, appended."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from louver.trusted.executor.context import Context
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import Fact, fact
from louver.trusted.vault.scheme import scheme_of
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
    context.planner.forget()


def remove(context: Context, table: Table, row_ids: pa.Array) -> None:
    """Delete rows by number within a transaction."""
    if len(row_ids):
        context.storage.remove(table, row_ids)
        context.planner.forget()


def at_rest(table: Table) -> list[Fact]:
    """What the stored forms of a table's encrypted columns show before any query."""
    by_name: dict[tuple[str, str], list[Column]] = {}
    for column in table.columns:
        packed = ["hom"] if any(column.id in ids for ids in table.packs.values()) else []
        for representation in (*column.stored, *packed) if column.encrypted else ():
            scheme = scheme_of(representation)
            for leak in (scheme.at_rest, None if has_fixed_length(column.type) else scheme.lengths):
                if leak is not None:
                    # What is said of a table as a whole is one fact of all its columns.
                    alone = column.name if "{column}" in leak.text else ""
                    columns = by_name.setdefault((leak.name, alone), [])
                    if column not in columns:
                        columns.append(column)
    return [fact(name, table, columns) for (name, _), columns in by_name.items()]
