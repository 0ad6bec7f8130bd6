"""INSERT … ON CONFLICT DO NOTHING over several keys, one row after the other.

DuckDB takes the rows of a statement in by the hashes of their keys. Of two new rows that conflict
under one key the first stays; under several keys the hashes decide which one does, and its plain
columns would show that to the server. Row by row the first stays, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver.names import fold
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.constraint_check import Rules
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.vault.catalog import Table

_GIVEN = "louver_given"
_PROBE = "louver_probe"
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
BRACKETS = (*OPENING, *CLOSING)
Run = tuple[str, list[object]]
"""A statement and its values."""


def decide_by_hash(words: statement_parts.Words, table: Table, rules: Rules) -> bool:
    """Whether it is for the hashes of an encrypted key to decide which new rows stay."""
    keys = {fold(name) for name in rules.key_columns()}
    secret = any(c.encrypted and fold(c.name) in keys for c in table.columns)
    verb = words.find("INSERT")
    if not secret or len(rules.keys) < 2 or verb < 0 or 0 <= words.find("MERGE") < verb:
        return False
    parts = statement_parts.parse_insert(words)
    if words.keyword(parts.verb + 1) == "OR":
        return words.keyword(parts.verb + 2) == "IGNORE"
    conflict = [words.keyword(position) for position in range(parts.source_end, parts.returning)]
    return conflict == ["ON", "CONFLICT", "DO", "NOTHING"]


def executed(
    connection: LocalConnection, sql: str, values: Sequence[object]
) -> tuple[pa.Table, list[tuple[str, str]]]:
    """Run a change: the rows that it gives, with the names and types of their columns."""
    columns, rows = connection.fetch_described(sql, values)
    return rows, columns


def one_by_one(
    connection: LocalConnection, words: statement_parts.Words, table: Table, rules: Rules
) -> tuple[pa.Table, list[tuple[str, str]]]:
    """Run the statement for one row after the other; at once where no two new rows conflict."""
    runs = [executed(connection, *run) for run in _runs(connection, words, table, rules)]
    return pa.concat_tables(rows for rows, _ in runs), runs[0][1]


def _runs(
    connection: LocalConnection, words: statement_parts.Words, table: Table, rules: Rules
) -> Iterator[Run]:
    parts = statement_parts.parse_insert(words)
    before, first = words.text(0, parts.source)
    if words.keyword(parts.source) == "VALUES" and parts.verb == 0:
        for start, end in rows_of(words.tokens, parts.source + 1, parts.source_end):
            row, second = words.text(start, end, len(first))
            after, third = words.text(parts.source_end, parts.end, len(first) + len(second))
            yield f"{before} VALUES {row} {after}", [*first, *second, *third]
        return
    clauses, first = words.text(0, parts.verb)
    source, second = words.text(parts.source, parts.source_end, len(first))
    sql = f"CREATE TEMP TABLE {_GIVEN} AS {clauses} {source}"
    connection.execute(sql, [*first, *second])
    head, first = words.text(parts.verb, parts.source)
    after, third = words.text(parts.source_end, parts.end, len(first))
    if _is_apart(connection, words, table, rules):
        yield f"{head} SELECT * FROM {_GIVEN} {after}", [*first, *third]
        return
    places = connection.fetchall(f"SELECT rowid FROM {_GIVEN} ORDER BY rowid")
    for (position,) in places or [(-1,)]:
        given = f"SELECT * FROM {_GIVEN} WHERE rowid = {position}"
        yield f"{head} {given} {after}", [*first, *third]


def _is_apart(
    connection: LocalConnection, words: statement_parts.Words, table: Table, rules: Rules
) -> bool:
    """Whether no two of the given rows are alike under any key, as the table's types have them."""
    read = {fold(name) for key in rules.keys for name in key.columns}
    if rules.generated or not read.isdisjoint(rules.defaults):
        return False  # the source does not give what the keys read
    parts = statement_parts.parse_insert(words)
    listed, values = words.text(parts.after_name, parts.source)
    if values:
        return False
    connection.execute(f"CREATE TEMP TABLE {_PROBE} AS SELECT * FROM {table.local_name} LIMIT 0")
    connection.execute(f"INSERT INTO {_PROBE} {listed} SELECT * FROM {_GIVEN}")
    for key in rules.keys:
        items = ", ".join(key.expressions)
        # DuckDB takes two NULLs of one statement for alike too, and row by row it does not.
        alike = connection.fetchone(
            f"SELECT 1 FROM {_PROBE} GROUP BY {items} HAVING count(*) > 1 LIMIT 1"
        )
        if alike is not None:
            return False
    return True


def rows_of(tokens: Sequence[Token], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Where each row of VALUES begins and ends."""
    depth, start = 0, first
    for position in range(first, last):
        kind = tokens[position].token_type
        depth += (kind in OPENING) - (kind in CLOSING)
        if depth == 0 and kind == TokenType.COMMA:
            yield start, position
            start = position + 1
    yield start, last
