"""ATTACH and DETACH: other connections beside this one, whose tables its queries may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner import lexer
from louver.trusted.runtime.answer import Answer

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

_RESERVED = frozenset(("main", "temp", "system", "information_schema", "pg_catalog"))


def attach(session: Session, url: str, name: str, keys: object = None) -> None:
    """Open another connection; its tables stand under the schema ``name``. Without ``keys`` it is
    opened by this session's key file.
    """
    from louver.trusted.runtime.connect import open_session

    wanted = fold(name)
    schemas = {fold(table.schema) for table in session.catalog.tables.values()}
    if wanted in _RESERVED or wanted in schemas or wanted in session.attached:
        raise errors.make("attach.name", name=name)
    profile = session.policy.profile
    other = open_session(url, keys or session.keyring, profile)  # type: ignore[arg-type]
    ids = {
        t.id for one in (session, *session.attached.values()) for t in one.catalog.tables.values()
    }
    if ids & {table.id for table in other.catalog.tables.values()}:
        other.close()
        raise errors.make("attach.same", url=url)
    session.attached[wanted] = other


def detach(session: Session, name: str) -> None:
    """Close an attached connection."""
    other = session.attached.pop(fold(name), None)
    if other is None:
        raise errors.make("attach.unknown", name=name)
    other.close()


def attach_statement(
    session: Session, text: lexer.Text, found: Sequence[Token], _parameters: list[object]
) -> Answer:
    """ATTACH 'url' AS name [(KEYS 'file')]."""
    words = [token for token in found if token.token_type != TokenType.SEMICOLON]
    usual = len(words) in (4, 8) and words[1].token_type == TokenType.STRING
    if not usual or keyword(words[2].text) != "AS" or text.parameters:
        raise errors.make("sql.syntax", detail="write ATTACH 'url' AS name (KEYS 'file')")
    keys = None
    if len(words) == 8:
        shape = [words[4].text, keyword(words[5].text), words[7].text]
        if shape != ["(", "KEYS", ")"] or words[6].token_type != TokenType.STRING:
            raise errors.make("sql.syntax", detail="write ATTACH 'url' AS name (KEYS 'file')")
        keys = words[6].text
    attach(session, words[1].text, words[3].text, keys)
    return Answer()


def detach_statement(
    session: Session, _text: lexer.Text, found: Sequence[Token], _parameters: list[object]
) -> Answer:
    """DETACH name."""
    if len(found) != 2:
        raise errors.make("sql.syntax", detail="write DETACH name")
    detach(session, found[1].text)
    return Answer()
