"""Changes that come again with other values (`repeated`), without a word of theirs being read, and
in as few statements of the server's as they need.

INSERT of constants reads no rows but the parents of its own, and relies on no bounds. UPDATE and
DELETE of the rows that have certain keys, and INSERT with a way out for conflicts, read these rows
within the transaction that changes them, behind the session's token: while that is there, only
amendments of the catalog have been saved (docs/decisions/0020), and looking keys up relies on
nothing that these add.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.trusted.executor import (
    cardinality,
    constraint_check,
    key_rows,
    point_reads,
    repeated,
    row_writer,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import (
    direct_changes,
    flow,
    known,
    repeated_rows,
    row_by_row,
    sending,
    statement_parts,
)
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.raw_rows import OneRow, RawRow, table_of
from louver.trusted.executor.state import Verdict
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

if TYPE_CHECKING:
    from louver.trusted.executor.change import (
        constant_rows,
        constant_upserts,
        judged_changes,
        judged_rows,
        judged_upserts,
    )

Decide = Callable[[Table], Difference | OneRow | None]
"""Reads rows of a table, and says what becomes of them; None where only the general way tells."""


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

    if repeated.is_kept(context, text):
        return
    rules = constraint_check.rules(context, table)
    form = judged_rows.form_of(context, words, parts, table, rules)
    if form is None:
        return

    direct = direct_changes.Direct(table.key, form, len(text.parameters))

    def again(context: Context, parameters: list[object]) -> Answer | None:
        if form.returned is not None or form.draws:
            return _inserted(context, table.key, form, parameters)
        answer = direct.run(context, parameters)
        return answer or _learnt(context, direct, _inserted(context, table.key, form, parameters))

    repeated.keep(context, text, table, again, alone=True, form=form)


def keep_judged_upsert(
    context: Context, words: statement_parts.Words, text: lexer.Text,
    parts: statement_parts.Insert, table: Table,
) -> None:  # fmt: skip
    """Remember such an INSERT with a way out for conflicts, in the same way: in a transaction a key
    that another client has written is a race, and the statement runs again.
    """
    from louver.trusted.executor.change import judged_upserts

    if context.in_transaction or repeated.find(context, text) is not None:
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
    before = repeated.find(context, text)
    form = None if before is None or not repeated.holds(context) else before.form
    if isinstance(form, repeated_rows.Change) and form.fits(context, plan):
        return  # with these values another way ran it: what is known of its look-ups stays
    judge = _judge(context, words, plan) if repeated_rows.is_simple(context, plan) else None
    if judge is None:
        return
    table, shape = context.catalog.by_id(plan.target), lexer.shape(words.plain, words.tokens)
    tokens = tuple(words.tokens)
    limits = () if plan.rows is None else point_reads.limits_of(context, plan.rows, shape)
    item = repeated_rows.Change(
        words.plain, tokens, shape, judge[0], plan, context.catalog, judge[1], limits
    )

    direct = direct_changes.Direct(table.key, item, len(text.parameters))

    def again(context: Context, parameters: list[object]) -> Answer | None:
        if judge[1] is not None and judge[1].returned is not None:
            return _changed(context, table.key, item, parameters)
        answer = direct.run(context, parameters)
        return answer or _learnt(context, direct, _changed(context, table.key, item, parameters))

    repeated.keep(context, text, table, again, form=item)


def _learnt(
    context: Context, direct: direct_changes.Direct, answer: Answer | None
) -> Answer | None:
    if answer is not None:
        direct.learn(context)
    return answer


def _judge(
    context: Context, words: statement_parts.Words, plan: ChangePlan
) -> tuple[repeated_rows.Judge, judged_changes.Form | None] | None:
    """What decides a change with other values, and a form that does; None where only the general
    way does.
    """
    if context.local.dialect.reads_off:
        from louver.trusted.executor.change import judged_changes

        form = judged_changes.form_of(context, words, plan)
        if form is not None:
            return form.decided, form
        return None if plan.stand_in else (judged_changes.rehearsed, None)
    terms = row_by_row.terms_of(context, words, plan)
    return None if terms is None else (partial(row_by_row.decided_by, terms), None)


def _inserted(
    context: Context, key: tuple[str, str], form: constant_rows.Form | judged_rows.Form,
    parameters: list[object],
) -> Answer | None:  # fmt: skip
    table, clock = context.catalog.tables.get(key), Clock()
    rows = None if table is None else _new(context, table, form, parameters)
    if table is None or rows is None:
        return None
    try:
        with clock.step("server"):
            sending.send_new(context, table, rows)
    except errors.OperationalError as error:
        if error.code != "catalog.conflict" or context.in_transaction:
            raise
        return None
    count = 1 if isinstance(rows, RawRow) else rows.num_rows
    returned = getattr(form, "returned", None)
    if returned is None:
        return Answer(affected=count, times_ms=clock.times_ms)
    shown = returned.of(rows.rows() if isinstance(rows, RawRow) else rows)
    return Answer(shown, list(returned.described), count, times_ms=clock.times_ms)


def _new(
    context: Context, table: Table, form: constant_rows.Form | judged_rows.Form,
    parameters: list[object],
) -> pa.Table | RawRow | None:  # fmt: skip
    """The new rows; None where only the engine tells."""
    from louver.trusted.executor.change import judged_rows

    if isinstance(form, judged_rows.Form):
        values = form.raw(parameters)
        if values is not None and context.storage.takes_row(table, values):
            return RawRow(values, lambda: table_of(context.local.arrow_field, table, values))
    return form.rows([parameters])


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
    context: Context, key: tuple[str, str], item: repeated_rows.Change, parameters: list[object]
) -> Answer | None:
    if not point_reads.are_within(item.limits, parameters):
        return None
    table = context.catalog.tables.get(key)
    words = statement_parts.Words(item.plain, item.tokens, parameters)
    shape = lexer.with_parameters(item.shape, parameters)
    held = known.holding(context, words, item.shape.key, shape)
    if table is None or held is None or not item.fits(context, held.plan):
        return None
    plan = held.plan
    if plan.rows is None:
        return None
    chosen = repeated_rows.reader_of(context, plan, item, shape, parameters)
    if chosen is None:
        return None
    flow.require_again(context, table, held.verdict)
    new = context.record(plan.rows, shape, item.tokens)
    notices = cardinality.warned(new, context.catalog)

    def decided(table: Table) -> Difference | OneRow | None:
        rows, again = chosen(table)
        if isinstance(rows, OneRow):
            return rows
        return item.judge(context, words, plan, rows, shape.literals, again)

    answer = _at_once(context, table, decided)
    if answer is not None:
        answer.notices = notices
    return answer


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
            if isinstance(done, OneRow):
                row_writer.change_row(context, held, done)
            elif done is not None and (len(done.gone) or done.fresh.num_rows):
                row_writer.replace(context, held, done.fresh, done.gone)
            elif own:
                raise _NothingError
    except _NothingError:
        pass
    except errors.Error as error:
        if not own:
            if done is None or not isinstance(error, errors.IntegrityError):
                raise
            raise row_writer.explained(context, table, _fresh(done), error) from None
        if not _is_for_long_way(error):
            raise
        return None
    if done is None:
        return None
    done.answer.times_ms = clock.times_ms
    return done.answer


def _fresh(done: Difference | OneRow) -> list[pa.Table]:
    if isinstance(done, OneRow):
        return [] if done.fresh is None else [done.fresh.rows()]
    return [done.fresh]


def _is_for_long_way(error: errors.Error) -> bool:
    """Whether another client may have caused an error: a statement that runs again, under the
    newest catalog, says what is wrong.
    """
    if isinstance(error, errors.IntegrityError | errors.VerificationError):
        return True
    return error.code == "catalog.conflict"
