"""What the audit says of a statement: what it does, a fingerprint of its text without values, what
was opened, and what the server behind was newly shown. Names and numbers, and no values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import fold
from louver.trusted.apps.pgproxy import tags
from louver.trusted.executor import direct
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.planner.sql import lexer

_WORD = re.compile(r"[A-Za-z_]\w*|[^\w\s'\"$]+", re.ASCII)
_LETTERS = 16
#: What a kind has behind its first word: any other word may be the user's own.
_OBJECTS = frozenset(
    "AS COLUMN CURSOR DATABASE DOMAIN EXTENSION FUNCTION INDEX MATERIALIZED POLICY PROCEDURE ROLE"
    " RULE SCHEMA SEQUENCE TABLE TRANSACTION TRIGGER TYPE VIEW".split()
)


def kind(tokens: Sequence[Token]) -> str:
    """What a statement does, as its tag says: SELECT, INSERT, CREATE TABLE; WITH and SELECT INTO of
    queries that change something.
    """
    is_query = tags.has_query(tokens)
    if is_query and tags.may_define(tokens):
        return "SELECT INTO"
    if is_query and tags.changes(tokens):
        return "WITH"
    words = tags.tag(tokens, -1, has_rows=is_query).split()
    return " ".join([words[0], *(word for word in words[1:] if word in _OBJECTS)])


def shape(tokens: Sequence[Token]) -> str:
    """The fingerprint of a statement: the same whatever its numbers, texts and parameters are, and
    however long its lists of them. Of its text, only what is known to be no value is in it.
    """
    words: list[str] = []
    for token in tokens:
        word = _without_value(token)
        if word == "?" and words[-2:] == ["?", ","]:
            words.pop()
        else:
            words.append(word)
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:_LETTERS]


def _without_value(token: Token) -> str:
    if token.token_type == TokenType.IDENTIFIER:
        return f'"{token.text}"'
    name = fold(token.text)
    if name.startswith(lexer.PARAMETER_PREFIX) or token.token_type.name.endswith("STRING"):
        return "?"
    return name if _WORD.fullmatch(token.text) else "?"


def disclosed(context: Context) -> tuple[list[str], list[direct.Leak]]:
    """What was opened, and newly shown, since this was last called."""
    opened, context.columns.opened = context.columns.opened, set()
    ledger = context.ledger
    news = ledger.news.taken() if isinstance(ledger, Ledger) else []
    listed = direct.names(context.catalog, opened) if opened else []
    return listed, [direct.leak(fact, count) for fact, count in news]
