"""ALTER TABLE t ALTER COLUMN c MAY REVEAL level."""

from __future__ import annotations

from dataclasses import replace

from louver import errors
from louver.trusted.executor import cardinality, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import encrypting, rebuilding
from louver.trusted.executor.schema import declarations, head, tables
from louver.trusted.vault import scheme
from louver.trusted.vault.levels import allows
from louver.trusted.vault.protection import SEALED


def change(context: Context, start: head.Head, name: str, level: str) -> Answer:
    """Raise or lower a ceiling. What was revealed before stays revealed, and the answer says so.

    What a raised ceiling allows is added, made of the sealed values; what a lowered one does not
    allow is taken off the server. The sealed copy of the column stays.
    """
    table = context.catalog.named(*start.target)
    if table is None:
        if start.conditional:
            return Answer()
        raise errors.make("table.missing", table=".".join(start.name))
    column = table.column(name)
    if column is None:
        raise errors.make("column.missing", table=table.label, column=name)
    encrypting.require_finished(context.catalog, table)
    if not column.encrypted:
        raise errors.make("enc.plain", table=table.label, column=column.name)
    notices = []
    held = context.ledger.level(table.label, column.name)
    if held and not allows(level, held):
        notices.append(
            f"The server has been shown {held} of {table.label}.{column.name} already; from now"
            f" on it is shown no more than {level}, but what it has seen cannot be unlearned."
        )
    with transaction.writing(context, schema_changed=True) as catalog:
        working = catalog.tables[table.key]
        changed = working.column(column.name)
        if changed is None:
            raise errors.make("column.missing", table=table.label, column=name)
        before = rebuilding.detailed(context, working, changed)
        changed.ceiling = level
        # Below `equality` the catalog is not told of the first NULL.
        changed.has_null = changed.has_null or (changed.encrypted and changed.nullable)
        declarations.require_around(context, catalog, working)
        row = scheme.using(changed.scheme)
        if row is not None and not allows(level, row.ceiling):
            changed.scheme = SEALED
            notices.append(
                f"What {row.name} stores of {table.label}.{column.name} was dropped; the column is"
                " sealed from now on. A server that kept a copy keeps what that reveals."
            )
            context.storage.drop_columns(working, tables.let_go_of_kept(working))
        protection = replace(before, scheme=changed.scheme, ceiling=level)
        rebuilding.fit(context, working, changed, protection)
        from louver.trusted.executor.define import tagging

        tagging.settle(context, catalog, working)
    if not held or not allows(held, level):
        notices += cardinality.declared(table, level, changed)
    return Answer(notices=notices)
