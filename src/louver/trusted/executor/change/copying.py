"""COPY: files are read and written by the local DuckDB, never by the server."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import quoted
from louver.trusted.executor import constraint_check, dry_run, select
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

_ROWS = "louver_copy"
_COUNT = [("Count", "BIGINT")]


def copy(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run COPY … FROM or COPY … TO."""
    words = statement_parts.words_of(text, tokens, parameters)
    if words.keyword(1) == "(":
        return _query_to_file(context, words)
    if words.keyword(1) == "FROM":
        raise errors.make("sql.unsupported", statement="COPY FROM DATABASE")
    schema, name, end = statement_parts.qualified(words, 1)
    position = end
    while position < len(words.tokens) and words.keyword(position) not in ("FROM", "TO"):
        position += 1
    table = context.catalog.named(schema, name)
    listed, _ = words.text(end, position)
    if words.keyword(position) == "TO":
        source = f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)
        items = listed.strip().removeprefix("(").removesuffix(")") or "*"
        rows = select.query(context, f"SELECT {items} FROM {source}").rows
        return _to_file(context, words, position, rows)
    if table is None:
        raise errors.make("table.missing", table=name)
    return _from_file(context, words, table, listed, position)


def _query_to_file(context: Context, words: statement_parts.Words) -> Answer:
    depth, position = 0, 1
    while position < len(words.tokens):
        depth += (words.keyword(position) == "(") - (words.keyword(position) == ")")
        position += 1
        if depth == 0:
            break
    sql, values = words.text(2, position - 1)
    return _to_file(context, words, position, select.query(context, sql, values).rows)


def _to_file(
    context: Context, words: statement_parts.Words, to: int, rows: pa.Table | None
) -> Answer:
    if rows is None or words.keyword(to) != "TO":
        raise errors.make("sql.syntax", detail="COPY without TO or FROM")
    rest, values = words.text(to, len(words.tokens))
    columns, written = context.local.write_file(rows, rest, values)
    if columns == _COUNT:
        return Answer(affected=written.column(0)[0].as_py())
    # RETURN_FILES and RETURN_STATS ask for more than the number of rows.
    return Answer(rows=written, columns=columns)


def _from_file(
    context: Context, words: statement_parts.Words, table: Table, listed: str, position: int
) -> Answer:
    rest, values = words.text(position, len(words.tokens))
    without = constraint_check.rules(context, table).without_foreign
    name = dry_run.stand_in(table) if without else table.local_name
    with constraint_check.rehearsal(context) as connection:
        if without:
            connection.execute(without)
        sql = f"COPY {name} {listed} {rest}"
        connection.execute(sql, values)
        columns = ", ".join(quoted(column.name) for column in table.columns)
        fresh = connection.fetch_arrow(f"SELECT {columns} FROM {name}")
        connection.require_exact(name, table, fresh)
    if fresh.num_rows:
        from louver.trusted.executor.change.sending import send_new

        send_new(context, table, fresh)
    return Answer(affected=fresh.num_rows)
