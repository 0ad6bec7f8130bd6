"""The text of a temporary table with the rules of a declared one, without its references."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from sqlglot.tokens import TokenType

from louver import errors
from louver.names import HERE, TABLE_IS, fold, quoted
from louver.trusted.executor.local.object_texts import without_holes
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table


def text(connection: duckdb.DuckDBPyConnection, table: Table, texts: Sequence[str]) -> str:
    """CREATE TEMP TABLE of the same name and rules, which refers to no other table."""
    row = connection.execute(
        f"SELECT sql FROM duckdb_tables() WHERE {TABLE_IS}",
        list(table.key),
    ).fetchone()
    sql = without_holes(str(row[0])) if row else ""
    for text in filter(None, texts):
        sql = sql.replace(f", {text}", "", 1)
    names = (table.name, quoted(table.name))
    heads = [*names, *(f"{s}.{n}" for s in (table.schema, quoted(table.schema)) for n in names)]
    for head in heads:
        prefix = f"CREATE TABLE {head}("
        if sql.startswith(prefix) and " REFERENCES " not in sql:
            body = _anchored(connection, table, sql[len(prefix) - 1 :])
            return f"CREATE TEMP TABLE {quoted(table.name)}{body}"
    raise errors.make("internal", detail=f"the text of {table.label} could not be read")


def _anchored(connection: duckdb.DuckDBPyConnection, table: Table, sql: str) -> str:
    """The text of a table with its schema before the sequences and macros of that schema, where
    DuckDB looks first for what a table's text names.
    """
    known = {
        fold(name)
        for (name,) in connection.execute(
            f"SELECT sequence_name FROM duckdb_sequences() WHERE schema_name = $1 AND {HERE}"
            " UNION ALL SELECT function_name FROM duckdb_functions()"
            f" WHERE NOT internal AND schema_name = $1 AND {HERE}",
            [table.schema],
        ).fetchall()
    }
    position, results = f"{quoted(table.schema)}.", lexer.tokens(sql)
    for before, token, after in reversed(
        list(zip(results, results[1:], results[2:], strict=False))
    ):
        called = after.text == "(" and before.token_type != TokenType.DOT
        string = token.token_type == TokenType.STRING and before.text == "("
        if fold(token.text) in known and (called or string):
            name = position + quoted(token.text)
            if string:
                name = "'" + name.replace("'", "''") + "'"
            sql = sql[: token.start] + name + sql[token.end + 1 :]
    return sql
