"""EXPORT DATABASE: every table, decrypted, into files on the user's machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.trusted.planner import lexer
from louver.trusted.planner.planner import home_values
from louver.trusted.runtime import guard, importing, reading
from louver.trusted.runtime.answer import Answer
from louver.trusted.runtime.home import translated
from louver.trusted.runtime.modify.changing import fill, with_parents

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session


def export_database(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXPORT DATABASE 'folder' [(options)]: as DuckDB writes it, over the declared tables, and one
    file that says which columns are ENC.
    """
    values = home_values(text, parameters)
    with translated():
        session.home.schema.extract_statements(text.home)
    folder = _folder(found)
    tables = with_parents(session, list(session.catalog.tables.values()))
    held = [(table, reading.whole(session, table)) for table in tables]
    with guard.rehearsal(session) as connection:
        for table, rows in held:
            fill(session, connection, table, rows)
        connection.execute(text.home, values) if values else connection.execute(text.home)
    try:
        (folder / importing.PROTECTION).write_text(importing.protection(tables), encoding="utf-8")
    except OSError as error:
        raise errors.make("load.file", path=str(folder), detail=str(error)) from None
    return Answer()


def _folder(found: Sequence[Token]) -> Path:
    """The folder that a statement names, which DuckDB's parser has seen."""
    return Path(next(token.text for token in found if token.token_type == TokenType.STRING))
