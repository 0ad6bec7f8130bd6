"""UPDATE, DELETE, MERGE and INSERT with a way out for conflicts.

The tables that the statement names are filled locally with their rows, the user's own statement
runs there under all constraints, and what differs afterwards is what is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import (
    cardinality,
    chosen_rows,
    constraint_check,
    dry_run,
    onion_adjustment,
    select,
    send_order,
    storage,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import (
    conflicts,
    flow,
    narrowing,
    rowids,
    statement_parts,
)
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.executor.row_writer import hides_rows, send
from louver.trusted.planner.ir import ChangePlan, Plan
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import Column, Table
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
            return _not_ours(context, words)
        if words.keyword(verb) == "DELETE" and _is_everything(words, verb):
            return empty(context, words, table)
        all_met = flow.require(context, words, table).all_met
        plan = planned(context, words, verb, table, all_met)
        known.keep(context, words, plain.key, shape, table, plan)
    answer = _executed(context, words, shape, plan)
    if plan.each is not None and text.parameters:
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
            notices = _prepare(context, words, shape, plan.rows)
    # Opening a layer makes another catalog.
    catalog = context.catalog
    involved = [catalog.by_id(other) for other in plan.rehearsed]
    once = plan.rows is not None and select.reads_once(context, plan.rows)
    with clock.step("server"), nullcontext() if once else transaction.same_state(context):
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
        answer = rehearsed_and_sent(context, words, plan, held, clock)
    answer.notices = notices
    return answer


def rehearsed_and_sent(
    context: Context,
    words: statement_parts.Words,
    plan: ChangePlan,
    held: Mapping[int, pa.Table],
    clock: Clock,
    fill_more: Callable[[LocalConnection], None] = lambda _: None,
) -> Answer:
    """Run a statement locally over the rows that it needs, by table, and send what differs."""
    catalog = context.catalog
    table, read = catalog.by_id(plan.target), [catalog.by_id(other) for other in plan.read]
    name = dry_run.stand_in(table) if plan.stand_in else table.local_name

    def rehearsed(connection: LocalConnection) -> Difference:
        shown = rowids.shown(connection, words, table, read)
        rules = constraint_check.rules(context, table)
        by_hash = rules if conflicts.decide_by_hash(shown, table, rules) else None
        rows = held[table.id]
        results = _rehearse(connection, shown, table, name, rows, by_hash, plan.all_met)
        connection.require_exact(name, table, results.fresh)
        return results

    def filled(connection: LocalConnection) -> None:
        if plan.stand_in:
            connection.execute(plan.stand_in)
            dry_run.fill_stand_in(context, connection, table, held[table.id])
        for other in map(catalog.by_id, plan.rehearsed):
            if plan.rows is not None and other.id != table.id:
                dry_run.stand_for(context, connection, other, held[other.id])
            elif other.id != table.id or not plan.stand_in:
                dry_run.fill(context, connection, other, held[other.id])
        fill_more(connection)
        context.local.temporary.fill(plan.names)

    with clock.step("home"):
        merges = any(keyword(token.text) == "MERGE" for token in words.tokens)
        done = constraint_check.rehearsed(context, filled, rehearsed, merges=merges)
    from louver.trusted.executor.change import sending

    before = held[table.id] if plan.rows is not None or plan.stand_in else None
    return sending.sent(context, table, before, done, clock)


def _prepare(
    context: Context, words: statement_parts.Words, shape: lexer.Shape, rows: Plan
) -> list[str]:
    """Record what reading the rows shows, then open the layers that it needs; sentences for the
    user.
    """
    new = select.record(context, rows, shape, words.tokens)
    notices = cardinality.warned(new, context.catalog)
    with storage.translate_reply_errors():
        return notices + onion_adjustment.require(context, rows.opens)


def _involved(context: Context, table: Table, read: Sequence[Table]) -> list[Table]:
    """The target, what is read, what refers to the target, and all that these refer to; also what
    refers to a table that a cascade changes.
    """
    below: dict[tuple[str, str], Table] = {}
    pending = [table]
    while pending:
        parent = pending.pop()
        for position in constraint_check.rules(context, parent).children:
            child = context.catalog.table(*position)
            if child is None or child.key in below:
                continue
            below[child.key] = child
            if constraint_check.acts(context, parent, child):
                _require_shown(table)
                _require_shown(child)
                pending.append(child)
    return dry_run.with_parents(context, [table, *read, *below.values()])


def _require_shown(table: Table) -> None:
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


def _rehearse(
    connection: LocalConnection,
    words: statement_parts.Words,
    table: Table,
    name: str,
    rows: pa.Table,
    by_hash: constraint_check.Rules | None,
    all_met: bool,
) -> Difference:
    """Run the statement and see what it changed. Where the table hides which rows are touched, and
    where a row that stays would tell that it got the values that it had, every row that was read
    goes and comes again. (DuckDB moves an updated row to the end where a column is UNIQUE or a
    LIST.)
    """
    row_source = f"SELECT rowid FROM {name}"
    at = None
    if rows.num_rows and not table.column("rowid"):
        at = connection.fetch_arrow(row_source).column(0)
    answer = _answer(connection, words, table, by_hash)
    listed = ", ".join(f"t.{quoted(column.name)}" for column in table.columns)

    def all_anew() -> Difference:
        rank = send_order.rank(send_order.shown(table))
        after = connection.fetch_arrow(f"SELECT {listed}, {rank} FROM {name} AS t")
        return Difference(
            rows.column(storage.ROW_ID).combine_chunks(),
            send_order.mixed(after),
            answer,
        )

    if at is None or ((all_met or hides_rows(table)) and not statement_parts.only_adds(words)):
        return all_anew()
    if statement_parts.only_adds(words):
        # Rows that were there stay as they are; new ones have higher numbers.
        rank = send_order.rank(send_order.shown(table))
        added = connection.fetch_arrow(
            f"SELECT {listed}, {rank} FROM {name} AS t WHERE t.rowid > $1", [pc.max(at).as_py()]
        )
        none = rows.slice(0, 0).column(storage.ROW_ID).combine_chunks()
        return Difference(none, send_order.mixed(added), answer)
    before = rows.append_column(_PLACE, at)
    connection.register(_BEFORE, before)
    columns = [column for column in table.columns if column.name in rows.column_names]
    differs = " OR ".join(["false", *(_differs(c) for c in columns)])
    gone = connection.fetch_arrow(
        f"SELECT b.{storage.ROW_ID} FROM {_BEFORE} AS b LEFT JOIN {name} AS t"
        f" ON t.rowid = b.{_PLACE} WHERE t.rowid IS NULL OR {differs}"
    )
    fresh = connection.fetch_arrow(
        f"SELECT {listed}, {send_order.rank([f'b.{_PLACE}', *send_order.shown(table)])}"
        f" FROM {name} AS t LEFT JOIN {_BEFORE} AS b"
        f" ON t.rowid = b.{_PLACE} WHERE b.{_PLACE} IS NULL OR {differs}"
    )
    return Difference(gone.column(0).combine_chunks(), send_order.mixed(fresh), answer)


def _differs(column: Column) -> str:
    name = quoted(column.name)
    return dry_run.differs(f"b.{name}", f"t.{name}", column.type)


def _answer(
    connection: LocalConnection,
    words: statement_parts.Words,
    table: Table,
    by_hash: constraint_check.Rules | None,
) -> Answer:
    """Run the statement: the rows that it returns, or how many it changed."""
    if by_hash is not None:
        rows, columns = conflicts.one_by_one(connection, words, table, by_hash)
    else:
        sql, values = words.text(0, len(words.tokens))
        rows, columns = conflicts.executed(connection, sql, values)
    if words.find("RETURNING") >= 0:
        return Answer(rows, columns, rows.num_rows)
    return Answer(affected=sum(rows.column(0).to_pylist()))
