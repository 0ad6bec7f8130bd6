"""EXPORT DATABASE: write every table, decrypted, into local files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import own_schemas, quoted
from louver.trusted.executor import (
    constraint_check,
    import_database,
    seen_state,
    storage,
)
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import fill, with_parents
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import lexer


def export_database(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXPORT DATABASE 'folder' [(options)]: DuckDB's export of the declared tables, and one file
    that lists the encrypted columns.
    """
    values = home_values(text, parameters)
    context.local.statements.require_syntax(text.home)
    folder = _folder(tokens)
    tables = with_parents(context, list(context.catalog.tables.values()))
    with seen_state.same_state(context):
        held = [(table, storage.whole(context.storage, table)) for table in tables]
    with constraint_check.rehearsal(context) as connection:
        for table, rows in held:
            fill(context, connection, table, rows)
        _without_temporary(connection)
        connection.execute(text.home, values)
    try:
        (folder / import_database.PROTECTION).write_text(
            import_database.protection(tables), encoding="utf-8"
        )
    except OSError as error:
        raise errors.make("load.file", path=str(folder), detail=str(error)) from None
    return Answer()


def _folder(tokens: Sequence[Token]) -> Path:
    """The folder named by a statement that DuckDB's parser has accepted."""
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.HEREDOC_STRING):
            return Path(token.text)
    raise errors.make("sql.syntax", detail="write EXPORT DATABASE 'folder'")


def _without_temporary(connection: LocalConnection) -> None:
    """Drop temporary tables: DuckDB exports their rows but not the tables."""
    request = "SELECT table_name FROM duckdb_tables() WHERE temporary"
    for (name,) in connection.fetchall(request):
        connection.execute(f"DROP TABLE {own_schemas().stand_in}.{quoted(name)}")
