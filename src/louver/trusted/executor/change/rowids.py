"""`rowid` in a change: the number of a row as SELECT shows it, 0 for the first.

Rows that are rehearsed are not committed, and DuckDB numbers those from a far number on. Where a
statement says `rowid`, it runs with the difference to the first one's instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.values import ROWID
from louver.trusted.vault.catalog import Table


def shown(
    connection: LocalConnection,
    words: statement_parts.Words,
    table: Table,
    read: Sequence[Table],
) -> statement_parts.Words:
    """The statement over numbers as they are shown; ``connection`` holds the rows already."""
    places = [index for index in range(len(words.tokens)) if _is_rowid(words.tokens, index, table)]
    if not places or any(known.column(ROWID) for known in (table, *read)):
        return words
    if read or "select" in words.names():
        raise errors.make(
            "sql.unsupported",
            statement="rowid in a change that reads more than its target (name a column instead)",
        )
    row = connection.fetchone(f"SELECT min(rowid) FROM {table.local_name}")
    if row is None or row[0] is None:
        return words
    plain, position = [], 0
    for index in places:
        start = words.tokens[_first(words.tokens, index)].start
        end = words.tokens[index].end + 1
        plain += [words.plain[position:start], f"({words.plain[start:end]} - {row[0]})"]
        position = end
    text = "".join([*plain, words.plain[position:]])
    return replace(words, plain=text, tokens=lexer.tokens(text))


def _is_rowid(tokens: Sequence[Token], position: int, table: Table) -> bool:
    """Whether a token is the number of a row, and not a field of a STRUCT."""
    token, first = tokens[position], _first(tokens, position)
    if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) or fold(token.text) != ROWID:
        return False
    return first == position or table.column(tokens[first].text) is None


def _first(tokens: Sequence[Token], position: int) -> int:
    """Where a dotted name begins."""
    while position > 1 and tokens[position - 1].token_type == TokenType.DOT:
        position -= 2
    return position
