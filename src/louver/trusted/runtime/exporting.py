"""EXPORT DATABASE: every table, decrypted, into files on the user's machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot.tokens import Token

from louver import errors
from louver.trusted.planner import lexer
from louver.trusted.planner.planner import home_values
from louver.trusted.runtime import guard, reading
from louver.trusted.runtime.answer import Answer
from louver.trusted.runtime.home import translated
from louver.trusted.runtime.modify.changing import fill, with_parents

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session


def export_database(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXPORT DATABASE 'folder' [(options)]: as DuckDB writes it, over the declared tables."""
    values = home_values(text, parameters)
    with translated():
        session.home.schema.extract_statements(text.home)
    tables = with_parents(session, list(session.catalog.tables.values()))
    held = [(table, reading.whole(session, table)) for table in tables]
    with guard.rehearsal(session) as connection:
        for table, rows in held:
            fill(session, connection, table, rows)
        connection.execute(text.home, values) if values else connection.execute(text.home)
    return Answer()


def import_database(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """IMPORT DATABASE is refused: what was exported says nothing of ENC."""
    with translated():
        session.home.schema.extract_statements(text.home)
    raise errors.make(
        "sql.unsupported",
        statement="IMPORT DATABASE, whose tables would not be ENC, (create them with ENC, then "
        "COPY each FROM its file)",
    )
