"""SELECT … FOR UPDATE and the like: the rows that the query gives are locked on the server.

The server does not know which rows they are, so they are read and decided on this machine, and
locked by their numbers. Where another transaction has changed a row since it was read, the server
refuses the lock (40001), so that a row that is locked is as it was read; `snapshots` says when the
statement runs again then. With SKIP LOCKED, rows that others hold are left out, and the next ones
are tried, until LIMIT is met.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.executor import chosen_rows, federation, storage, transaction
from louver.trusted.executor import select as queries
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import changing, flow, read_off, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.changed_rows import MetRows
from louver.trusted.executor.postgres import lock_clause
from louver.trusted.executor.postgres.lock_clause import Clause, Numbered, Query
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.executor.row_writer import Removed
from louver.trusted.executor.server_rows import MOST_BOUND
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import fact, with_condition
from louver.wire.messages import Statement

_ATTEMPTS = 100
_LOST = ("server.conflict", "catalog.conflict")


def select(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run a query that locks rows."""
    transaction.require_writable(context)
    if any(item.kind == "VIEW" for item in context.catalog.objects):
        from louver.trusted.executor.postgres import locked_views

        text, tokens = locked_views.written_out(context, text, tokens)
    words = statement_parts.words_of(text, tokens, parameters)
    # What PostgreSQL does not lock, such as groups, is its own error.
    whole = Numbered(words, text.parameters)
    context.local.statements.bind(whole.text(), whole.values)
    query = lock_clause.cut(words)
    return within(context, lambda: locked(context, query, text.parameters))


def within(context: Context, run: Callable[[], Answer]) -> Answer:
    """Run what locks rows, within the open transaction or one of its own: then the locks end with
    the statement, which others may wait for.
    """
    return run() if context.in_transaction else _by_itself(context, run)


def _by_itself(context: Context, run: Callable[[], Answer]) -> Answer:
    for attempt in range(_ATTEMPTS):
        transaction.begin(context)
        try:
            answer = run()
            transaction.commit(context)
            return answer
        except BaseException as error:
            if context.in_transaction:
                transaction.rollback(context)
            lost = isinstance(error, errors.OperationalError) and error.code in _LOST
            if not lost or attempt + 1 == _ATTEMPTS:
                raise
    raise errors.make("catalog.conflict")


def locked(context: Context, query: Query, keys: Sequence[int | str]) -> Answer:
    """The rows of a query, which are locked now; ``keys`` are those of its placeholders."""
    clock, readable = Clock(), query.readable()
    words, shape = readable.core, readable.core.shape()
    tree, named = lock_clause.sources(readable)
    tables = {alias: _table(context, node.db, node.name) for alias, node in named}
    if not tables:
        sent = Numbered(words, keys)
        return queries.query(context, sent.text(), sent.values)
    _require_known(context, words)
    aliases_locked = query.clause.names or tuple(tables)
    _judge(context, readable, [tables[alias] for alias in aliases_locked])
    plan = _planned(context, readable, tree, [*tables.values()])
    with clock.step("open layers"):
        notices = changing.prepare(context, words, shape, plan.rows) if plan.rows else []
    involved = [context.catalog.by_id(other) for other in plan.rehearsed]
    with clock.step("server"):
        held = chosen_rows.held(context, plan, involved, shape.literals)
    with clock.step("home"), context.local.rehearsal() as connection:
        filled = {t.id: read_off.filled_of(connection, plan, t, held) for t in involved}
        aliases = [(alias, filled[tables[alias].id]) for alias in aliases_locked]
        sent = Numbered(query.core, keys)
        text = sent.text(0, query.from_), sent.text(query.from_)
        met = context.local.met_by(connection, [*filled.values()], text, sent.values, aliases)
    row_ids = [
        held[tables[alias].id].column(ROW_ID).combine_chunks().take(numbers)
        for alias, numbers in zip(aliases_locked, met.met, strict=True)
    ]
    with clock.step("lock"):
        own = [context.catalog.by_id(tables[alias].id) for alias in aliases_locked]
        chosen = _locked(context, query, met, list(zip(own, row_ids, strict=True)), keys)
    rows = met.rows.take(chosen)
    ids = [(t.id, each.take(chosen).to_pylist()) for t, each in zip(own, row_ids, strict=True)]
    alive = lambda first: _alive(context, ids, first, rows.num_rows)  # noqa: E731
    return Answer(rows, met.columns, -1, clock.times_ms, notices=notices, alive=alive)


def _alive(
    context: Context, held: Sequence[tuple[int, list[int]]], first: int, last: int
) -> list[int]:
    """Which rows from one on are as they were locked: a row that its own transaction has changed
    has another number since.
    """
    numbers, removed = list(range(first, last)), context.state.cache(Removed).by_table
    for table, ids in held:
        gone = removed.get(table, set()).intersection(ids[number] for number in numbers)
        if gone:
            # Unless they are back since a savepoint.
            rows = storage.whole(context.storage, context.catalog.by_id(table), [])
            gone -= set(rows.column(ROW_ID).to_pylist())
        numbers = [number for number in numbers if ids[number] not in gone]
    return numbers


def _table(context: Context, schema: str, name: str) -> Table:
    table = context.catalog.named(schema, name)
    if table is None:
        refuse("SELECT FOR UPDATE of anything but tables")
    return table


def _require_known(context: Context, words: statement_parts.Words) -> None:
    statement_parts.require_named(context.catalog, words)
    every = statement_parts.reached(context.catalog, words.names())[0]
    if context.local.temporary.mentioned(every) or federation.mentions(context, words.tokens):
        refuse("SELECT FOR UPDATE beside temporary or attached tables")


def _judge(context: Context, query: Query, tables: Sequence[Table]) -> None:
    """Which rows are locked depends on the query, as with a DELETE of them: the same may be known
    of it, and is said in the ledger.
    """
    for table in tables:
        changing.require_shown(table)
        plain = f"DELETE FROM {table.local_name} WHERE EXISTS ({query.without})"
        words = statement_parts.Words(plain, lexer.tokens(plain), query.core.parameters)
        flow.require(context, words, table)


def _planned(
    context: Context, query: Query, tree: exp.Select, tables: Sequence[Table]
) -> ChangePlan:
    """Which rows are read: those that the query may give, or all of what it names."""
    from louver.trusted.executor.change import narrowing

    words = query.core
    read = statement_parts.tables_named(context.catalog, words.names())
    rows = narrowing.rows_of_query(context, tree, words, read)
    if rows is None:
        involved = [table.id for table in read]
    else:
        involved = [remote.sources[0].table for remote in rows.remotes]
    names = statement_parts.reached(context.catalog, words.names())[0]
    target = tables[0]
    stand_in = read_off.empty_copy(target) if rows is not None else ""
    others = tuple(table.id for table in read)
    return ChangePlan(
        target.id, others, tuple(involved), frozenset(names), rows, stand_in, (0, 0), None, False
    )


def _locked(
    context: Context,
    query: Query,
    met: MetRows,
    row_ids: Sequence[tuple[Table, pa.Array]],
    keys: Sequence[int | str],
) -> pa.Array:
    """The numbers of the rows of the answer whose rows could be locked, within LIMIT and OFFSET;
    no more are locked than these need.
    """
    limit = _number(context, query, query.limit, "LIMIT", keys)
    skipped = _number(context, query, query.offset, "OFFSET", keys) or 0
    most = met.rows.num_rows if limit is None else skipped + limit
    numbers = [(table, ids.to_pylist()) for table, ids in row_ids]
    free = [set[int]() for _ in numbers]
    chosen, position = list[int](), 0
    while limit != 0 and position < met.rows.num_rows and len(chosen) < most:
        step = most - len(chosen)
        alive = list(range(position, min(position + step, met.rows.num_rows)))
        position += step
        for (table, ids), known in zip(numbers, free, strict=True):
            wanted = {ids[row] for row in alive} - known
            known |= lock(context, table, sorted(wanted), query.clause)
            alive = [row for row in alive if ids[row] in known]
        chosen += alive
    return pa.array(chosen[skipped:most], pa.int64())


def lock(context: Context, table: Table, row_ids: list[int], clause: Clause) -> set[int]:
    """Lock rows on the server; which of them are locked now."""
    if not row_ids:
        return set()
    columns = [column for column in table.columns if column.encrypted]
    if columns:
        facts = with_condition([fact("rows.lock", table, columns)], secrets.token_hex(8))
        context.ledger.record(facts, f"a lock of rows of {table.label}")
    how = f"FOR {clause.strength} {clause.wait}".rstrip()
    few = len(row_ids) <= MOST_BOUND
    numbers = {} if few else {"louver_locked": pa.table({"row_id": pa.array(row_ids, pa.int64())})}
    sql = context.backend.lock_rows(table, len(row_ids) if few else 0, "".join(numbers), how)
    try:
        statement = Statement(sql, tuple(row_ids) if few else (), "write", numbers)
        locked = set(context.engine.query(statement).column(0).to_pylist())
    except errors.Error as error:
        if error.code == "server.locked" and clause.wait == "NOWAIT":
            message = f'could not obtain lock on row in relation "{table.name}"'
            raise said("55P03", message) from error
        raise
    if not locked <= {*row_ids}:
        raise errors.make("reply.format", detail="rows that were not asked for are locked")
    if clause.wait != "SKIP LOCKED" and len(locked) < len(row_ids):
        raise errors.make("catalog.conflict")
    return locked


def _number(
    context: Context, query: Query, piece: str, what: str, keys: Sequence[int | str]
) -> int | None:
    """The value of LIMIT or OFFSET, None of none."""
    if not piece:
        return None
    words = statement_parts.Words(piece, lexer.tokens(piece), query.core.parameters)
    if "select" in {fold(token.text) for token in words.tokens}:
        refuse(f"SELECT FOR UPDATE with a query in {what}")
    sent = Numbered(words, keys)
    rows = context.local.statements.values([f"({sent.text()})::bigint"], sent.values)
    number = rows.column(0)[0].as_py()
    if number is not None and number < 0:
        raise said("2201W" if what == "LIMIT" else "2201X", f"{what} must not be negative")
    return None if number is None else int(number)
