"""UPDATE, DELETE, MERGE and INSERT with a way out for conflicts.

The tables that the statement names are filled locally with their rows, the user's own statement
runs there under all constraints, and what differs afterwards is what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import (
    cardinality,
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
from louver.trusted.executor.local import arrow_values, exact
from louver.trusted.executor.row_writer import hides_rows, note_touched, send
from louver.trusted.planner.ir import ChangePlan, Plan, RowFilter
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

_BEFORE = "louver_before"
_PLACE = "louver_place"
#: Types of which equal values are the same value.
_EXACT = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
    "DATE",
    "TIMESTAMP",
    "BLOB",
    "UUID",
)


@dataclass(slots=True)
class _Difference:
    """What a rehearsed statement did: numbers of rows that go, rows that come, its answer."""

    gone: pa.Array
    fresh: pa.Table
    answer: Answer


def change(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run UPDATE, DELETE, MERGE or INSERT … ON CONFLICT."""
    transaction.require_writable(context)
    words = statement_parts.words_of(text, tokens, parameters)
    statement_parts.require_named(context.catalog, words)
    verb = statement_parts.verb_place(words)
    table = statement_parts.target(words, verb, context.catalog)
    if table is None:
        return _not_ours(context, words)
    if words.keyword(verb) == "DELETE" and _is_everything(words, verb):
        return empty(context, words, table)
    return _run(context, words, verb, table)


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
    return empty(context, words, table)


def empty(context: Context, words: statement_parts.Words, table: Table) -> Answer:
    """Delete all rows; where other tables refer to them, as any other change."""
    if constraint_check.rules(context, table).children:
        return _run(context, words, 0, table)
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


def _run(context: Context, words: statement_parts.Words, verb: int, table: Table) -> Answer:
    if words.keyword(verb) in statement_parts.VERBS:
        flow.require(context, words, table)
    return _executed(context, words, planned(context, words, verb, table))


def planned(context: Context, words: statement_parts.Words, verb: int, table: Table) -> ChangePlan:
    """Which tables a change of a table needs, and which rows of them. Nothing is sent."""
    own = fold(table.name)
    # Said again, the name may mean a table or view of another schema.
    once = sum(fold(token.text) == own for token in words.tokens) == 1
    alone = once or not statement_parts.is_shared(context.catalog, table)
    names = words.names() - ({own} if alone and words.keyword(verb) != "TRUNCATE" else set())
    read = statement_parts.tables_named(context.catalog, names)
    every = statement_parts.reached(context.catalog, words.names())[0]
    mentioned = context.local.temporary.mentioned(every)
    rows, text = (None, "")
    if not read and not mentioned:
        rows, text = narrowing.rows_of(context, words, table)
    involved = [table] if rows is not None else _involved(context, table, read)
    return ChangePlan(
        table.id,
        tuple(other.id for other in read),
        tuple(other.id for other in involved),
        frozenset(every),
        rows,
        text,
    )


def _executed(context: Context, words: statement_parts.Words, plan: ChangePlan) -> Answer:
    """Run a planned change: rows in, the dry run, rows out."""
    clock, local, notices = Clock(), context.local.temporary, list[str]()
    if plan.rows is not None:
        with clock.step("open layers"):
            notices = _prepare(context, words, plan.rows)
    # Opening a layer makes another catalog.
    catalog = context.catalog
    table, read = catalog.by_id(plan.target), [catalog.by_id(other) for other in plan.read]
    involved = [catalog.by_id(other) for other in plan.rehearsed]
    with clock.step("server"):
        held = {other.id: _rows(context, words, plan, other) for other in involved}
    name = dry_run.stand_in(table) if plan.stand_in else table.local_name

    def rehearsed(connection: duckdb.DuckDBPyConnection) -> _Difference:
        shown = rowids.shown(connection, words, table, read)
        rules = constraint_check.rules(context, table)
        by_hash = rules if conflicts.decide_by_hash(shown, table, rules) else None
        results = _rehearse(connection, shown, table, name, held[table.id], by_hash)
        exact.require(connection, name, table, results.fresh)
        return results

    def filled(connection: duckdb.DuckDBPyConnection) -> None:
        if plan.stand_in:
            connection.execute(plan.stand_in)
            dry_run.fill_stand_in(context, connection, table, held[table.id])
        else:
            for other in involved:
                dry_run.fill(context, connection, other, held[other.id])
        local.fill(connection, context.local.workspace, plan.names)

    with clock.step("home"):
        done = constraint_check.rehearsed(context, filled, rehearsed)
    if 0 < len(done.gone) < table.row_count:
        note_touched(context, table, done.gone)
    if len(done.gone) or done.fresh.num_rows:
        with clock.step("write"):
            send(context, table, done.fresh, done.gone)
    done.answer.times_ms, done.answer.notices = clock.times_ms, notices
    return done.answer


def _prepare(context: Context, words: statement_parts.Words, rows: Plan) -> list[str]:
    """Record what reading the rows shows, then open the layers that it needs; sentences for the
    user.
    """
    new = select.record(context, rows, words.shape(), words.tokens)
    notices = cardinality.warned(new, context.catalog)
    with storage.translate_reply_errors():
        return notices + onion_adjustment.require(context, rows.opens)


def _rows(
    context: Context, words: statement_parts.Words, plan: ChangePlan, table: Table
) -> pa.Table:
    """The rows of a table for the dry run."""
    if plan.rows is None or table.id != plan.target:
        return storage.whole(context.storage, table)
    (remote,) = plan.rows.remotes
    pairs = zip(table.columns, remote.outputs, strict=True)
    names = [column.name for column, output in pairs if output.kind != "absent"]
    condition = RowFilter(remote.sources[0], remote.where, words.shape().literals)
    return storage.whole(context.storage, table, names, condition)


def _involved(context: Context, table: Table, read: Sequence[Table]) -> list[Table]:
    """The target, what is read, what refers to the target, and all that these refer to."""
    children = [
        context.catalog.table(*position)
        for position in constraint_check.rules(context, table).children
    ]
    return dry_run.with_parents(
        context, [table, *read, *(other for other in children if other is not None)]
    )


def _rehearse(
    connection: duckdb.DuckDBPyConnection,
    words: statement_parts.Words,
    table: Table,
    name: str,
    rows: pa.Table,
    by_hash: constraint_check.Rules | None,
) -> _Difference:
    """Run the statement and see what it changed. Where the table hides which rows are touched,
    every row goes and comes again: DuckDB moves an updated row to the end where a column is UNIQUE
    or a LIST, and an old row that got the values that it had would tell that these are equal.
    """
    row_source = f"SELECT rowid FROM {name}"
    at = (
        None if table.column("rowid") else connection.execute(row_source).to_arrow_table().column(0)
    )
    answer = _answer(connection, words, table, by_hash)
    listed = ", ".join(f"t.{quoted(column.name)}" for column in table.columns)

    def all_anew() -> _Difference:
        rank = send_order.rank(send_order.shown(table))
        after = connection.execute(f"SELECT {listed}, {rank} FROM {name} AS t")
        return _Difference(
            rows.column(storage.ROW_ID).combine_chunks(),
            send_order.mixed(after.to_arrow_table()),
            answer,
        )

    if at is None or (hides_rows(table) and not _only_adds(words)):
        return all_anew()
    before = rows.append_column(_PLACE, at if rows.num_rows else pa.nulls(0, pa.int64()))
    arrow_values.register(connection, _BEFORE, before)
    columns = [column for column in table.columns if column.name in rows.column_names]
    differs = " OR ".join(["false", *(_differs(c.name, c.type) for c in columns)])
    gone = connection.execute(
        f"SELECT b.{storage.ROW_ID} FROM {_BEFORE} AS b LEFT JOIN {name} AS t"
        f" ON t.rowid = b.{_PLACE} WHERE t.rowid IS NULL OR {differs}"
    ).to_arrow_table()
    fresh = connection.execute(
        f"SELECT {listed}, {send_order.rank([f'b.{_PLACE}', *send_order.shown(table)])}"
        f" FROM {name} AS t LEFT JOIN {_BEFORE} AS b"
        f" ON t.rowid = b.{_PLACE} WHERE b.{_PLACE} IS NULL OR {differs}"
    ).to_arrow_table()
    return _Difference(gone.column(0).combine_chunks(), send_order.mixed(fresh), answer)


def _only_adds(words: statement_parts.Words) -> bool:
    """Whether a statement can change no old row, whatever the values are."""
    changing = ("UPDATE", "DELETE", "REPLACE")
    return words.find("INSERT") >= 0 and all(words.find(word) < 0 for word in changing)


def _differs(name: str, type_: str) -> str:
    """Where two values are not the very same: -0.0 and 0.0, or 'a' and 'A' under a collation,
    are equal and yet two values.
    """
    before, after = f"b.{quoted(name)}", f"t.{quoted(name)}"
    if type_ in _EXACT or type_.startswith("DECIMAL"):
        return f"{before} IS DISTINCT FROM {after}"
    if type_ == "VARCHAR":
        return f"encode({before}) IS DISTINCT FROM encode({after})"
    return f"encode({before}::VARCHAR) IS DISTINCT FROM encode({after}::VARCHAR)"


def _answer(
    connection: duckdb.DuckDBPyConnection,
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
