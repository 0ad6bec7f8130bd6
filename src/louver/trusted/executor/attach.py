"""ATTACH and DETACH: other connections, and plain DuckDB files, beside this one, whose tables its
queries may read.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import attached_files
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import DUCKDB


def attach(context: Context, url: str, name: str, keys: object = None) -> None:
    """Open another connection; its tables stand under the schema ``name``. Without ``keys`` it is
    opened by this session's key file. What has no ``://`` is a DuckDB file.
    """
    if context.catalog.language != DUCKDB:
        raise errors.make("attach.language")
    if "://" not in url and keys is None:
        attached_files.attach(context, url, name)
        return
    wanted = fold(name)
    attached_files.require_free(context, name)
    other = _opened(context, url, keys)
    ids = {
        t.id for item in (context, *context.attached.values()) for t in item.catalog.tables.values()
    }
    if ids & {table.id for table in other.catalog.tables.values()}:
        other.close()
        raise errors.make("attach.same", url=url)
    context.attached[wanted] = other


def _opened(context: Context, url: str, keys: object) -> Context:
    """Another session, which speaks this one's language: rows are finished in one local engine."""
    try:
        return context.opener(url, keys or context.keyring, context.policy.profile)
    except errors.Error as error:
        if error.code == "language.other":
            raise errors.make("attach.language") from None
        raise


def detach(context: Context, name: str) -> None:
    """Close an attached connection, or let go of a file."""
    if fold(name) in context.local.files.known:
        attached_files.detach(context, name)
        return
    other = context.attached.pop(fold(name), None)
    if other is None:
        raise errors.make("attach.unknown", name=name)
    other.close()


def attach_statement(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """ATTACH [IF NOT EXISTS] 'url or file' [AS name] [(KEYS 'file')]."""
    words = [token for token in tokens if token.token_type != TokenType.SEMICOLON]
    at = 2 if len(words) > 1 and keyword(words[1].text) == "DATABASE" else 1
    lenient = lexer.words(words[at:], 3) == ["IF", "NOT", "EXISTS"]
    words = words[at + 3 * lenient :]
    if not words or words[0].token_type != TokenType.STRING or text.parameters:
        raise _syntax()
    position, name, options = words[0].text, "", words[1:]
    if len(options) > 1 and keyword(options[0].text) == "AS":
        name, options = options[1].text, options[2:]
    is_url = "://" in position
    brackets = [token.text for token in (*options[:1], *options[-1:])]
    if brackets not in ([], ["(", ")"]) or name in ("(", ")", ",") or (is_url and not name):
        raise _syntax()
    name = name or attached_files.name_of(position)
    if lenient and (fold(name) in context.attached or fold(name) in context.local.files.known):
        return Answer()
    if is_url:
        attach(context, position, name, _keys(options))
    else:
        attached_files.require_options(options)
        attached_files.attach(context, position, name)
    return Answer()


def _keys(options: Sequence[Token]) -> str | None:
    if not options:
        return None
    shape = [keyword(token.text) for token in (*options[:2], options[-1])]
    usual = len(options) == 4 and options[2].token_type == TokenType.STRING
    if not usual or shape != ["(", "KEYS", ")"]:
        raise _syntax()
    return options[2].text


def _syntax() -> errors.Error:
    detail = "write ATTACH 'url' AS name (KEYS 'file'), or ATTACH 'file.duckdb' AS name"
    return errors.make("sql.syntax", detail=detail)


def detach_statement(
    context: Context, _text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """DETACH [DATABASE] [IF EXISTS] name."""
    words = [token for token in tokens if token.token_type != TokenType.SEMICOLON]
    at = 2 if len(words) > 2 and keyword(words[1].text) == "DATABASE" else 1
    lenient = len(words) > at + 2 and lexer.words(words[at:], 2) == ["IF", "EXISTS"]
    at += 2 * lenient
    if len(words) != at + 1 or words[at].token_type == TokenType.STRING:
        raise errors.make("sql.syntax", detail="write DETACH name")
    wanted = fold(words[at].text)
    if not lenient or wanted in context.attached or wanted in context.local.files.known:
        detach(context, words[at].text)
    return Answer()
