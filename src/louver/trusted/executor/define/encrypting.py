"""ALTER TABLE t ALTER COLUMN c SET ENC … and DROP ENC: in place, in batches, to be continued.

Three kinds of transactions: the first adds the new stored columns, empty, and notes in the catalog
what they are; each further one fills them for a batch of rows; the last drops the former stored
columns and has the catalog say so. Between them the column is what it was, and rows that are
written meanwhile have no new form, so that a later batch finds them. A client that runs the
statement again, after whatever end, continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor import cardinality, row_writer, server_numbers, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import fill, rebuilding
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.progress import bar
from louver.trusted.executor.schema import (
    constraints,
    declarations,
    head,
    join_groups,
    representations,
    tables,
)
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault import bounds, scheme, schemes
from louver.trusted.vault.arrays import unwrapped
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.facts import fact
from louver.trusted.vault.types import is_collated
from louver.wire.messages import Statement

BATCH_ROWS = 65_536
"""Rows read and written at a time."""
SETTING = rebuilding.CHANGING
"""The catalog's setting with the unfinished changes, by column id."""
_FIELDS = (
    "encrypted", "scheme", "ceiling", "generation", "stored", "layers", "group", "low", "bits",
    "coarse",
)  # fmt: skip
_SET = (
    "The server has had {name} in plain text until now: a copy, a backup, the write-ahead log or"
    " free pages of its file may still hold the values. Of the file they go when it is copied"
    " into a new one (COPY FROM DATABASE)."
)
_DROPPED = "The server has {name} in plain text from now on, and what it has seen stays known."


def change(context: Context, start: head.Head, name: str, declared: Declared | None) -> Answer:
    """Encrypt a column as declared, or with None store it in plain text."""
    if context.in_transaction:
        verb = "DROP ENC" if declared is None else "SET ENC"
        raise errors.make("transaction.batches", statement=f"ALTER COLUMN {name} {verb}")
    if context.backend.storage != "server":
        raise errors.make("sql.unsupported", statement="SET ENC or DROP ENC of a lake")
    table, column = _named(context.catalog, start, name)
    if column.encrypted == (declared is not None):
        verb = "SET ENC of a column that is ENC (use MAY REVEAL)" if declared else "DROP ENC twice"
        raise errors.make("sql.unsupported", statement=verb)
    label = f"{table.label}.{column.name}"
    _begin(context, start, name, declared)
    with bar() as progress:
        done = 0
        while not _finish(context, start, name):
            after = -1
            while (last := _batch(context, start, name, after)) is not None:
                after, done = last[0], done + last[1]
                if progress is not None:
                    progress(min(done, table.row_count), table.row_count)
    _tidy(context)
    notices = [(_DROPPED if declared is None else _SET).format(name=label)]
    table, column = _named(context.catalog, start, name)
    return Answer(notices=notices + cardinality.declared(table, column.ceiling, column))


def require_finished(catalog: Catalog, table: Table) -> None:
    """Refuse to alter a table one of whose columns is about to change."""
    for column in table.columns:
        fresh = _pending(catalog, column)
        if fresh is not None:
            verb = "SET ENC" if fresh.encrypted else "DROP ENC"
            statement = f"ALTER TABLE {table.label} ALTER COLUMN {column.name} {verb}"
            raise errors.make("enc.unfinished", table=table.label, statement=statement)


def _named(catalog: Catalog, start: head.Head, name: str) -> tuple[Table, Column]:
    table = catalog.named(*start.target)
    if table is None:
        raise errors.make("table.missing", table=".".join(start.name))
    column = table.column(name)
    if column is None:
        raise errors.make("column.missing", table=table.label, column=name)
    return table, column


# ---------------------------------------------------------------------- the first transaction


def _begin(context: Context, start: head.Head, name: str, declared: Declared | None) -> None:
    with transaction.writing(context, schema_changed=True) as catalog:
        table, column = _named(catalog, start, name)
        fresh = _target(context, catalog, table, column, declared)
        before = _pending(catalog, column)
        if before is not None and _shape(before) == _shape(fresh):
            return
        later = _with(table, column, fresh)
        declarations.require_around(context, _replaced(catalog, later), later)
        # The ledger says it before the first value is sent.
        word = "enc.set" if fresh.encrypted else "enc.dropped"
        facts = [fact(word, table, [column])]
        if fresh.encrypted:
            only = replace(later, columns=[fresh], packs={}, tags={})
            facts += row_writer.at_rest(only, context.backend)
        context.ledger.record(facts, f"ALTER TABLE {table.label}")
        if before is not None:
            context.storage.drop_columns(table, list(before.stored.values()))
        for stored, type_ in representations.columns_of(fresh, context.backend, context.local):
            sql = context.backend.add_column(table, stored, type_)
            context.engine.run(Statement(sql, kind="ddl"))
        # The tags of plain keys would tell later ones, and other ceilings may allow none.
        rebuilding.let_go_of_tags(context, table)
        unfinished = dict(catalog.settings.get(SETTING, {}))
        unfinished[str(column.id)] = {field: getattr(fresh, field) for field in _FIELDS}
        catalog.settings[SETTING] = unfinished


def _target(
    context: Context, catalog: Catalog, table: Table, column: Column, declared: Declared | None
) -> Column:
    """The column as it will be; its values are sealed under keys that sealed none before."""
    bare = replace(column, stored={}, layers={}, group="", low=None, bits=0, coarse=0)
    if declared is None:
        if is_collated(column.type):
            raise head.refuse_collation(f"column {column.name}")
        stored = {"plain": tables.plain_name(column.name)}
        return replace(bare, encrypted=False, scheme="", ceiling="plaintext", stored=stored)
    protection = context.policy.protection(table.label, column.name, column.type, declared)
    known = constraints.read(context.local.schema, table.schema, table.name).get(
        fold(column.name), constraints.Known()
    )
    fresh = replace(
        bare,
        encrypted=True,
        scheme=protection.scheme,
        ceiling=protection.ceiling,
        generation=rebuilding.next_generation(column),
    )
    representations.fit(fresh, protection, known, context.backend)
    if scheme.share_of(fresh) or scheme.asks_packing(protection):
        statement = "SET ENC USING sdb or WITH (sum = 'hom') (create the table again)"
        raise errors.make("sql.unsupported", statement=statement)
    scratch = _with(table, column, fresh)
    declared_rules = constraints.read(context.local.schema, table.schema, table.name)
    join_groups.assign(catalog, scratch, {fold(column.name): protection}, declared_rules)
    return fresh


def _shape(column: Column) -> tuple[object, ...]:
    """What two attempts at one change have in common."""
    names = sorted(column.stored)
    return (column.encrypted, column.scheme, column.ceiling, names, column.group, column.coarse)


def _with(table: Table, column: Column, fresh: Column) -> Table:
    columns = [fresh if other.id == column.id else other for other in table.columns]
    return replace(table, columns=columns)


def _replaced(catalog: Catalog, table: Table) -> Catalog:
    return replace(catalog, tables=catalog.tables | {table.key: table})


def _pending(catalog: Catalog, column: Column) -> Column | None:
    """The column as an unfinished change will leave it; None if there is no such change."""
    fields: dict[str, Any] | None = catalog.settings.get(SETTING, {}).get(str(column.id))
    return None if fields is None else replace(column, **fields)


# ---------------------------------------------------------------------- the batches


def _batch(context: Context, start: head.Head, name: str, after: int) -> tuple[int, int] | None:
    """Fill the new stored columns of the next rows that lack them: the last row's number and how
    many there were; None if there are none.
    """
    with transaction.writing(context, plans_hold=True) as catalog:
        table, column = _named(catalog, start, name)
        fresh = _required(catalog, column)
        row_ids, values = _read(context, table, column, fresh, after)
        if not len(row_ids):
            return None
        if fresh.encrypted:
            new_rows = schemes.seal(context.columns, table, fresh, unwrapped(values), row_ids)
        else:
            stored = context.local.as_stored(column.type, pa.chunked_array([values]))
            new_rows = {fresh.stored["plain"]: stored}
        written = rebuilding.write(
            context, table, arrow_values.readable(pa.table({"louver_row": row_ids, **new_rows}))
        )
        if written != len(row_ids):
            raise errors.make(
                "row.missing", table=table.label, expected=len(row_ids), found=written
            )
        return row_ids[-1].as_py(), len(row_ids)


def _read(
    context: Context, table: Table, column: Column, fresh: Column, after: int
) -> tuple[pa.Array, pa.Array]:
    """Numbers and values of the next rows that have no new form. A plain NULL looks like a row
    that has none.
    """
    backend = context.backend
    source, marker = (
        scheme.read_from(side) if side.encrypted else side.stored["plain"]
        for side in (column, fresh)
    )
    sql = backend.rows_without(table, source, marker)
    reply = context.engine.query(Statement(sql, (after, BATCH_ROWS)))
    row_ids, held = (pa.concat_arrays(reply.column(position).chunks) if reply.num_rows
                     else pa.array([], reply.schema.field(position).type)
                     for position in (0, 1))  # fmt: skip
    field = context.local.arrow_field(column.type)
    if column.encrypted:
        return row_ids, context.columns.open_column(table, column, held, row_ids, field)
    only = replace(table, columns=[column])
    held = server_numbers.declared(held, field)
    rows = fill.conformed(context, only, pa.table({column.name: held}))
    return row_ids, pa.concat_arrays(rows.column(0).chunks) if rows.num_rows else held


def _required(catalog: Catalog, column: Column) -> Column:
    fresh = _pending(catalog, column)
    if fresh is None:
        # Another client has finished it, or has begun another change.
        raise errors.make("catalog.conflict")
    return fresh


# ---------------------------------------------------------------------- the last transaction


def _finish(context: Context, start: head.Head, name: str) -> bool:
    """Drop the former stored columns and take over the new ones; False if a row lacks them."""
    from louver.trusted.executor.schema import indexes

    with transaction.writing(context, schema_changed=True) as catalog:
        table, column = _named(catalog, start, name)
        fresh = _required(catalog, column)
        if not _complete(context, table, column, fresh):
            return False
        gone = list(column.stored.values())
        before = indexes.wanted(catalog, table, context.backend)
        if scheme.share_of(column):
            gone += tables.let_go_of_kept(table)
        for field in _FIELDS:
            setattr(column, field, getattr(fresh, field))
        bounds.widen(column, None, None, has_null=False)
        catalog.settings[SETTING] = {
            key: fields
            for key, fields in catalog.settings[SETTING].items()
            if key != str(column.id)
        }
        context.storage.drop_columns(table, gone + tables.settle_helpers(table))
        # With a column go the indexes that it is in.
        context.storage.index(table, [names for names in before if not set(gone) & set(names)])
        declarations.require_around(context, catalog, table)
        from louver.trusted.executor.define import tagging

        tagging.settle(context, catalog, table)
    return True


def _complete(context: Context, table: Table, column: Column, fresh: Column) -> bool:
    """Whether every row has its new form. A plain column is NULL where the value is."""
    after = -1
    while True:
        row_ids, values = _read(context, table, column, fresh, after)
        if not len(row_ids):
            return True
        if fresh.encrypted or values.null_count < len(values):
            return False
        after = row_ids[-1].as_py()


def _tidy(context: Context) -> None:
    """Have the server write its file anew where the former values were."""
    sql = context.backend.checkpoint()
    if sql:
        with suppress(errors.Error):
            context.engine.run(Statement(sql, kind="ddl"))


def unfinished(catalog: Catalog) -> Sequence[str]:
    """The columns, as ``table.column``, whose change has begun and not ended."""
    return [
        f"{table.label}.{column.name}"
        for table in catalog.tables.values()
        for column in table.columns
        if _pending(catalog, column) is not None
    ]
