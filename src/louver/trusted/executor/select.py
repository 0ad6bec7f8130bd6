"""SELECT: plan, record the leakage, ask the server, open, finish."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import keyword
from louver.trusted.executor import (
    binding,
    cardinality,
    federation,
    materialized_terms,
    onion_adjustment,
    point_reads,
    reading_again,
    repeated,
    schema_queries,
    seen_state,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock, Described
from louver.trusted.executor.binding import Bound
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import exact
from louver.trusted.executor.local.local import Answers
from louver.trusted.executor.planned_reads import (
    finished_alone,
    have_types,
    is_look_up,
    reads_once,
)
from louver.trusted.executor.schema import sequences
from louver.trusted.executor.storage import translate_reply_errors
from louver.trusted.planner.ir import Plan, RemoteQuery
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import lists_values, pivots
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write import sequence_draws
from louver.trusted.planner.write.reads import Reads

Home = tuple[str, str]
Rows = tuple[list[tuple[str, str]], pa.Table]
MOST_ROWS = 2_048
"""Up to so many rows are read as they came where they are taken row by row, and more where they are
taken together: DuckDB knows more of those in a table, such as how many there are.
"""
_NO_TYPE = "42704"
_OPENED = re.compile(r"SELECT ((?:louver_c\d+(?:, )?)+) FROM louver_rows")


def select(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run one query."""
    if not context.attached:
        return _select(context, text, tokens, parameters)
    with federation.over(context, tokens) as other:
        return _select(other, text, tokens, parameters)


def query(context: Context, sql: str, parameters: Sequence[object] = ()) -> Answer:
    """Run a SELECT of the session's own."""
    (text,) = lexer.split(sql)
    return select(context, text, lexer.tokens(text.plain), list(parameters))


def described(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameters: list[object],
    *,
    plan: bool = True,
) -> Described:
    """What is known of a query before it runs. Without ``plan`` it is only bound."""
    if not context.in_transaction:
        seen_state.refresh(context, tokens)
    known = not pivots(tokens) or lists_values(text.plain, tokens)
    if keyword(tokens[0].text) in ("DESCRIBE", "DESC"):
        return Described(context.local.describe(f"FROM ({text.home})"))
    if not known or not plan or schema_queries.asks_schema(context, text, tokens):
        with federation.over(context, tokens) as other:
            values = home_values(text, parameters)
            return Described(other.local.describe(text.home, values) if known else None)
    with federation.over(context, tokens) as other:
        chosen, _ = other.plan(text, parameters)
        columns = list(zip(chosen.names, chosen.types, strict=True))
        return Described(columns, dict(other.planner.times_ms))


def _select(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    if schema_queries.asks_schema(context, text, tokens):
        if _has_no_columns(context, text, parameters):
            return _counted(context, text, parameters)
        return schema_queries.answer(context, text, tokens, parameters)
    try:
        return _planned(context, text, tokens, parameters, context.planning)
    except _NoValueError:
        # Whether that is an error depends on the rows that DuckDB compares it with.
        without = replace(context.planning, compares_codes=False)
        return _planned(context, text, tokens, parameters, without)


class _NoValueError(Exception):
    """A constant has no value of the type that it is compared as."""


def _planned(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameters: list[object],
    settings: PlannerSettings,
) -> Answer:
    """Run one query by the plan that it has under some settings."""
    clock = Clock()
    with clock.step("plan"):
        plan, shape = context.planner.plan(text, parameters, context.catalog, settings, tokens)
    if text.parameters and settings.compares_codes:
        limits = point_reads.limits_of(context, plan, lexer.shape(text.plain, tokens))
        if not point_reads.are_within(limits, parameters):
            raise _NoValueError
    if not (plan.names or pivots(tokens)):
        return _counted(context, text, parameters)
    if context.state.read_only:
        transaction.require_drawing(context, tokens)
    secret = plan.reads_secret or context.state.origins.is_secret
    if secret and sequence_draws.draws(context.catalog, tokens):
        sequence_draws.require(
            Reads(context.catalog, parse(text.plain), tokens, None, context.state.origins), tokens
        )
    notices = cardinality.warned(context.record(plan, shape, tokens), context.catalog)
    with clock.step("open layers"), translate_reply_errors():
        if plan.opens:
            notices += onion_adjustment.require(context, plan.opens)
    keep(context, plan, clock)
    with clock.step("bind"):
        try:
            ready = binding.bind(context, plan, shape, text, parameters)
        except errors.DataError:
            if not settings.compares_codes:
                raise
            raise _NoValueError from None
    if reads_once(context.catalog, plan):
        answers = _asked(context, plan, ready, clock)
    else:
        with seen_state.same_state(context):
            answers = _asked(context, plan, ready, clock)
    with clock.step("finish"):
        rows = _finished(context, plan, ready, answers)
    if sequences.has_any(context.catalog):
        transaction.keep_sequences(context, tokens)
    columns = list(zip(plan.names, plan.types, strict=True))
    if pivots(tokens):
        columns = context.local.last_columns
    rows = rows.rename_columns([name for name, _ in columns])
    times = {**context.planner.times_ms, **clock.times_ms}
    counts = [answers[remote.home][1].num_rows for remote in plan.remotes]
    sent = ready.sent(context.storage, plan, counts)
    if text.parameters and plan.alone:
        _remember(context, text, tokens, ready)
    return Answer(rows, columns, -1, times, sent, ready.home_sql, notices)


def _has_no_columns(context: Context, text: lexer.Text, parameters: list[object]) -> bool:
    if not context.local.dialect.has_own_statements:
        return False
    return not context.local.describe(text.home, home_values(text, parameters))


def _counted(context: Context, text: lexer.Text, parameters: list[object]) -> Answer:
    """The rows of a query without columns, which Arrow does not count."""
    if not context.local.dialect.has_own_statements:
        raise errors.make("sql.unsupported", statement="A query without columns")
    home, plain = (f"SELECT count(*) FROM ({t}\n) AS louver_rows" for t in (text.home, text.plain))
    counting = lexer.Text(home, plain, text.parameters)
    answer = _select(context, counting, lexer.tokens(counting.plain), parameters)
    rows = pa.table({}) if answer.rows is None else answer.rows
    return replace(answer, rows=pa.table({}), columns=[], affected=rows.column(0)[0].as_py())


def _remember(context: Context, text: lexer.Text, tokens: Sequence[Token], ready: Bound) -> None:
    """Remember a query that just ran by a plan, if it is of the rows that have certain keys, and no
    engine finishes it; or of the rows that have certain codes, which the general way runs again.
    """
    plan = ready.plan
    if sequence_draws.draws(context.catalog, tokens) or pivots(tokens):
        return
    if not is_look_up(context.catalog, plan):
        if context.local.dialect.reads_off:
            _note(context, text, tokens, ready)
        return
    table = context.catalog.by_id(plan.remotes[0].sources[0].table)
    limits = point_reads.limits_of(context, plan, lexer.shape(text.plain, tokens))
    reader = reading_again.Reader(text, tokens, plan, context.catalog, limits)

    def again(context: Context, parameters: list[object]) -> Answer | None:
        return reading_again.read_again(context, reader, parameters)

    repeated.keep(context, text, table, again, form=reader)


def _note(context: Context, text: lexer.Text, tokens: Sequence[Token], ready: Bound) -> None:
    """Remember a query of rows with certain codes for who runs it without the general way."""
    from louver.trusted.executor import equal_rows

    form = equal_rows.noted(context, text, tokens, ready)
    if form is not None:
        repeated.keep(context, text, form.table, lambda *_: None, form=form)


def _asked(context: Context, plan: Plan, ready: Bound, clock: Clock) -> dict[Home, Rows]:
    """What the servers answer, opened, by the local table that it fills."""
    answers: dict[Home, Rows] = {}
    narrow = context.storage.narrowing(ready.literals)
    for remote, statement in zip(plan.remotes, ready.statements, strict=True):
        with clock.step("bind"):
            narrowed = narrow(remote, statement, answers)
        rows = context.storage.answer(remote, narrowed, ready.literals, clock)
        types = [(o.name, o.type) for o in remote.outputs if o.kind != "raw"]
        rows = _declared(context, remote, rows)
        answers[remote.home] = (types or [("louver_c0", "INTEGER")], rows)
    return answers


def _declared(context: Context, remote: RemoteQuery, rows: pa.Table) -> pa.Table:
    """Rows whose fields say which columns are declared NOT NULL, where a local engine computes
    less for knowing it: what PostgreSQL does not compute cannot fail.
    """
    table = context.catalog.by_id(remote.sources[0].table)
    is_table = remote.home == (table.schema, table.name) and len(remote.sources) == 1
    if not (context.local.dialect.reads_off and is_table) or remote.grouped:
        return rows
    read = {output.name for output in remote.outputs if output.kind != "absent"}
    strict = {c.name for c in table.columns if not c.nullable and c.name in read}
    if not strict:
        return rows
    fields = [field.with_nullable(field.name not in strict) for field in rows.schema]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def changes(tokens: Sequence[Token]) -> str:
    """The verb of a change behind WITH; "" for a query."""
    depth = 0
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        depth += (token.text == "(") - (token.text == ")")
        word = keyword(token.text)
        if depth == 0 and word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            return word
    return ""


def _finished(context: Context, plan: Plan, ready: Bound, answers: Answers) -> pa.Table:
    """The result of a plan, from its opened answers: as they stand where they need no more, on the
    rows as they came where nothing else is read, in the workspace otherwise.
    """
    local = context.local
    if plan.once and len(answers) == 1 and not any(map(exact.may_change, plan.types)):
        ((columns, rows),) = answers.values()
        opened = as_opened(context, plan, ready, rows) if plan.alone else None
        if opened is not None:
            return opened
        many = rows.num_rows > MOST_ROWS
        if not many if plan.alone else many and not local.dialect.reads_off:
            try:
                home = ready.home_sql, ready.home_parameters
                return local.finish_over(plan.once, columns, rows, *home, plan.types)
            except (errors.Error, pa.ArrowException):
                # The text may name its table in a way that only a table has, or DuckDB not read
                # such a stream; if it is wrong, the message is to be about the user's own text.
                pass
    try:
        return local.finish(answers, ready.home_sql, ready.home_parameters, plan.types)
    except errors.Error as error:
        # A row of a table is a type where that table is declared, which the workspace does not do.
        if error.sqlstate != _NO_TYPE or not local.statements.names_row_type(error):
            raise
        if not (answers or local.temporary.names):
            return local.ask_schema(ready.home_sql, ready.home_parameters)
        statement = "The type of a table's rows beside rows of others (use a type of its own)"
        raise errors.make("sql.unsupported", statement=statement) from None


def as_opened(context: Context, plan: Plan, ready: Bound, rows: pa.Table) -> pa.Table | None:
    """The answer itself, where its columns are the result's, in their types; else None."""
    if plan.columns:
        return finished_alone(context, plan, rows, ready.literals)
    match = _OPENED.fullmatch(ready.home_sql)
    names = match[1].split(", ") if match is not None else []
    if not names or not have_types(context, plan, rows, names):
        return None
    return rows.select(names)


def keep(context: Context, plan: Plan, clock: Clock) -> None:
    """Have the server keep the powers of S that the plan needs, where that pays."""
    if context.in_transaction or context.engine.in_transaction or not context.state.writable:
        return
    for remote in plan.remotes:
        materialized_terms.keep(context, remote, clock)
