"""SELECT … INTO [TEMP] name …, which PostgreSQL runs as CREATE [TEMP] TABLE name AS SELECT …."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import keyword
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql import lexer

_INTO = re.compile(r"\bINTO\b", re.IGNORECASE)
_SORTS = ("UNLOGGED", "TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "TABLE")
_OTHERS = frozenset(("UNION", "INTERSECT", "EXCEPT"))
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)


def may_be(sql: str) -> bool:
    """Whether a text has the word at all."""
    return _INTO.search(sql) is not None


def written_out(text: lexer.Text, tokens: Sequence[Token]) -> lexer.Text:
    """The definition that a SELECT with INTO means; any other statement as it is."""
    depth, at, words = 0, 0, [keyword(token.text) for token in tokens]
    for position, token in enumerate(tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth or token.token_type in _TEXTS:
            continue
        if words[position] in _OTHERS:
            # Only the first of several queries may say it.
            break
        if words[position] == "INTO":
            at = position
            break
    if not at or text.parameters:
        return text
    first = at + 1
    while words[first : first + 1] and words[first] in _SORTS:
        first += 1
    _, behind = head.names(tokens, first)
    if behind == first:
        return text
    name = text.home[tokens[first].start : tokens[behind - 1].end + 1]
    sorts = {*words[at + 1 : first]} - {"TABLE"}
    sort = "" if not sorts else "UNLOGGED " if "UNLOGGED" in sorts else "TEMP "
    rest = text.home[tokens[behind - 1].end + 1 :]
    query = f"{text.home[: tokens[at].start]}{rest}"
    (result,) = lexer.split(f"CREATE {sort}TABLE {name} AS {query}")
    return result
