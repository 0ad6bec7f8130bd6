"""CURRENT_CATALOG in a query: the local engine would give the name of its private database for it,
while its function `current_database` gives that of the server's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import keyword
from louver.trusted.planner.sql import lexer

_NAMED = re.compile(r"\bcurrent_catalog\b", re.IGNORECASE)
_WORD, _NAME = "CURRENT_CATALOG", "current_catalog"
_CALL = "pg_catalog.current_database()"
_BEHIND = (None, TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.SEMICOLON)
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)


def is_named(sql: str) -> bool:
    """Whether a text has the word at all."""
    return _NAMED.search(sql) is not None


def written_out(text: lexer.Text, tokens: Sequence[Token]) -> lexer.Text:
    """A query that calls the function instead, where the word has an alias or is the first column
    of a result. It stays elsewhere, and is refused.
    """
    if text.parameters:
        return text
    pieces, position = list[str](), 0
    for at, token in enumerate(tokens):
        if keyword(token.text) != _WORD or token.token_type in _TEXTS or not at:
            continue
        follows = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        is_first = tokens[at - 1].token_type == TokenType.SELECT and follows in _BEHIND
        if follows == TokenType.ALIAS or is_first:
            alias = f" AS {_NAME}" if is_first else ""
            pieces += [text.home[position : token.start], _CALL + alias]
            position = token.end + 1
    if not pieces:
        return text
    (result,) = lexer.split("".join([*pieces, text.home[position:]]))
    return result
