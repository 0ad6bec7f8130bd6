"""Rows of a change are sent, and foreign keys decided in the state that they change."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.executor import constraint_check, storage
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.raw_rows import RawRow
from louver.trusted.executor.row_writer import hides_rows, note_touched, send
from louver.trusted.vault.catalog import Table


def send_new(context: Context, table: Table, fresh: pa.Table | RawRow) -> None:
    """Append new rows; raises DuckDB's error where they break a key that no server decides, or a
    foreign key.
    """
    constraint_check.require(context, table, fresh)
    send(context, table, fresh, None, lambda: _require_parents(context, table, fresh))


def sent(
    context: Context,
    table: Table,
    before: pa.Table | None,
    done: Difference,
    clock: Clock,
    *,
    decided: bool = False,
) -> Answer:
    """Send what a change did: rows out and in, if there are any. ``before`` are the rows that the
    dry run was over, or at least those that go; None where they are not at hand. Where it was not
    over rows of the target alone, foreign keys are ``decided``, as they are without such rows.
    """
    # A table that hides which rows are touched gives all of them up.
    if len(done.gone) and not hides_rows(table):
        note_touched(context, table)
    if len(done.gone) or done.fresh.num_rows:
        with clock.step("write"):
            send(
                context, table, done.fresh, done.gone,
                lambda: _require_references(context, table, before, done, decided=decided),
            )  # fmt: skip
    done.answer.times_ms = clock.times_ms
    return done.answer


def _require_parents(context: Context, table: Table, fresh: pa.Table | RawRow) -> None:
    """Raise DuckDB's error where new rows refer to nothing."""
    if constraint_check.rules(context, table).foreign:
        fresh = fresh.rows() if isinstance(fresh, RawRow) else fresh
        from louver.trusted.executor import references

        references.require_parents(context, table, fresh, fresh.slice(0, 0))


def _require_references(
    context: Context, table: Table, before: pa.Table | None, done: Difference, *, decided: bool
) -> None:
    """Foreign keys. The dry run has decided on them but where it was over rows of the target alone;
    then it was a transaction of its own, and others must not have changed what it read. Where no
    key goes, no client that refers to one has to wait.
    """
    known = constraint_check.rules(context, table)
    if before is None:
        if known.children and len(done.gone):
            context.store.hold_references()
    elif (known.children and len(done.gone)) or (known.foreign and done.fresh.num_rows):
        from louver.trusted.executor import references

        gone = before.filter(pc.is_in(before.column(storage.ROW_ID), done.gone))
        if not decided:
            references.require_parents(context, table, done.fresh, gone)
            references.require_unreferenced(context, table, gone, done.fresh)
        elif any(keys for _, _, keys in references.lost_keys(context, table, gone, done.fresh)):
            context.store.hold_references()
