"""Questions about the schema: information_schema, pg_catalog, duckdb_tables() and the like.

They are answered by the declared schema at home, which holds no rows. A query that reads tables
as well runs there too, over rows that are put in for it and rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb
from sqlglot.tokens import Token, TokenType

from louver.names import fold
from louver.trusted.planner import lexer
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.resolver import Resolver
from louver.trusted.planner.trees import parse
from louver.trusted.runtime.answer import Answer
from louver.trusted.runtime.ddl.tables import generated_columns
from louver.trusted.runtime.home import quoted, translated
from louver.trusted.vault.catalog import Table

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

_SCHEMAS = ("information_schema", "pg_catalog")
_TABLES = ("sqlite_master", "sqlite_schema", "pragma_table_info", "pragma_show")


def asks_schema(found: Sequence[Token]) -> bool:
    """Whether a query names something that describes the schema."""
    for token, following in zip(found, [*found[1:], None], strict=True):
        if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
            continue
        word = fold(token.text)
        after = following.text if following is not None else ""
        if (word in _SCHEMAS and after == ".") or word in _TABLES:
            return True
        if word.startswith("duckdb_") and after == "(":
            return True
    return False


def answer(session: Session, text: lexer.Text, parameters: list[object]) -> Answer:
    """Answer from the declared schema."""
    values = home_values(text, parameters)
    described = session.home.describe(text.home, values)
    resolver = Resolver(session.catalog, parse(text.plain))
    tables = resolver.all_tables(text, session.home)
    if not tables:
        return Answer(session.home.ask_schema(text.home, values), described, home_sql=text.home)
    connection = session.home.schema
    connection.execute("BEGIN TRANSACTION")
    try:
        # All of them: a foreign key must find what it refers to.
        for table in _in_order(session):
            _put(session, table)
        rows = session.home.ask_schema(text.home, values)
    finally:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
    return Answer(rows, described, home_sql=text.home)


def _in_order(session: Session) -> list[Table]:
    """Tables as they were created: what a foreign key refers to comes first."""
    made = (
        session.catalog.table(item.schema, item.name)
        for item in session.catalog.objects
        if item.kind == "TABLE"
    )
    return [table for table in made if table is not None]


def _put(session: Session, table: Table) -> None:
    """The opened rows of a table, in its place in the schema."""
    generated = generated_columns(session, table.schema, table.name)
    names = [quoted(c.name) for c in table.columns if fold(c.name) not in generated]
    columns = ", ".join(names)
    found = session.query(f"SELECT {columns} FROM {table.server}").rows
    if found is None:
        return
    with translated():
        session.home.schema.register("louver_rows", found)
        session.home.schema.execute(
            f"INSERT INTO {table.server} ({columns}) SELECT {columns} FROM louver_rows"
        )
        session.home.schema.unregister("louver_rows")
