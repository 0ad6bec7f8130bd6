"""Changes that come again with other values (`repeated`), without a word of theirs being read, and
in as few statements of the server's as they need.

INSERT of constants reads no rows but the parents of its own, and relies on no bounds. UPDATE and
DELETE of the rows that have certain keys, and INSERT with a way out for conflicts, read these rows
within the transaction that changes them, behind the session's token: while that is there, only
amendments of the catalog have been saved (docs/decisions/0020), and looking keys up relies on
nothing that these add.
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
    cardinality,
    chosen_rows,
    constraint_check,
    key_rows,
    planned_reads,
    point_reads,
    repeated,
    row_writer,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import flow, known, row_by_row, sending, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.state import Verdict
from louver.trusted.executor.storage import translate_reply_errors
from louver.trusted.planner.ir import ChangePlan, Plan
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog, Table
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.executor.change import (
        constant_rows,
        constant_upserts,
        judged_rows,
        judged_upserts,
    )

Decide = Callable[[Table], Difference | None]
"""Reads rows of a table, and says what becomes of them; None where only the general way tells."""
Judge = Callable[
    [Context, statement_parts.Words, ChangePlan, pa.Table, Sequence[str], bool], Difference | None
]
"""Says what becomes of rows by a change of this plan, with these literals, and whether all that the
server decided of the rows has been decided again.
"""


def keep_insert(context: Context, text: lexer.Text, table: Table, form: constant_rows.Form) -> None:
    """Remember an INSERT of constants."""

    def again(context: Context, parameters: list[object]) -> Answer | None:
        return _inserted(context, table.key, form, parameters)

    repeated.keep(context, text, table, again)


def keep_judged(
    context: Context, words: statement_parts.Words, text: lexer.Text,
    parts: statement_parts.Insert, table: Table,
) -> None:  # fmt: skip
    """Remember an INSERT of constants that the engine has just run, for where no transaction is
    open: there the language says what each statement sees.
    """
    from louver.trusted.executor.change import judged_rows

    if context.in_transaction or repeated.find(context.state, text) is not None:
        return
    rules = constraint_check.rules(context, table)
    form = judged_rows.form_of(context, words, parts, table, rules)
    if form is None:
        return

    def again(context: Context, parameters: list[object]) -> Answer | None:
        return _inserted(context, table.key, form, parameters)

    repeated.keep(context, text, table, again, alone=True)


def keep_judged_upsert(
    context: Context, words: statement_parts.Words, text: lexer.Text,
    parts: statement_parts.Insert, table: Table,
) -> None:  # fmt: skip
    """Remember such an INSERT with a way out for conflicts, in the same way: in a transaction a key
    that another client has written is a race, and the statement runs again.
    """
    from louver.trusted.executor.change import judged_upserts

    if context.in_transaction or repeated.find(context.state, text) is not None:
        return
    form = judged_upserts.form_of(context, words, parts, table)
    if form is not None:
        keep_upsert(context, words, text, table, form, alone=True)


def keep_upsert(
    context: Context, words: statement_parts.Words, text: lexer.Text, table: Table,
    form: constant_upserts.Form | judged_upserts.Form, *, alone: bool = False,
) -> None:  # fmt: skip
    """Remember an INSERT of constants with a way out for conflicts."""
    verdict = flow.verdict(context, words, table)
    rules = constraint_check.rules(context, table)
    if verdict is None or verdict.all_met or rules.foreign or rules.children:
        return
    if row_writer.hides_rows(table):
        return

    def again(context: Context, parameters: list[object]) -> Answer | None:
        return _upserted(context, table.key, form, verdict, parameters)

    repeated.keep(context, text, table, again, alone=alone)


def keep_change(
    context: Context, words: statement_parts.Words, text: lexer.Text, plan: ChangePlan
) -> None:
    """Remember an UPDATE or DELETE, if it is of the rows that have certain keys, and no engine
    need decide it.
    """
    judge = _judge(context, words, plan) if _is_simple(context, plan) else None
    if judge is None:
        return
    table, shape = context.catalog.by_id(plan.target), lexer.shape(words.plain, words.tokens)
    tokens = tuple(words.tokens)
    item = _Change(words.plain, tokens, shape, judge, plan, context.catalog)

    def again(context: Context, parameters: list[object]) -> Answer | None:
        return _changed(context, table.key, item, parameters)

    repeated.keep(context, text, table, again)


@dataclass(slots=True)
class _Change:
    """The text of an UPDATE or DELETE, with its tokens, its shape, what decides it, and the plan
    that is known to be simple under a catalog.
    """

    plain: str
    tokens: tuple[Token, ...]
    shape: lexer.Shape
    judge: Judge
    plan: ChangePlan
    catalog: Catalog
    points: point_reads.Points = field(default_factory=point_reads.Points)

    def fits(self, context: Context, plan: ChangePlan) -> bool:
        """Whether a plan is simple: with values of other types it is another one."""
        if plan is not self.plan or context.catalog is not self.catalog:
            if not _is_simple(context, plan):
                return False
            if context.catalog is not self.catalog:
                self.points.clear()
            self.plan, self.catalog = plan, context.catalog
        return True


def _judge(context: Context, words: statement_parts.Words, plan: ChangePlan) -> Judge | None:
    """What decides a change with other values; None where only the general way does."""
    if context.local.dialect.reads_off:
        from louver.trusted.executor.change import judged_changes

        form = judged_changes.form_of(context, words, plan)
        if form is not None:
            return form.decided
        return None if plan.stand_in else judged_changes.rehearsed
    terms = row_by_row.terms_of(context, words, plan)
    return None if terms is None else partial(row_by_row.decided_by, terms)


def _is_simple(context: Context, plan: ChangePlan) -> bool:
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


def _inserted(
    context: Context, key: tuple[str, str], form: constant_rows.Form | judged_rows.Form,
    parameters: list[object],
) -> Answer | None:  # fmt: skip
    table, rows, clock = context.catalog.tables.get(key), form.rows([parameters]), Clock()
    if table is None or rows is None:
        return None
    try:
        with clock.step("server"):
            sending.send_new(context, table, rows)
    except errors.OperationalError as error:
        if error.code != "catalog.conflict" or context.in_transaction:
            raise
        return None
    return Answer(affected=rows.num_rows, times_ms=clock.times_ms)


def _upserted(
    context: Context, key: tuple[str, str], form: constant_upserts.Form | judged_upserts.Form,
    verdict: Verdict, parameters: list[object],
) -> Answer | None:  # fmt: skip
    table = context.catalog.tables.get(key)
    new = None if context.local.collated() else form.rows.rows([parameters])
    if table is None or new is None:
        return None

    def decided(table: Table) -> Difference | None:
        tags = key_rows.tags_of(context, table, new)
        rows = key_rows.with_tags(context, table, tags, more=flow.again(verdict))
        return form.decided(new, rows, parameters)

    return _at_once(context, table, decided)


def _changed(
    context: Context, key: tuple[str, str], item: _Change, parameters: list[object]
) -> Answer | None:
    table = context.catalog.tables.get(key)
    words = statement_parts.Words(item.plain, item.tokens, parameters)
    shape = lexer.with_parameters(item.shape, parameters)
    held = known.holding(context, words, item.shape.key, shape)
    if table is None or held is None or not item.fits(context, held.plan):
        return None
    plan = held.plan
    if plan.rows is None:
        return None
    chosen = _chosen(context, plan.rows, item.points, shape, parameters)
    if chosen is None:
        return None
    flow.require_again(context, table, held.verdict)
    new = context.record(plan.rows, shape, item.tokens)
    notices = cardinality.warned(new, context.catalog)

    def decided(table: Table) -> Difference | None:
        rows, again = chosen(table)
        return item.judge(context, words, plan, rows, shape.literals, again)

    answer = _at_once(context, table, decided)
    if answer is not None:
        answer.notices = notices
    return answer


def _chosen(
    context: Context, plan: Plan, points: point_reads.Points, shape: lexer.Shape,
    parameters: list[object],
) -> Callable[[Table], tuple[pa.Table, bool]] | None:  # fmt: skip
    """What reads the rows of a change, and says whether all that the server decided of them was
    decided again; None where only the general way reads them.
    """
    looked_at, point = points.of(plan)
    if point is not None and point.engine is context.engine:
        tags = point.tags(context, shape, parameters)
        if tags is not None:
            return partial(_looked_up, context, plan, point, tags, shape)
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
    context: Context, plan: Plan, point: point_reads.PointRead, tags: Any, shape: lexer.Shape,
    table: Table,
) -> tuple[pa.Table, bool]:  # fmt: skip
    """The same of rows that are looked up by one call each way. Where that does not take what the
    server answered, the general way says what is wrong with it.
    """
    with translate_reply_errors():
        rows = point.rows(context, tags)
    if rows is not None:
        return rows, True
    (remote,) = plan.remotes
    request = cast(Statement, context.storage.request(remote, shape.literals))
    return chosen_rows.rows(context, table, remote, request, shape.literals), False


class _NothingError(Exception):
    """A transaction has nothing to write."""


def _at_once(context: Context, table: Table, decide: Decide) -> Answer | None:
    """Read rows, and change them, in one transaction behind the session's token. None where that
    did nothing, because only the general way tells what to do, or another client was faster.
    """
    clock, done, own = Clock(), None, not context.in_transaction
    try:
        with transaction.writing_rows(context, table) as catalog, clock.step("server"):
            held = catalog.tables[table.key]
            context.state.untouched = True  # reading does not end the user's transaction
            done = decide(held)
            context.state.untouched = False
            idle = done is None or not (len(done.gone) or done.fresh.num_rows)
            if idle and own:
                raise _NothingError
            if done is not None and not idle:
                row_writer.replace(context, held, done.fresh, done.gone)
    except _NothingError:
        pass
    except errors.Error as error:
        if not own:
            if done is None or not isinstance(error, errors.IntegrityError):
                raise
            raise row_writer.explained(context, table, [done.fresh], error) from None
        if not _is_for_long_way(error):
            raise
        return None
    if done is None:
        return None
    done.answer.times_ms = clock.times_ms
    return done.answer


def _is_for_long_way(error: errors.Error) -> bool:
    """Whether another client may have caused an error: a statement that runs again, under the
    newest catalog, says what is wrong.
    """
    if isinstance(error, errors.IntegrityError | errors.VerificationError):
        return True
    return error.code == "catalog.conflict"
