"""A change whose effect the local engine reads off (`Binder.effect_of`), whatever its form.

The tables get the rows that the statement may touch or look at, the user's own text runs on them,
and what became of the rows of each table is sent: of a cascade, to several tables in one
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from louver.names import own_schemas, quoted
from louver.trusted.executor import send_order
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import sending, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.local.changed_rows import Changed, Filled
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.executor.row_writer import hides_rows
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.vault.catalog import Table

Held = Mapping[int, pa.Table]
"""Opened rows by the ids of their tables, with their numbers (column ``louver_row_id``)."""


def run(
    context: Context, words: statement_parts.Words, plan: ChangePlan, held: Held, clock: Clock
) -> Answer:
    """Run a statement locally over the rows that it needs, by table, and send what differs."""
    tables = [context.catalog.by_id(other) for other in plan.rehearsed]
    # In the order in which they came, as a key that a statement gives from row to row needs it.
    held = {other: rows.sort_by(ROW_ID) for other, rows in held.items()}
    sql, values = words.text(0, len(words.tokens))
    with clock.step("home"), context.local.rehearsal() as connection:
        context.local.temporary.fill(plan.names)
        filled = [filled_of(connection, plan, table, held) for table in tables]
        deferred = sorted(context.state.deferred)
        if deferred:
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            connection.execute(f"SET CONSTRAINTS {', '.join(deferred)} DEFERRED")
        outcome = context.local.effect_of(connection, filled, sql, values, deferred=bool(deferred))
    answer = Answer(outcome.rows, outcome.columns, outcome.affected)
    if outcome.rows is None:
        answer = Answer(affected=outcome.affected)
    alone = plan.rows is not None or bool(plan.stand_in)
    anew = () if statement_parts.only_adds(words) else (plan.target,)
    # What refers to a row goes before it, and comes after it.
    for table, source in reversed(list(zip(tables, filled, strict=True))):
        changed = outcome.changed.get((source.schema, source.name))
        if changed is not None and table.id in anew and hides_rows(table):
            changed = _all_anew(table, held[table.id], changed)
        if changed is None or not (len(changed.gone) or changed.fresh.num_rows):
            continue
        done = difference(table, held[table.id], changed, answer)
        sending.sent(context, table, held[table.id], done, clock, decided=not alone)
    answer.times_ms = clock.times_ms
    return answer


def _all_anew(table: Table, rows: pa.Table, changed: Changed) -> Changed:
    """Every row goes and comes again, so that no one can tell which were met, and if any was."""
    names = [column.name for column in table.columns]
    numbers = pa.array(range(rows.num_rows), pa.int64())
    others = rows.filter(pc.invert(pc.is_in(numbers, value_set=changed.gone))).select(names)
    both = [others, changed.fresh.select(names)]
    return Changed(numbers, pa.concat_tables(both, promote_options="permissive"))


def difference(table: Table, rows: pa.Table, changed: Changed, answer: Answer) -> Difference:
    """What became of a table's rows, in an order that no one can know where values are secret."""
    gone = rows.column(ROW_ID).combine_chunks().take(changed.gone)
    fresh = changed.fresh.select([column.name for column in table.columns])
    if table.has_encrypted and fresh.num_rows > 1:
        fresh = send_order.by_chance(fresh)
    return Difference(gone, fresh, answer)


def filled_of(connection: LocalConnection, plan: ChangePlan, table: Table, held: Held) -> Filled:
    """A table with its rows; a temporary one of its name and without its rules about other rows,
    where not all rows are there.
    """
    rows, is_target = held[table.id].drop_columns([ROW_ID]), table.id == plan.target
    text = plan.stand_in if is_target else ""
    if plan.rows is not None and not is_target:
        text = empty_copy(table)
    if not text:
        return Filled(table.schema, table.name, rows)
    connection.execute(text)
    return Filled(own_schemas().temporary, table.name, rows, is_watched=is_target, is_partial=True)


def empty_copy(table: Table) -> str:
    """A temporary table of the name and columns of a table, which has none of its rules."""
    source = f"SELECT * FROM {table.local_name} LIMIT 0"
    return f"CREATE TEMP TABLE {quoted(table.name)} AS {source}"
