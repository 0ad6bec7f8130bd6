"""ALTER TABLE t SET COUNTED and SET NOT COUNTED: whether a table's rows are counted."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import storage, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import encrypting
from louver.trusted.executor.schema import head
from louver.trusted.vault import row_id_ranges


def read(start: head.Head, tokens: Sequence[Token]) -> bool | None:
    """What the statement says of its table; None where it is another ALTER."""
    words = [keyword(token.text) for token in tokens[start.end :]]
    if start.kind != "TABLE" or words not in (["SET", "COUNTED"], ["SET", "NOT", "COUNTED"]):
        return None
    return len(words) == 2


def change(context: Context, start: head.Head, counted: bool) -> Answer:
    """Count the rows that are there, and from now on each change; or no longer."""
    table = context.catalog.named(*start.target)
    if table is None:
        if start.conditional:
            return Answer()
        raise errors.make("table.missing", table=".".join(start.name))
    encrypting.require_finished(context.catalog, table)
    if not context.backend.concurrent:
        raise errors.make("sql.unsupported", statement="SET COUNTED with this kind of database")
    if table.counted == counted:
        return Answer()
    with transaction.writing(context) as catalog:
        working = catalog.tables[table.key]
        if counted:
            # No row comes between: who writes conflicts with the version that is saved here.
            rows = storage.whole(context.storage, working, [])
            row_id_ranges.count(working, rows.column(storage.ROW_ID))
        else:
            working.runs, working.runs_known = [], False
        working.counted = counted
    return Answer()
