"""SELECT: plan, record the leakage, ask the server, open, finish."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    repeated,
    schema_queries,
    seen_state,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock, Described
from louver.trusted.executor.binding import Bound
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local import exact
from louver.trusted.executor.local.local import Answers
from louver.trusted.executor.plan_leakage import facts_of, joinable_kinds
from louver.trusted.executor.schema import sequences
from louver.trusted.executor.storage import translate_reply_errors
from louver.trusted.planner.ir import Code, Plan
from louver.trusted.planner.operators import keys
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import lists_values, pivots
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write import sequence_draws
from louver.trusted.planner.write.reads import Reads
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.facts import condition_of
from louver.trusted.vault.scheme import has_shares

Home = tuple[str, str]
Rows = tuple[list[tuple[str, str]], pa.Table]
MOST_ROWS = 2_048
"""Rows that are read as they came; DuckDB knows more of those in a table, such as their order."""
_NO_TYPE = "42704"
_CONSTANT = re.compile(r"⟪[0-9]+⟫|[0-9]+")
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
    if not (plan.names or pivots(tokens)):
        # Arrow does not count rows without columns.
        raise errors.make("sql.unsupported", statement="A query without columns")
    if context.state.read_only:
        transaction.require_drawing(context, tokens)
    secret = plan.reads_secret or context.state.origins.is_secret
    if secret and sequence_draws.draws(context.catalog, tokens):
        sequence_draws.require(
            Reads(context.catalog, parse(text.plain), tokens, None, context.state.origins), tokens
        )
    notices = cardinality.warned(record(context, plan, shape, tokens), context.catalog)
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
    if reads_once(context, plan):
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
    sent = [statement.sql for statement in ready.statements]
    if text.parameters and plan.columns:
        _remember(context, text, tokens, plan)
    return Answer(rows, columns, -1, times, sent, ready.home_sql, notices)


def _remember(context: Context, text: lexer.Text, tokens: Sequence[Token], plan: Plan) -> None:
    """Remember a query that just ran by a plan, if it is of the rows that have certain keys, and no
    engine finishes it.
    """
    draws = sequence_draws.draws(context.catalog, tokens)
    if draws or pivots(tokens) or not _is_look_up(context, plan):
        return
    table = context.catalog.by_id(plan.remotes[0].sources[0].table)
    reader = _Reader(text, tokens, plan, context.catalog)

    def again(context: Context, parameters: list[object]) -> Answer | None:
        return _read_again(context, reader, parameters)

    repeated.keep(context, text, table, again)


@dataclass(slots=True)
class _Reader:
    """A query that is known by its text, and what it is known to be a look-up by."""

    text: lexer.Text
    tokens: Sequence[Token]
    plan: Plan
    catalog: Catalog

    def fits(self, context: Context, plan: Plan) -> bool:
        """Whether a plan is a look-up: with values of other types it is another one."""
        if plan is not self.plan or context.catalog is not self.catalog:
            if not _is_look_up(context, plan):
                return False
            self.plan, self.catalog = plan, context.catalog
        return True


def _is_look_up(context: Context, plan: Plan) -> bool:
    if not (plan.columns and plan.alone and by_keys(plan)):
        return False
    return reads_once(context, plan) and not any(map(exact.may_change, plan.types))


def _read_again(context: Context, reader: _Reader, parameters: list[object]) -> Answer | None:
    """Run such a query with other values. The version of the catalog is read as for any other, but
    that both go together where it was read just before.
    """
    before, clock = context.catalog, Clock()
    beside = not context.in_transaction and _goes_beside(context)
    if not context.in_transaction and not beside:
        seen_state.refresh(context)
        if context.catalog is not before:
            return None
    with clock.step("plan"):
        plan, shape = context.planner.plan(
            reader.text, parameters, before, context.planning, reader.tokens
        )
    if not reader.fits(context, plan):
        return None
    notices = cardinality.warned(record(context, plan, shape, reader.tokens), before)
    (remote,) = plan.remotes
    try:
        request = context.storage.request(remote, shape.literals)
        if beside:
            context.store.versions.expect(before.version)
        rows = context.storage.answer(remote, request, shape.literals, clock)
    except errors.OperationalError as error:
        if context.in_transaction or error.code != "catalog.conflict":
            raise
        return None
    except errors.DataError:
        return None  # a constant has no value of the type that it is compared as
    except errors.VerificationError:
        if context.in_transaction:
            raise
        return None  # what another client has changed meanwhile may look like tampering
    with clock.step("finish"):
        done = finished_alone(context, plan, rows, shape.literals)
    if done is None:
        return None
    columns = list(zip(plan.names, plan.types, strict=True))
    times = {**context.planner.times_ms, **clock.times_ms}
    return Answer(done, columns, -1, times, [request.sql], "", notices)


def _goes_beside(context: Context) -> bool:
    """Whether a look-up may go together with the look at the catalog's version."""
    store = context.store
    known = context.backend.catalog_counts and store.knows(context.catalog.version)
    return known and store.versions.is_recent


def reads_once(context: Context, plan: Plan) -> bool:
    """Whether a plan reads one table, once, and relies on no bounds and no open layers, so that
    its answer is right whatever another client does meanwhile.
    """
    if len(plan.remotes) > 1 or plan.opens or (plan.remotes and not plan.alone):
        return False
    if any(remote.lookup is not None for remote in plan.remotes):
        return False
    ids = (source.table for remote in plan.remotes for source in remote.sources)
    return not any(has_shares(context.catalog.by_id(table)) for table in ids)


def by_keys(plan: Plan) -> bool:
    """Whether rows are read of one table by tags of constants as they are written or bound, and by
    nothing else.
    """
    if len(plan.remotes) != 1 or plan.opens or plan.remotes[0].lookup is not None:
        return False
    conditions = plan.remotes[0].where
    given = [code for node in conditions for code in keys.codes_of(node)]
    return bool(conditions) and all(map(keys.looks_up, conditions)) and all(map(_is_plain, given))


def _is_plain(code: Code) -> bool:
    """Whether a constant is not worked out, which may depend on the time."""
    parts = (code, *code.more)
    return all(_CONSTANT.fullmatch(part.text.strip("()")) is not None for part in parts)


def _asked(context: Context, plan: Plan, ready: Bound, clock: Clock) -> dict[Home, Rows]:
    """What the servers answer, opened, by the local table that it fills."""
    answers: dict[Home, Rows] = {}
    narrow = context.storage.narrowing(ready.literals)
    for remote, statement in zip(plan.remotes, ready.statements, strict=True):
        with clock.step("bind"):
            narrowed = narrow(remote, statement, answers)
        rows = context.storage.answer(remote, narrowed, ready.literals, clock)
        types = [(o.name, o.type) for o in remote.outputs if o.kind != "raw"]
        answers[remote.home] = (types or [("louver_c0", "INTEGER")], rows)
    return answers


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


def finished_alone(
    context: Context, plan: Plan, rows: pa.Table, literals: Sequence[str]
) -> pa.Table | None:
    """The result of a plan whose columns are those of its only table, where no engine need decide
    which rows are in it; else None.
    """
    if not _have_types(context, plan, rows, plan.columns):
        return None
    (remote,) = plan.remotes
    tables = {ref.table: context.catalog.by_id(ref.table) for ref in remote.sources}
    decided = context.columns.decided_again(remote, tables, rows, literals)
    if decided is None:
        return None
    return pa.Table.from_arrays([decided.column(name) for name in plan.columns], list(plan.names))


def _have_types(context: Context, plan: Plan, rows: pa.Table, names: Sequence[str]) -> bool:
    """Whether there are columns of these names, in the types of the plan's."""
    wanted = [context.local.arrow_field(type_).type for type_ in plan.types]
    known = dict(zip(rows.schema.names, rows.schema.types, strict=True))
    return [known.get(name) for name in names] == wanted


def _finished(context: Context, plan: Plan, ready: Bound, answers: Answers) -> pa.Table:
    """The result of a plan, from its opened answers: as they stand where they need no more, on the
    rows as they came where nothing else is read, in the workspace otherwise.
    """
    local = context.local
    if plan.alone and len(answers) == 1 and not any(map(exact.may_change, plan.types)):
        ((columns, rows),) = answers.values()
        opened = _as_opened(context, plan, ready, rows)
        if opened is not None:
            return opened
        if rows.num_rows <= MOST_ROWS:
            try:
                home = ready.home_sql, ready.home_parameters
                return local.finish_over(plan.alone, columns, rows, *home, plan.types)
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


def _as_opened(context: Context, plan: Plan, ready: Bound, rows: pa.Table) -> pa.Table | None:
    """The answer itself, where its columns are the result's, in their types; else None."""
    if plan.columns:
        return finished_alone(context, plan, rows, ready.literals)
    match = _OPENED.fullmatch(ready.home_sql)
    names = match[1].split(", ") if match is not None else []
    if not names or not _have_types(context, plan, rows, names):
        return None
    return rows.select(names)


def stated(context: Context, plan: Plan, shape: lexer.Shape) -> list[Fact]:
    """What a plan shows with the numbers of its statement."""
    known = context.ledger.facts(joinable_kinds()) if plan.opens else ()
    condition = ""
    if any(leak.counted for leak in plan.leaks):
        ids = dict.fromkeys(s.table for r in plan.remotes for s in (*r.sources, *r.inner))
        tables = [context.catalog.by_id(table) for table in ids]
        parts = (shape.key, *shape.literals)
        condition = condition_of(parts, tables, context.storage.stamp)
    return facts_of(plan, context.catalog, known, condition)


def record(context: Context, plan: Plan, shape: lexer.Shape, tokens: Sequence[Token]) -> list[Fact]:
    """Write what the plan reveals into the ledger; if that fails, nothing is sent."""
    facts = stated(context, plan, shape)
    if not facts:
        return []
    return context.ledger.record(facts, f"{keyword(tokens[0].text)} ({plan.kind})")


def keep(context: Context, plan: Plan, clock: Clock) -> None:
    """Have the server keep the powers of S that the plan needs, where that pays."""
    if context.in_transaction or context.engine.in_transaction or not context.state.writable:
        return
    for remote in plan.remotes:
        materialized_terms.keep(context, remote, clock)
