"""Rows out and in, in one transaction: noted in the ledger, removed, numbered, sealed, appended."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from louver import errors
from louver.trusted.backends.backend import Backend
from louver.trusted.executor import constraint_check, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.raw_rows import OneRow, RawRow
from louver.trusted.executor.schema.representations import tag_of
from louver.trusted.executor.table_basis import basis
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import Fact, fact, with_condition
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import packed, scheme_of, tagged
from louver.trusted.vault.types import can_share, has_fixed_length


def append(context: Context, table: Table, rows: pa.Table | RawRow) -> None:
    """Append rows of declared columns (Arrow without loss, or one of raw values) within a
    transaction; they may go with its next statement (`Engine.append`).

    ``table`` is the working catalog's; its bounds and row count follow.
    """
    _record_at_rest(context, table)
    if isinstance(rows, RawRow):
        if context.storage.append_row(table, rows):
            return
        rows = rows.rows()
    context.storage.append(table, iter([rows]))


def append_stream(context: Context, table: Table, batches: Iterator[pa.Table]) -> None:
    """Append rows as they come, all or nothing; making them must not use the session's connection
    to the server.
    """
    _record_at_rest(context, table)
    context.storage.append(table, batches)
    context.engine.catch_up()


def remove(context: Context, table: Table, row_ids: pa.Array) -> None:
    """Delete rows by number within a transaction."""
    if len(row_ids):
        _note_removed(context, table, row_ids.to_pylist)
        context.storage.remove(table, row_ids)


@dataclass(slots=True)
class Removed:
    """Numbers of rows that the open transaction has removed or replaced, by the table's id, while
    a cursor asks for them: some may be back since a savepoint.
    """

    is_asked: bool = False
    by_table: dict[int, set[int]] = field(default_factory=dict)


def _note_removed(context: Context, table: Table, numbers: Callable[[], list[int]]) -> None:
    own = context.state.cache(Removed)
    if own.is_asked:
        own.by_table.setdefault(table.id, set()).update(numbers())


class _AtRest(dict[int, object]):
    """Tables, by id, whose stored forms are in the ledger, with what they rest on."""


def _record_at_rest(context: Context, table: Table) -> None:
    """What stored forms show is in the ledger for ever, once it is."""
    recorded, rests_on = context.state.cache(_AtRest), basis(table)
    if recorded.get(table.id) != rests_on:
        context.ledger.record(at_rest(table, context.backend), f"INSERT INTO {table.label}")
        recorded[table.id] = rests_on


def at_rest(table: Table, backend: Backend) -> list[Fact]:
    """What the stored forms of a table's encrypted columns show before any query."""
    by_name: dict[tuple[str, str], list[Column]] = {}
    for column in table.columns:
        packs = (name for name, _ in packed(table, column))
        names = dict.fromkeys((*column.stored, *packs, *tagged(table, column)))
        for representation in names if column.encrypted else ():
            scheme = scheme_of(representation)
            # Its columns are known once it is made.
            tiled = not table.tile_table or column.stored.get(representation) in table.tile_columns
            tiled = tiled and backend.has_tiles and can_share(column.type)
            lengths = None if has_fixed_length(column.type) else scheme.lengths
            for leak in (scheme.at_rest, lengths, scheme.widths if tiled else None):
                if leak is not None:
                    # What is said of a table as a whole is one fact of all its columns.
                    alone = column.name if "{column}" in leak.text else ""
                    columns = by_name.setdefault((leak.name, alone), [])
                    if column not in columns:
                        columns.append(column)
    return [fact(name, table, columns) for (name, _), columns in by_name.items()]


def send(
    context: Context,
    table: Table,
    fresh: pa.Table | RawRow,
    gone: pa.Array | None = None,
    require: Callable[[], None] = lambda: None,
) -> None:
    """Remove rows by number and append others, under numbers never used before. What they depend
    on in other tables is ``require``d in the state that they change.
    """
    stamp = context.storage.stamp(table)
    comes = isinstance(fresh, RawRow) or fresh.num_rows
    refers = bool(comes and constraint_check.rules(context, table).foreign)
    try:
        with transaction.writing_rows(context, table, refers=refers) as catalog:
            held = catalog.table(table.schema, table.name)
            if held is None:
                raise errors.make("table.missing", table=table.label)
            require()
            _exchange(context, held, fresh, gone)
    except errors.IntegrityError as error:
        rows = fresh.rows() if isinstance(fresh, RawRow) else fresh
        raise explained(context, table, [rows], error) from None
    if gone is None:
        constraint_check.appended(context, stamp, table, fresh)


def replace(context: Context, table: Table, fresh: pa.Table, gone: pa.Array) -> None:
    """The same within a transaction, of a table that hides no rows; the ledger says so before."""
    if len(gone):
        note_touched(context, table)
    _exchange(context, table, fresh, gone)


def change_row(context: Context, table: Table, change: OneRow) -> None:
    """The same of one row."""
    note_touched(context, table)
    fresh = change.fresh
    if fresh is not None:
        _record_at_rest(context, table)
        if not context.storage.replace_row(table, change.number, fresh):
            _exchange(context, table, fresh.rows(), pa.array([change.number], pa.int64()))
            return
    else:
        context.storage.remove_row(table, change.number)
    _note_removed(context, table, lambda: [change.number])


def _exchange(
    context: Context, table: Table, fresh: pa.Table | RawRow, gone: pa.Array | None
) -> None:
    if isinstance(fresh, RawRow):
        append(context, table, fresh)
        return
    if gone is not None and len(gone) == fresh.num_rows == 1:
        _record_at_rest(context, table)
        _note_removed(context, table, gone.to_pylist)
        context.storage.replace(table, gone, fresh)
        return
    if gone is not None:
        remove(context, table, gone)
    if fresh.num_rows:
        append(context, table, fresh)


def explained(
    context: Context, table: Table, batches: Iterable[pa.Table], error: errors.Error
) -> errors.Error:
    """A server's refusal of these rows in DuckDB's words for the user's columns and values; the
    same error where it is of another sort. The server names a tag, and the new rows tell whose.
    """
    refusal = context.backend.repeated(error.message) if table.tags else None
    if refusal is None:
        return error
    tag, stored_before = refusal
    for rows in batches:
        match = schemes.row_of_tag(context.columns, table, rows, tag)
        if match is not None:
            stored, position = match
            return _in_words(context, table, stored, rows.slice(position, 1), stored_before)
    statements = context.local.statements
    return statements.broken("Duplicate key of a row that is not among the new ones")


def _in_words(
    context: Context, table: Table, stored: str, row: pa.Table, stored_before: bool
) -> errors.Error:
    """The error that the row makes against itself."""
    known = constraint_check.rules(context, table)
    key = next(key for key in known.keys if tag_of(table, key.expressions) == stored)
    fresh, present = (row, row) if stored_before else (pa.concat_tables([row, row]), row.slice(1))
    try:
        with constraint_check.rehearsal(context) as connection:
            connection.register("louver_fresh", fresh)
            connection.register("louver_present", present)
            connection.require_key(key, "louver_fresh", "louver_present")
    except errors.IntegrityError as error:
        return error
    return errors.make("internal", detail="the server refused a key that is not there twice")


def hides_rows(table: Table) -> bool:
    """Whether some column may not even show which rows a statement touched."""
    return any(c.encrypted and not allows(c.ceiling, "access") for c in table.columns)


def note_touched(context: Context, table: Table) -> None:
    """Write into the ledger that the server sees which rows a change replaces."""
    facts = touched(table)
    if facts:
        context.ledger.record(facts, f"a change of {table.label}")


def touched(table: Table) -> list[Fact]:
    """What a change of rows shows. They are replaced once, so each is a condition of its own."""
    columns = [column for column in table.columns if column.encrypted]
    facts = [fact("rows.write", table, columns)] if columns else []
    return with_condition(facts, secrets.token_hex(8))
