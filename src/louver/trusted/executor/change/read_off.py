"""A change whose effect the local engine reads off (`Binder.effect_of`), whatever its form.

The tables get the rows that the statement may touch or look at, the user's own text runs on them,
and what became of the rows of each table is sent: of a cascade, to several tables in one
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from louver.names import own_schemas, quoted
from louver.trusted.executor import send_order
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import sending, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.local.changed_rows import Changed, Filled, Outcome
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.executor.row_writer import hides_rows
from louver.trusted.executor.schema import sequences
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.write import sequence_draws
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
    with clock.step("home"):
        filled, outcome = _effect(context, words, plan, tables, held)
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


def _effect(
    context: Context, words: statement_parts.Words, plan: ChangePlan, tables: Sequence[Table],
    held: Held,
) -> tuple[list[Filled], Outcome]:  # fmt: skip
    """What the statement does to the rows of tables: found out at once where that can be."""
    filled = [_plain(plan, table, held) for table in tables]
    outcome = at_once(context, words, filled)
    if outcome is not None:
        return filled, outcome
    sql, values = words.text(0, len(words.tokens))
    with context.local.rehearsal() as connection:
        context.local.temporary.fill(plan.names)
        filled = [filled_of(connection, plan, table, held) for table in tables]
        deferred = sorted(context.state.deferred)
        if deferred:
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            connection.execute(f"SET CONSTRAINTS {', '.join(deferred)} DEFERRED")
        outcome = context.local.effect_of(connection, filled, sql, values, deferred=bool(deferred))
    return filled, outcome


def at_once(
    context: Context, words: statement_parts.Words, filled: Sequence[Filled]
) -> Outcome | None:
    """What a statement does to rows of tables, found out in a rehearsal of its own; None where it
    is to be run step by step.
    """
    if context.state.deferred or context.local.temporary.names:
        return None
    if any(table.is_partial for table in filled) or _may_draw(context, words):
        return None
    return context.local.effect_at_once(filled, *words.text(0, len(words.tokens)))


def _may_draw(context: Context, words: statement_parts.Words) -> bool:
    """Whether a statement may draw from a sequence, which running it twice would do twice."""
    if not sequences.has_any(context.catalog):
        return False
    changes = words.keyword(0) in ("UPDATE", "DELETE") and "default" not in words.names()
    return not changes or sequence_draws.draws(context.catalog, words.tokens)


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
    where not all rows are there. What is never NULL stays so: by that PostgreSQL knows that
    ``k IS NULL`` is met by no row, and then computes nothing that could fail.
    """
    filled = _plain(plan, table, held)
    if filled.is_partial:
        text = plan.stand_in if table.id == plan.target else ""
        connection.execute(text or empty_copy(table))
        there = set(filled.rows.column_names)
        strict = [c.name for c in table.columns if not c.nullable and c.name in there]
        if strict:
            each = ", ".join(f"ALTER {quoted(name)} SET NOT NULL" for name in strict)
            connection.execute(f"ALTER TABLE {filled.path} {each}")
    return filled


def _plain(plan: ChangePlan, table: Table, held: Held) -> Filled:
    """The same before the temporary table is there."""
    rows, is_target = held[table.id].drop_columns([ROW_ID]), table.id == plan.target
    if plan.stand_in if is_target else plan.rows is not None:
        temporary = own_schemas().temporary
        return Filled(temporary, table.name, rows, is_watched=is_target, is_partial=True)
    return Filled(table.schema, table.name, rows)


def empty_copy(table: Table) -> str:
    """A temporary table of the name and columns of a table, which has none of its rules."""
    source = f"SELECT * FROM {table.local_name} LIMIT 0"
    return f"CREATE TEMP TABLE {quoted(table.name)} AS {source}"
