"""Rows that a server is asked for at once, opened, for a change."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver import errors
from louver.trusted.executor import keys_read, storage
from louver.trusted.executor.context import Context
from louver.trusted.planner.ir import ChangePlan, RemoteQuery, RowFilter
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement


def rows(
    context: Context, table: Table, remote: RemoteQuery, request: Statement, literals: Sequence[str]
) -> pa.Table:
    """The rows of a table that a query gives, each once, with their numbers (column
    ``louver_row_id``).
    """
    with storage.translate_reply_errors():
        reply = context.engine.query(request)
        opened = context.columns.open(
            remote, {table.id: table}, reply, literals, context.local.arrow_field
        )
        row_ids = reply.column(f"r{remote.sources[0].slot}")
    if len(row_ids) > 1 and len(row_ids.unique()) != len(row_ids):
        raise errors.make("row.repeated", table=table.label, row="?")
    names = [output.name for output in remote.outputs if output.kind != "absent"]
    return opened.select(names).append_column(storage.ROW_ID, row_ids)


def held(
    context: Context, plan: ChangePlan, tables: Sequence[Table], literals: Sequence[str]
) -> dict[int, pa.Table]:
    """The rows of tables that a change needs, by their ids: those that its plan chooses, or all."""
    results: dict[int, pa.Table] = {}
    answers: dict[tuple[str, str], tuple[list[tuple[str, str]], pa.Table]] = {}
    for table in tables:
        chosen = results[table.id] = _rows_of(context, plan, table, literals, answers)
        types = [(column.name, column.type) for column in table.columns]
        answers[table.schema, table.name] = (types, chosen)
    return results


def _rows_of(
    context: Context,
    plan: ChangePlan,
    table: Table,
    literals: Sequence[str],
    answers: storage.Answers,
) -> pa.Table:
    """The rows of one table; ``answers`` are those that were read before."""
    if plan.rows is None:
        return storage.whole(context.storage, table)
    remote = next(r for r in plan.rows.remotes if r.sources[0].table == table.id)
    pairs = zip(table.columns, remote.outputs, strict=True)
    names = [column.name for column, output in pairs if output.kind != "absent"]
    narrows = remote.where or remote.probes
    request = context.storage.request(remote, literals) if narrows else None
    if isinstance(request, keys_read.Asked):
        request = context.storage.narrowing(literals)(remote, request, answers)
    if isinstance(request, keys_read.Asked):
        remote, request = request.remote, request.statement
    if not remote.where or not isinstance(request, Statement):
        condition = RowFilter(remote.sources[0], remote.where, tuple(literals), remote.lookup)
        return storage.whole(context.storage, table, names, condition)
    return rows(context, table, remote, request, literals).select([*names, storage.ROW_ID])
