"""Rows of one table that a server is asked for at once, opened, for a change."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver import errors
from louver.trusted.executor import storage
from louver.trusted.executor.context import Context
from louver.trusted.planner.ir import RemoteQuery
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
        expected = len(row_ids.unique())
        raise errors.make("row.missing", table=table.label, expected=expected, found=len(row_ids))
    names = [output.name for output in remote.outputs if output.kind != "absent"]
    return opened.select(names).append_column(storage.ROW_ID, row_ids)
