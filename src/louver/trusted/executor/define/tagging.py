"""Tags of keys that come and go with the schema: ADD PRIMARY KEY, unique indexes, ceilings, ENC.

A server adds no column that is unique to a table with rows, and drops none. So a table that gets
tags is copied on the server, beside them, under its name, numbers and keys: nothing of it but the
columns of the new keys is read or sealed, and all is one transaction. Tags that go are set to NULL.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import constraint_check, row_writer, storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import rebuilding
from louver.trusted.executor.schema import constraints, representations, tables
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.scheme import tagging
from louver.wire.messages import Statement

_NUMBER = "louver_row"
_FRESH = "louver_fresh"


def settle(context: Context, catalog: Catalog, table: Table) -> None:
    """Give a table of the working catalog the tags of the keys that it has now, and take those of
    keys that it has no more. Behind every change of the table's columns, within a transaction.
    """
    declared = constraints.read(context.local.schema, table.schema, table.name)
    for column in table.columns:
        column.unique = declared.get(fold(column.name), constraints.Known()).unique
    if not context.backend.unique:
        return
    wanted = _wanted(context, catalog, table)
    gone = {stored: ids for stored, ids in table.tags.items() if ids not in wanted}
    rebuilding.let_go_of_tags(context, table, list(gone))
    fresh = [ids for ids in wanted if ids not in table.tags.values()]
    row = tagging()
    if fresh and row is not None:
        letter = row.representations[0].letter
        _add(context, table, {representations.pseudonym(letter): ids for ids in fresh})


def keys_of(context: Context, table: Table) -> list[list[str]]:
    """The columns of every PRIMARY KEY, UNIQUE constraint and unique index, by name; without
    indexes over other expressions.
    """
    by_name = {quoted(column.name): column.name for column in table.columns}
    keys = [key.expressions for key in constraint_check.rules(context, table).keys]
    return [[by_name[text] for text in key] for key in keys if set(key) <= set(by_name)]


def _wanted(context: Context, catalog: Catalog, table: Table) -> list[list[int]]:
    """The keys that may have tags, as the ids of their columns, each once."""
    changing = catalog.settings.get(rebuilding.CHANGING, {})
    if any(str(column.id) in changing for column in table.columns):
        # The tags of plain keys would tell those of the keys to come.
        return []
    other = replace(table, tags={})
    representations.tag(other, keys_of(context, table), context.backend)
    wanted: list[list[int]] = []
    for ids in other.tags.values():
        wanted += [ids] if ids not in wanted else []
    return wanted


def _add(context: Context, table: Table, tags: dict[str, list[int]]) -> None:
    """The table beside the tags of further keys."""
    tables.let_go_of_kept(table)
    only = replace(table, tags=tags)
    staging = replace(
        table, name=representations.pseudonym("t"), tags=table.tags | tags, columns=table.columns
    )
    context.ledger.record(row_writer.at_rest(only, context.backend), f"ALTER TABLE {table.label}")
    new_rows = _tags(context, only) if table.row_count or not table.counted else None
    context.storage.create(staging)
    if new_rows is not None:
        helpers = (table.helper_one, table.helper_random, table.helper_unit)
        names = [*(name for name in helpers if name), *table.packs, *table.tags]
        names += [stored for column in table.columns for stored in column.stored.values()]
        sql = context.backend.copy_beside(table, staging, names, list(tags), _FRESH, _NUMBER)
        done = context.engine.run(Statement(sql, kind="write", tables={_FRESH: new_rows}))
        if done != new_rows.num_rows:
            raise errors.make(
                "row.missing", table=table.label, expected=new_rows.num_rows, found=done
            )
    # Its tiles are those of the table beside it.
    context.storage.drop(replace(table, tile_table=""))
    context.storage.rename(staging, table)
    table.tags = staging.tags


def _tags(context: Context, table: Table) -> pa.Table:
    """The tags of all rows, with the numbers of these."""
    ids = {id_ for key in table.tags.values() for id_ in key}
    names = [column.name for column in table.columns if column.id in ids]
    parts = []
    for rows in context.storage.batches(table, names):
        row_ids = rows.column(storage.ROW_ID).combine_chunks()
        sealed = schemes.seal_table(context.columns, table, rows, row_ids)
        parts.append(pa.table({_NUMBER: rows.column(storage.ROW_ID), **sealed}))
    return pa.concat_tables(parts)
