"""`rowid` in a change: the number of a row as SELECT shows it, 0 for the first.

Rows that are rehearsed are not committed, and DuckDB numbers those from a far number on. Where a
statement says `rowid`, it runs with the difference to the first one's instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.executor.change import statement_parts
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.values import ROWID
from louver.trusted.vault.catalog import Table


def shown(
    connection: duckdb.DuckDBPyConnection,
    words: statement_parts.Words,
    table: Table,
    read: Sequence[Table],
) -> statement_parts.Words:
    """The statement over numbers as they are shown; ``connection`` holds the rows already."""
    places = [place for place in range(len(words.found)) if _is_rowid(words.found, place, table)]
    if not places or any(known.column(ROWID) for known in (table, *read)):
        return words
    if read or "select" in words.names():
        raise errors.make(
            "sql.unsupported",
            statement="rowid in a change that reads more than its target (name a column instead)",
        )
    row = connection.execute(f"SELECT min(rowid) FROM {table.local_name}").fetchone()
    if row is None or row[0] is None:
        return words
    plain, position = [], 0
    for place in places:
        start = words.found[_first(words.found, place)].start
        end = words.found[place].end + 1
        plain += [words.plain[position:start], f"({words.plain[start:end]} - {row[0]})"]
        position = end
    text = "".join([*plain, words.plain[position:]])
    return replace(words, plain=text, found=lexer.tokens(text))


def _is_rowid(found: Sequence[Token], place: int, table: Table) -> bool:
    """Whether a token is the number of a row, and not a field of a STRUCT."""
    token, first = found[place], _first(found, place)
    if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) or fold(token.text) != ROWID:
        return False
    return first == place or table.column(found[first].text) is None


def _first(found: Sequence[Token], place: int) -> int:
    """Where a dotted name begins."""
    while place > 1 and found[place - 1].token_type == TokenType.DOT:
        place -= 2
    return place
