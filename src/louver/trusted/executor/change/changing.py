"""UPDATE, DELETE, MERGE and INSERT with a way out for conflicts.

The tables that the statement names are filled locally with their rows, the user's own statement
runs there under all constraints, and what differs afterwards is what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.executor import (
    cardinality,
    chosen_rows,
    constraint_check,
    dry_run,
    onion_adjustment,
    planned_reads,
    seen_state,
    storage,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import (
    flow,
    narrowing,
    statement_parts,
    subscripts,
)
from louver.trusted.executor.context import Context
from louver.trusted.executor.row_writer import hides_rows, send
from louver.trusted.planner.ir import ChangePlan, Plan
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.levels import allows

_BEFORE = "louver_before"
_PLACE = "louver_place"


def change(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run UPDATE, DELETE, MERGE or INSERT … ON CONFLICT."""
    from louver.trusted.executor.change import known

    transaction.require_writable(context)
    words = statement_parts.words_of(text, tokens, parameters)
    plain = lexer.shape(words.plain, tokens)
    shape = lexer.with_parameters(plain, parameters)
    plan = known.find(context, words, plain.key, shape)
    if plan is None:
        statement_parts.require_named(context.catalog, words)
        verb = statement_parts.verb_place(words)
        table = statement_parts.target(words, verb, context.catalog)
        if table is None:
            return _elsewhere(context, words, shape)
        if words.keyword(verb) == "DELETE" and _is_everything(words, verb):
            return empty(context, words, table)
        judged = subscripts.judged(words, verb)
        all_met = flow.require(context, judged, table).all_met
        plan = planned(context, judged, verb, table, all_met)
        if judged is not words:
            plan = replace(plan, each=None)
        known.keep(context, words, plain.key, shape, table, plan)
    try:
        answer = _executed(context, words, shape, plan)
    except errors.IntegrityError as error:
        within = context.in_transaction and spoken().fails_whole
        if within and statement_parts.is_key_of_conflict(words, error):
            raise errors.make("catalog.conflict") from error
        raise
    if text.parameters and (plan.each is not None or spoken().reads_off):
        from louver.trusted.executor.change import repeated_changes

        repeated_changes.keep_change(context, words, text, plan)
    return answer


def truncate(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run TRUNCATE."""
    transaction.require_writable(context)
    words = statement_parts.words_of(text, tokens, parameters)
    position = 2 if words.keyword(1) == "TABLE" else 1
    schema, name, end = statement_parts.qualified(words, position)
    table = context.catalog.named(schema, name)
    if table is None or end != len(words.tokens):
        return _not_ours(context, words)
    answer = empty(context, words, table)
    if spoken().has_own_statements:
        answer.affected = -1  # PostgreSQL does not say how many rows there were
    return answer


def empty(context: Context, words: statement_parts.Words, table: Table) -> Answer:
    """Delete all rows; where other tables refer to them, as any other change."""
    if constraint_check.rules(context, table).children:
        if words.keyword(0) in statement_parts.VERBS:
            flow.require(context, words, table)
        return _executed(context, words, words.shape(), planned(context, words, 0, table))
    clock = Clock()
    with clock.step("server"):
        rows = storage.whole(context.storage, table, [])
        count = rows.num_rows
        if count:
            ids = rows.column(storage.ROW_ID).combine_chunks()
            send(context, table, rows.slice(0, 0), ids)
    return Answer(affected=count, times_ms=clock.times_ms)


def _is_everything(words: statement_parts.Words, verb: int) -> bool:
    _, _, end = statement_parts.qualified(words, statement_parts.target_place(words, verb))
    return verb == 0 and end == len(words.tokens)


def _elsewhere(context: Context, words: statement_parts.Words, shape: lexer.Shape) -> Answer:
    """A change of a view, as far as the local engine has such."""
    from louver.trusted.executor.change import through_views

    plan = through_views.plan(context, words, _involved)
    return _executed(context, words, shape, plan) if plan else _not_ours(context, words)


def _not_ours(context: Context, words: statement_parts.Words) -> Answer:
    """A target that is not a table of the catalog: DuckDB says why that is an error."""
    sql, values = words.text(0, len(words.tokens))
    with constraint_check.rehearsal(context) as connection:
        connection.execute(sql, values) if values else connection.execute(sql)
    raise errors.make(
        "sql.unsupported", statement="A change of anything but a table of this database"
    )


def planned(
    context: Context, words: statement_parts.Words, verb: int, table: Table, all_met: bool = False
) -> ChangePlan:
    """Which tables a change of a table needs, and which rows of them; with ``all_met``, also rows
    that get the values that they have are written. Nothing is sent.
    """
    own = fold(table.name)
    # Said again, the name may mean a table or view of another schema.
    once = sum(fold(token.text) == own for token in words.tokens) == 1
    alone = once or not statement_parts.is_shared(context.catalog, table)
    names = words.names() - ({own} if alone and words.keyword(verb) != "TRUNCATE" else set())
    read = statement_parts.tables_named(context.catalog, names)
    every = statement_parts.reached(context.catalog, words.names())[0]
    mentioned = context.local.temporary.mentioned(every)
    narrowed = None if mentioned else narrowing.rows_of(context, words, table, read)
    if narrowed is None:
        involved = [other.id for other in _involved(context, table, read)]
    else:
        involved = [remote.sources[0].table for remote in narrowed.plan.remotes]
    free, each = statement_parts.assigned(words), None
    if narrowed is not None and narrowed.alone:
        from louver.trusted.executor.change import row_recipes

        each = row_recipes.recipe(context, words, table, narrowed.plan, free)
    elif narrowed is not None:
        # What is assigned may be a subquery, which the plan reads rows for.
        free = (0, 0)
    return ChangePlan(
        table.id,
        tuple(other.id for other in read),
        tuple(involved),
        frozenset(every),
        narrowed.plan if narrowed is not None else None,
        narrowed.stand_in if narrowed is not None else "",
        free,
        each,
        all_met,
    )


def _executed(
    context: Context, words: statement_parts.Words, shape: lexer.Shape, plan: ChangePlan
) -> Answer:
    """Run a planned change: where references are decided on rows that are read before others are
    written, in one transaction.
    """
    known = constraint_check.rules(context, context.catalog.by_id(plan.target))
    if known.children or (known.foreign and plan.rows is None):
        from louver.trusted.executor import one_state

        with one_state.alone(context):
            return _run(context, words, shape, plan)
    return _run(context, words, shape, plan)


def _run(
    context: Context, words: statement_parts.Words, shape: lexer.Shape, plan: ChangePlan
) -> Answer:
    """Rows in, the dry run, rows out."""
    clock, notices = Clock(), list[str]()
    if plan.rows is not None:
        with clock.step("open layers"):
            notices = prepare(context, words, shape, plan.rows)
    # Opening a layer makes another catalog.
    catalog = context.catalog
    involved = [catalog.by_id(other) for other in plan.rehearsed]
    once = plan.rows is not None and planned_reads.reads_once(context.catalog, plan.rows)
    with clock.step("server"), nullcontext() if once else seen_state.same_state(context):
        held = chosen_rows.held(context, plan, involved, shape.literals)
    with clock.step("home"):
        done = None
        if plan.each is not None:
            from louver.trusted.executor.change import row_by_row

            rows, terms = held[plan.target], row_by_row.terms_of(context, words, plan)
            done = row_by_row.decided(context, words, plan, terms, rows, shape.literals)
    if done is not None:
        from louver.trusted.executor.change import sending

        answer = sending.sent(context, catalog.by_id(plan.target), held[plan.target], done, clock)
    elif context.local.dialect.reads_off:
        from louver.trusted.executor.change import read_off

        answer = read_off.run(context, words, plan, held, clock)
    else:
        from louver.trusted.executor.change import rehearsing

        answer = rehearsing.rehearsed_and_sent(context, words, plan, held, clock)
    answer.notices = notices
    return answer


def prepare(
    context: Context, words: statement_parts.Words, shape: lexer.Shape, rows: Plan
) -> list[str]:
    """Record what reading the rows shows, then open the layers that it needs; sentences for the
    user.
    """
    new = context.record(rows, shape, words.tokens)
    notices = cardinality.warned(new, context.catalog)
    with storage.translate_reply_errors():
        return notices + onion_adjustment.require(context, rows.opens)


def _involved(context: Context, table: Table, read: Sequence[Table]) -> list[Table]:
    """The target, what is read, what refers to the target, and all that these refer to; also what
    refers to a table that a cascade changes.
    """
    below, acted = _below(context, table)
    for child in acted:
        require_shown(table)
        require_shown(child)
    return dry_run.with_parents(context, [table, *read, *below])


def acted_on(context: Context, table: Table) -> list[Table]:
    """The tables whose rows change with those of a table that they refer to."""
    return _below(context, table)[1]


def _below(context: Context, table: Table) -> tuple[list[Table], list[Table]]:
    """What refers to a table, or to one that a cascade changes; and those that a cascade does."""
    below: dict[tuple[str, str], Table] = {}
    acted, pending = list[Table](), [table]
    while pending:
        parent = pending.pop()
        for position in constraint_check.rules(context, parent).children:
            child = context.catalog.table(*position)
            if child is None or child.key in below:
                continue
            below[child.key] = child
            if constraint_check.acts(context, parent, child):
                acted.append(child)
                pending.append(child)
    return [*below.values()], acted


def require_shown(table: Table) -> None:
    """Refuse a cascade at a table that hides which of its rows are touched: those of the other
    table would tell.
    """
    if hides_rows(table):
        hidden = next(c for c in table.columns if c.encrypted and not allows(c.ceiling, "access"))
        raise errors.make(
            "leak.refused",
            level="access",
            table=table.label,
            column=hidden.name,
            ceiling=hidden.ceiling,
        )
