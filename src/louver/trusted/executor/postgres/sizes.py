"""Sizes of tables: those of the server, which stores them, in queries of the local catalog.

What such a query calls is replaced by what the server said, as constants by the tables' numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.wire.messages import Statement

_FUNCTIONS = ("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size")
_NAMED = re.compile(rf"\b(?:{'|'.join(_FUNCTIONS)})\b", re.IGNORECASE)
_NUMBERS = (
    "SELECT c.oid::bigint, n.nspname::text, c.relname::text FROM pg_catalog.pg_class AS c"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
    " AND c.oid >= 16384"
)


def are_named(sql: str) -> bool:
    """Whether a text has one of the names at all."""
    return _NAMED.search(sql) is not None


def written_out(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> lexer.Text:
    """A query with the sizes that the server says; of what the server does not store, NULL. As it
    is, which is refused, where it calls such a function in another way.
    """
    if text.parameters:
        return text
    calls = [at for at, token in enumerate(tokens) if _calls(tokens, at, token)]
    ends = {at: _end(tokens, at + 1) for at in calls}
    if not calls or any(end < 0 for end in ends.values()):
        return text
    by_function = _sizes(context)
    pieces, position = list[str](), 0
    for at in calls:
        if tokens[at].start < position:
            return text  # within the argument of another one
        first = at - 2 if tokens[at - 1].text == "." else at
        argument = text.home[tokens[at + 1].end + 1 : tokens[ends[at]].start]
        digits = json.dumps(by_function[fold(tokens[at].text)]).encode().hex()
        pieces += [
            text.home[position : tokens[first].start],
            f"((pg_catalog.convert_from(pg_catalog.decode('{digits}', 'hex'), 'UTF8')::json"
            f" ->> (({argument})::pg_catalog.regclass::pg_catalog.oid::text))::pg_catalog.int8)",
        ]
        if _is_item(tokens, first, ends[at]):
            pieces.append(f" AS {fold(tokens[at].text)}")
        position = tokens[ends[at]].end + 1
    (result,) = lexer.split("".join([*pieces, text.home[position:]]))
    return result


def _calls(tokens: Sequence[Token], at: int, token: Token) -> bool:
    follows = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.token_type == TokenType.STRING or fold(token.text) not in _FUNCTIONS or follows != "(":
        return False
    return at < 2 or tokens[at - 1].text != "." or fold(tokens[at - 2].text) == "pg_catalog"


def _is_item(tokens: Sequence[Token], first: int, last: int) -> bool:
    """Whether these tokens are an item of the list behind the first SELECT, and all of it: its
    column bears the function's name.
    """
    words = [keyword(token.text) for token in tokens[:first]]
    depth = sum((word == "(") - (word == ")") for word in words)
    follows = keyword(tokens[last + 1].text) if last + 1 < len(tokens) else ""
    is_listed = words[-1:] in (["SELECT"], [","]) and follows in ("", ",", "FROM")
    return is_listed and depth == 0 and "FROM" not in words


def _end(tokens: Sequence[Token], first: int) -> int:
    """The place of the bracket that closes this one; -1 where there are several arguments."""
    depth = 0
    for at in range(first, len(tokens)):
        word = "" if tokens[at].token_type == TokenType.STRING else tokens[at].text
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth == 0:
            return at
        if depth == 1 and word == ",":
            return -1
    return -1


def _sizes(context: Context) -> dict[str, dict[str, int]]:
    """The sizes by the functions and the tables' numbers."""
    results: dict[str, dict[str, int]] = {name: {} for name in _FUNCTIONS}
    tables = list(context.catalog.tables.values())
    if not tables:
        return results
    listed = json.dumps([context.backend.table(table) for table in tables])
    sql = context.backend.session_call("sizes of tables")
    answer = context.engine.query(Statement(sql, (listed,)))
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    sizes = {(t.schema, t.name): row for t, row in zip(tables, rows, strict=True)}
    with context.local.rehearsal() as connection:
        for number, schema, name in connection.fetchall(_NUMBERS):
            for function, size in zip(_FUNCTIONS, sizes.get((schema, name), ()), strict=False):
                results[function][str(number)] = size
    return results
