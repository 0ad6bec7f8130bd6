"""The rows of an UPDATE or DELETE by keys that comes again: read by one call each way, and changed
at once where there is one row and its raw values tell what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.trusted.executor import (
    chosen_rows,
    constraint_check,
    planned_reads,
    point_reads,
    row_writer,
)
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.raw_rows import OneRow
from louver.trusted.executor.storage import translate_reply_errors
from louver.trusted.executor.table_basis import are_same
from louver.trusted.planner.ir import ChangePlan, Plan, RemoteQuery
from louver.trusted.planner.split import table_scans
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog, Table
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.executor.change import judged_changes

Judge = Callable[
    [Context, statement_parts.Words, ChangePlan, pa.Table, Sequence[str], bool], Difference | None
]
"""Says what becomes of rows by a change of this plan, with these literals, and whether all that the
server decided of the rows has been decided again.
"""


@dataclass(slots=True)
class Change:
    """The text of an UPDATE or DELETE, with its tokens, its shape, what decides it, and the plan
    that is known to be simple under a catalog.
    """

    plain: str
    tokens: tuple[Token, ...]
    shape: lexer.Shape
    judge: Judge
    plan: ChangePlan
    catalog: Catalog
    #: what decides it of one row of raw values, where codes decide its condition
    form: judged_changes.Form | None
    limits: point_reads.Limits
    points: point_reads.Points = field(default_factory=point_reads.Points)
    _decided: tuple[RemoteQuery | None, bool] = (None, False)

    def is_decided(self, remote: RemoteQuery) -> bool:
        """Whether codes decide all of its condition in a plan."""
        if self._decided[0] is not remote:
            form = self.form
            known = form is not None and table_scans.decided_by_codes(remote, form.where)
            self._decided = remote, known
        return self._decided[1]

    def is_current(self, context: Context) -> bool:
        """Whether the newest catalog says of its tables what its own one does."""
        read = [] if self.plan.rows is None else planned_reads.tables_of(self.plan.rows)
        return are_same(self.catalog, context.catalog, [self.plan.target, *read])

    def fits(self, context: Context, plan: ChangePlan) -> bool:
        """Whether a plan is simple: with values of other types it is another one."""
        if plan is not self.plan or context.catalog is not self.catalog:
            if not is_simple(context, plan):
                return False
            if not self.is_current(context):
                self.points.clear()
            self.plan, self.catalog = plan, context.catalog
        return True


def is_simple(context: Context, plan: ChangePlan) -> bool:
    """Whether a change reads rows by keys, whatever the catalog has been amended by, and breaks
    no rule about other rows.
    """
    if (
        plan.rows is None
        or not planned_reads.by_keys(plan.rows)
        or not planned_reads.reads_once(context.catalog, plan.rows)
    ):
        return False
    table = context.catalog.by_id(plan.target)
    rules = constraint_check.rules(context, table)
    return not (rules.foreign or rules.children or row_writer.hides_rows(table))


def reader_of(
    context: Context, change: ChangePlan, item: Change, shape: lexer.Shape,
    parameters: list[object],
) -> Callable[[Table], tuple[pa.Table | OneRow, bool]] | None:  # fmt: skip
    """What reads the rows of a change, or at once does it to the only one, and says whether all
    that the server decided of them was decided again; None where only the general way reads them.
    """
    plan, points = cast(Plan, change.rows), item.points
    looked_at, point = points.of(plan)
    if point is not None and point.engine is context.engine:
        tags = point.tags(context, shape, parameters)
        if tags is not None:
            return partial(_looked_up, context, item, point, tags, shape, parameters)
    (remote,) = plan.remotes
    try:
        request = context.storage.request(remote, shape.literals)
    except errors.DataError:
        return None  # a constant has no value of the type that it is compared as
    if not isinstance(request, Statement):
        return None

    def chosen(table: Table) -> tuple[pa.Table, bool]:
        rows = chosen_rows.rows(context, table, remote, request, shape.literals)
        if not looked_at:
            points.note(plan, point_reads.prepared(context, plan, shape, parameters, request))
        return rows, False

    return chosen


def _looked_up(
    context: Context, item: Change, point: point_reads.PointRead, tags: Any, shape: lexer.Shape,
    parameters: list[object], table: Table,
) -> tuple[pa.Table | OneRow, bool]:  # fmt: skip
    """The same of rows that are looked up by one call each way. Where that does not take what the
    server answered, the general way says what is wrong with it.
    """
    with translate_reply_errors():
        opened = point.opened(context, tags)
    only = opened.raw() if opened is not None and item.is_decided(point.remote) else None
    if only is not None and item.form is not None:
        change = item.form.decided_of_row(context, table, parameters, point.names, only)
        if change is not None:
            return change, True
    if opened is not None:
        return point.table(opened), True
    remote = point.remote
    request = cast(Statement, context.storage.request(remote, shape.literals))
    return chosen_rows.rows(context, table, remote, request, shape.literals), False
