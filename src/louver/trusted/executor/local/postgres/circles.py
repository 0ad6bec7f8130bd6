"""Tables that refer to each other: no order of their statements makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlglot.tokens import Token

from louver.names import keyword
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import HomeObject

_CREATES = ("CREATE TABLE ", "CREATE UNLOGGED TABLE ")
_FOREIGN = "FOREIGN KEY "


@contextmanager
def parting(
    binder: LocalConnection, unresolved: list[HomeObject], tables: Sequence[HomeObject]
) -> Iterator[None]:
    """Have these tables' statements without their foreign keys among the unresolved ones; the keys
    are added when the tables are there.
    """
    keys: list[str] = []
    for item in tables:
        sql, own = parted(item.sql)
        unresolved[unresolved.index(item)] = replace(item, sql=sql)
        keys += own
    yield
    for sql in keys:
        binder.execute(sql)


def parted(sql: str) -> tuple[str, list[str]]:
    """The statement of a table, as `declarations` writes it, without its foreign keys, and the
    statements that add these.
    """
    items = list(_items(sql))
    create = next((word for word in _CREATES if sql.startswith(word)), "")
    if not create or not items:
        return sql, []
    path = sql[len(create) : items[0][0]].rpartition("(")[0].strip()
    own: list[str] = []
    keys: list[str] = []
    for start, end, after_name in items:
        is_key = after_name and sql[after_name:end].lstrip().startswith(_FOREIGN)
        (keys if is_key else own).append(sql[start:end].strip())
    rest = sql[items[-1][1] :]
    add = [f"ALTER TABLE {path} ADD {key}" for key in keys]
    return f"{create}{path} ({', '.join(own)}{rest}", add


def _items(sql: str) -> Iterator[tuple[int, int, int]]:
    """Where each item in the brackets begins and ends; of a constraint also where its name ends."""
    depth, start, name = 0, -1, 0
    tokens = lexer.tokens(sql)
    for at, token in enumerate(tokens):
        if token.text == "(" and sql[token.start] == "(":
            depth += 1
            if depth == 1 and start < 0:
                start = token.end + 1
                name = _end_of_name(sql, tokens, at + 1)
        elif token.text == ")" and sql[token.start] == ")":
            depth -= 1
            if depth == 0:
                yield start, token.start, name
                return
        elif token.text == "," and sql[token.start] == "," and depth == 1:
            yield start, token.start, name
            start = token.end + 1
            name = _end_of_name(sql, tokens, at + 1)


def _end_of_name(sql: str, tokens: list[Token], at: int) -> int:
    first = tokens[at]
    is_constraint = sql[first.start] != '"' and keyword(first.text) == "CONSTRAINT"
    return tokens[at + 1].end + 1 if is_constraint else 0
