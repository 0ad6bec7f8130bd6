"""INSERT of new rows: worked out locally on the empty declared table, then sealed and appended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword, quoted
from louver.trusted.executor import (
    attached_files,
    constraint_check,
    dry_run,
    federation,
    select,
    send_order,
    transaction,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import flow, statement_parts
from louver.trusted.executor.change.changing import change
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import Table

if TYPE_CHECKING:
    from louver.trusted.executor.change.constant_rows import Form

_SOURCE = "louver_source"
#: What stands in brackets behind a type; a value that is assigned gets it anyway.
_PRECISION = re.compile(r"\([\d, ]+\)")


@dataclass(slots=True)
class _Job:
    """One INSERT: its words, their pieces and its target."""

    words: statement_parts.Words
    parts: statement_parts.Insert
    table: Table
    rules: constraint_check.Rules

    def name(self) -> str:
        """The local table that takes the rows: one without references where there are any,
        for the tables that these point to are empty there.
        """
        if self.rules.without_foreign:
            return dry_run.stand_in(self.table)
        return self.table.local_name

    def require_exact(self, connection: LocalConnection, new_rows: pa.Table) -> None:
        """Raise where the rows that the local table took are others now."""
        connection.require_exact(self.name(), self.table, new_rows)

    def head(self) -> str:
        """INSERT INTO the table, with the columns as the user listed them."""
        listed, _ = self.words.text(self.parts.after_name, self.parts.source)
        return f"INSERT INTO {self.name()} {listed}"


def insert(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run an INSERT."""
    transaction.require_writable(context)
    words = statement_parts.words_of(text, tokens, parameters)
    statement_parts.require_named(context.catalog, words)
    parts = statement_parts.parse_insert(words)
    table = statement_parts.target(words, parts.verb, context.catalog)
    if table is not None and parts.alternative:
        from louver.trusted.executor.change import upserting

        lookup = upserting.planned(context, words, parts, table)
        if lookup is not None:
            verdict = flow.judged(context, words, table)
            answer = upserting.upsert(context, lookup, source_rows(context, words, parts), verdict)
            if lookup.form is not None and text.parameters:
                from louver.trusted.executor.change import repeated_changes

                repeated_changes.keep_upsert(context, words, text, table, lookup.form)
            elif text.parameters and spoken().reads_off:
                from louver.trusted.executor.change import repeated_changes

                repeated_changes.keep_judged_upsert(context, words, text, parts, table)
            return answer
    if table is None or parts.alternative or reads_elsewhere(context, words, parts):
        return change(context, text, tokens, parameters)
    clock = Clock()
    flow.require_insert(context, words, parts, table)
    _require_identities(context, words, parts, table)
    job = _Job(words, parts, table, constraint_check.rules(context, table))
    with clock.step("home"):
        known = _form(context, job)
        fresh = None if known is None else known.rows([parameters])
        answer = Answer()
        if fresh is None:
            fresh, answer = _rehearsed(context, job)
    if fresh.num_rows:
        from louver.trusted.executor.change.sending import send_new

        with clock.step("server"):
            send_new(context, table, fresh)
    if known is not None and text.parameters:
        from louver.trusted.executor.change import repeated_changes

        repeated_changes.keep_insert(context, text, table, known)
    elif text.parameters and spoken().reads_off:
        from louver.trusted.executor.change import repeated_changes

        repeated_changes.keep_judged(context, words, text, parts, table)
    answer.affected = fresh.num_rows
    answer.times_ms = clock.times_ms
    return answer


def _form(context: Context, job: _Job) -> Form | None:
    """The form of an INSERT of constants."""
    if not context.local.dialect.has_simple_terms:
        return None
    from louver.trusted.executor.change import constant_rows

    return constant_rows.form_of(
        job.words, job.parts, job.table, job.rules, context.local.arrow_field
    )


def _rehearsed(context: Context, job: _Job) -> tuple[pa.Table, Answer]:
    """The new rows as the local table takes them, and what RETURNING asks for."""
    words, parts, table = job.words, job.parts, job.table
    source, values, rows = _source(context, job)
    with constraint_check.rehearsal(context) as connection:
        if rows is not None and not rows.num_rows and spoken().fails_whole:
            # PostgreSQL computes constants when it plans, also those that no row gets.
            sql, own = words.text(0, len(words.tokens))
            connection.fetch_arrow(f"EXPLAIN {sql}", own)
        answer = _inserted(connection, job, source, values, rows)
        new_rows = connection.fetch_arrow(f"SELECT * FROM {job.name()}")
        job.require_exact(connection, new_rows)
        if rows is not None:
            sql, _ = words.text(parts.source, parts.source_end)
            new_rows = send_order.unordered(connection, table, sql, new_rows)
        return new_rows.select([column.name for column in table.columns]), answer


def insert_many(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameter_rows: Sequence[list[object]],
) -> Answer:
    """Run one INSERT … VALUES for many rows of parameters, sealed and sent at once.

    All rows are inserted or none.
    """
    if not parameter_rows:
        return Answer(affected=0)
    transaction.require_writable(context)
    if context.local.files.known:
        attached_files.require_readable(context, tokens)
    words = statement_parts.words_of(text, tokens, parameter_rows[0])
    statement_parts.require_named(context.catalog, words)
    parts = statement_parts.parse_insert(words)
    table = statement_parts.target(words, parts.verb, context.catalog)
    simple = words.keyword(parts.source) == "VALUES" and parts.verb == 0
    if (
        table is None
        or parts.alternative
        or not simple
        or parts.returning != parts.end
        or reads_elsewhere(context, words, parts)
    ):
        return _one_by_one(context, text, tokens, parameter_rows)
    flow.require_insert(context, words, parts, table)
    job = _Job(words, parts, table, constraint_check.rules(context, table))
    known = _form(context, job)
    fresh = None if known is None else known.rows(parameter_rows)
    if fresh is None:
        fresh = _rehearsed_many(context, job, parameter_rows)
    from louver.trusted.executor.change.sending import send_new

    send_new(context, table, fresh)
    return Answer(affected=fresh.num_rows)


def _rehearsed_many(
    context: Context, job: _Job, parameter_rows: Sequence[list[object]]
) -> pa.Table:
    """The new rows of all sets of parameters, as the local table takes them."""
    with constraint_check.rehearsal(context) as connection:
        if job.rules.without_foreign:
            connection.execute(job.rules.without_foreign)
        _all_values(connection, job, parameter_rows)
        new_rows = connection.fetch_arrow(f"SELECT * FROM {job.name()}")
        job.require_exact(connection, new_rows)
    return new_rows.select([column.name for column in job.table.columns])


def _one_by_one(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameter_rows: Sequence[list[object]],
) -> Answer:
    """Any other INSERT, row by row within a transaction."""
    own = not context.in_transaction
    if own:
        transaction.begin(context)
    affected, answer = 0, Answer()
    try:
        for parameters in parameter_rows:
            answer = context.run(text, parameters)
            affected += max(answer.affected, 0)
    except BaseException:
        if own:
            transaction.rollback(context)
        raise
    if own:
        transaction.commit(context)
    answer.affected = affected
    return answer


def _all_values(
    connection: LocalConnection, job: _Job, parameter_rows: Sequence[list[object]]
) -> None:
    """Fill the local table with every row of parameters, by columns where that is possible."""
    words, parts = job.words, job.parts
    source = words.tokens[parts.source : parts.source_end]
    places = [statement_parts.parameter_of(token) for token in source]
    bare = all(
        position is not None or keyword(token.text) in ("VALUES", "(", ")", ",")
        for position, token in zip(places, source, strict=True)
    )
    one_row = sum(token.text == "(" for token in source) == 1
    columns = _as_columns(parameter_rows, [p for p in places if p is not None])
    # DuckDB's type of a number depends on its size, and a union takes values by their types.
    unions = any("UNION(" in column.type for column in job.table.columns)
    if not spoken().has_simple_terms and columns is not None:
        columns = None if any(map(pa.types.is_string, columns.schema.types)) else columns
    if bare and one_row and columns is not None and not unions:
        connection.register(_SOURCE, columns)
        connection.execute(f"{job.head()} SELECT * FROM {_SOURCE}")
        return
    for parameters in parameter_rows:
        each = statement_parts.Words(words.plain, words.tokens, parameters)
        sql, values = each.text(parts.source, parts.source_end)
        connection.execute(f"{job.head()} {sql}", values)


def _as_columns(rows: Sequence[list[object]], places: Sequence[int]) -> pa.Table | None:
    """Parameters turned by 90 degrees; None where a column has no type of its own in Arrow or
    where DuckDB would bind its values otherwise.
    """
    arrays: list[Any] = []
    for position in places:
        values = [row[position] for row in rows]
        kinds = {type(value) for value in values} - {type(None)}
        if len(kinds) != 1 or not kinds <= {bool, int, float, str, bytes}:
            return None
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, OverflowError):
            return None
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _require_identities(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> None:
    """Raise PostgreSQL's error for values of columns that are GENERATED ALWAYS AS IDENTITY, where
    the rows go into a table that stands in for this one, whose columns are not.
    """
    if not spoken().reads_off or not constraint_check.rules(context, table).without_foreign:
        return
    head = [words.keyword(position) for position in range(parts.after_name, parts.source)]
    if "OVERRIDING" in head and "USER" in head:
        raise errors.make("sql.unsupported", statement="OVERRIDING USER VALUE beside a foreign key")
    sql, values = words.text(0, len(words.tokens))
    context.local.statements.bind(sql, values)


def reads_elsewhere(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert
) -> bool:
    """Whether tables are read other than by one query as the source: by subqueries in VALUES
    or RETURNING. The tables are then filled as for any other change.
    """
    if "select" in words.names(parts.returning, parts.end):
        return True
    if words.keyword(parts.source) == "VALUES":
        names = words.names(parts.source, parts.end) | words.names(0, parts.verb)
        mentioned = context.local.temporary.mentioned(names)
        return mentioned or bool(statement_parts.tables_named(context.catalog, names))
    return parts.verb > 0 and words.keyword(parts.source) == "WITH"


def _source(context: Context, job: _Job) -> tuple[str, list[object], pa.Table | None]:
    """The source as DuckDB runs it on the binder, and the rows of a query that read
    tables of the server, which then stand in its place.
    """
    words, parts = job.words, job.parts
    rows = source_rows(context, words, parts)
    if rows is None:
        before, first = words.text(0, parts.verb)
        own, second = words.text(parts.source, parts.source_end, len(first))
        return f"{before} {job.head()} {own}", [*first, *second], None
    if not parts.by_name:
        rows = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
    return f"{job.head()} SELECT {_items(context, job, rows)} FROM {_SOURCE}", [], rows


def _items(context: Context, job: _Job, rows: pa.Table) -> str:
    """The columns of a source as they are assigned. Where an engine reads strings of no type of
    their own as values of the columns that they go to, a source that was read apart has texts.
    """
    given = constant_columns(job)
    if not context.local.dialect.reads_off or len(given) != rows.num_columns:
        return "*"
    known = context.local.schema.columns(job.table.schema, job.table.name)
    types = {column.name: column.type for column in known}
    items = []
    for name, column in zip(rows.column_names, given, strict=True):
        type_ = _PRECISION.sub("", types[column])
        is_text = pa.types.is_string(rows.schema.field(name).type)
        casts = is_text and not pa.types.is_string(context.local.arrow_field(type_).type)
        items.append(f"{quoted(name)}::{type_}" if casts else quoted(name))
    return ", ".join(items)


def constant_columns(job: _Job) -> tuple[str, ...]:
    """The columns that the source of an INSERT gives."""
    from louver.trusted.executor.change import constant_rows

    return constant_rows.listed(job.words, job.parts, job.table) or ()


def source_rows(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert
) -> pa.Table | None:
    """The rows of a source that reads tables of the server or temporary ones; None of another."""
    names = words.names(parts.source, parts.source_end) | words.names(0, parts.verb)
    every = statement_parts.reached(context.catalog, names)[0]
    attached = bool(context.attached) and federation.mentions(context, words.tokens)
    elsewhere = attached or context.local.temporary.mentioned(every)
    if not elsewhere and not statement_parts.tables_named(context.catalog, names):
        return None
    if context.local.dialect.reads_off:
        # What the query gives apart, strings of no type among it, may not go where it is to go.
        context.local.statements.bind(*words.text(0, len(words.tokens)))
    before, first = words.text(0, parts.verb)
    own, second = words.text(parts.source, parts.source_end, len(first))
    rows = select.query(context, f"{before} {own}", [*first, *second]).rows
    if rows is None:
        raise errors.make("internal", detail="a query without rows")
    return rows


def _inserted(
    connection: LocalConnection,
    job: _Job,
    sql: str,
    values: list[object],
    source: pa.Table | None,
) -> Answer:
    """Insert the rows into the local table, as they will be stored: cast, with defaults, checked.
    The answer is what RETURNING asks for.
    """
    if job.rules.without_foreign:
        connection.execute(job.rules.without_foreign)
    if source is not None:
        connection.register(_SOURCE, source)
    returning, more = job.words.text(job.parts.returning, job.parts.end, len(values))
    columns, rows = connection.fetch_described(f"{sql} {returning}", [*values, *more])
    return Answer(rows, columns) if returning else Answer()
