"""A rehearsed change on its way to the server, all of it or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.trusted.executor import constraint_check, row_writer
from louver.trusted.executor.define.sequences import save_sequences
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import condition_of, fact, with_condition
from louver.trusted.vault.levels import allows

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session


def send(session: Session, table: Table, fresh: pa.Table, gone: pa.Array | None = None) -> None:
    """Remove rows by number and append others, under numbers never used before."""
    stamp = session.storage.stamp(table)
    with session.writing() as catalog:
        held = catalog.table(table.schema, table.name)
        if held is None:
            raise errors.make("table.missing", table=table.label)
        if gone is not None:
            row_writer.remove(session, held, gone)
        if fresh.num_rows:
            row_writer.append(session, held, fresh)
        save_sequences(session, catalog)
    if gone is None:
        constraint_check.appended(session, stamp, table, fresh)


def hides_rows(table: Table) -> bool:
    """Whether some column may not even show which rows a statement touched."""
    return any(c.encrypted and not allows(c.ceiling, "access") for c in table.columns)


def note_touched(session: Session, table: Table, gone: pa.Array) -> None:
    """Write into the ledger that the server sees which rows a change replaces."""
    columns = [column for column in table.columns if column.encrypted]
    if columns:
        # Rows are replaced once, so each change is a condition of its own.
        condition = condition_of(gone.slice(0, 1).to_pylist(), [table], session.storage.stamp)
        touched = with_condition([fact("rows.write", table, columns)], condition)
        session.ledger.record(touched, f"a change of {table.label}")
