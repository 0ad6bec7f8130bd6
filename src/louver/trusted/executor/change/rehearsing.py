"""A change whose effect is read off by a text for each form of change: the tables are filled, the
statement runs, and rows are compared with those of before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from louver.names import keyword, quoted
from louver.trusted.executor import constraint_check, dry_run, send_order, storage
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import conflicts, rowids, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.executor.row_writer import hides_rows
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.vault.catalog import Column, Table

_BEFORE = "louver_before"
_PLACE = "louver_place"


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
