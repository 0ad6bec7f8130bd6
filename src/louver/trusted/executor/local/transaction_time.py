"""The time within a transaction: `now()` and its like stay at its begin, as in DuckDB.

Each statement of a transaction runs in transactions of its own locally, where the time goes on. So
the functions that tell it are covered by macros of one moment, in those transactions that ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import zip_longest

import duckdb
from sqlglot.tokens import Token, TokenType

from louver.names import fold
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog

_MACROS = {
    "now": "() AS {}",
    "get_current_timestamp": "() AS {}",
    "transaction_timestamp": "() AS {}",
    "get_current_time": "() AS {}::TIMETZ",
    "current_localtimestamp": "() AS {}::TIMESTAMP",
    "current_localtime": "() AS {}::TIMESTAMP::TIME",
    "current_date": "() AS {}::DATE",
    "today": "() AS {}::DATE",
    "age": "(a) AS system.main.age({}, a), (a, b) AS system.main.age(a, b)",
}
NAMES = frozenset(_MACROS)
_CALLED = {*_MACROS, "ago"}
_SPECIAL = frozenset(("now", "today", "tomorrow", "yesterday"))
_WORDS = re.compile("[a-z]+")
_LONGEST_TIME = 64
_BARE = {"current_timestamp", "current_time", "current_date", "localtimestamp", "localtime"}


def reads_time(
    catalog: Catalog, tokens: Sequence[Token], parameters: Sequence[object] = ()
) -> bool:
    """Whether a statement may ask for the time, itself or by a value, default, view or macro."""
    kinds = ("TABLE", "VIEW", "MACRO")
    return (
        _ask(tokens)
        or any(_means_time(value) for value in parameters if isinstance(value, str))
        or any(_asks(o.sql) for o in catalog.objects if o.kind in kinds)
    )


def _means_time(text: str) -> bool:
    """Whether a text may be a time that depends on the clock, as in PostgreSQL."""
    return len(text) <= _LONGEST_TIME and not _SPECIAL.isdisjoint(_WORDS.findall(fold(text)))


@lru_cache(4_096)
def _asks(sql: str) -> bool:
    return _ask(lexer.tokens(sql))


def _ask(tokens: Sequence[Token]) -> bool:
    """Whether some tokens call a function that tells the time; a column may have its name."""
    for token, following in zip_longest(tokens, tokens[1:]):
        word = fold(token.text)
        called = following is not None and following.text == "("
        if token.token_type == TokenType.STRING and _means_time(token.text):
            return True
        if word in _BARE or (called and word in _CALLED):
            return True
    return False


def fix(connections: Iterable[duckdb.DuckDBPyConnection], moment: datetime) -> None:
    """Let DuckDBs say this time."""
    literal = f"TIMESTAMPTZ '{moment.isoformat()}'"
    for connection in connections:
        for name, body in _MACROS.items():
            connection.execute(f"CREATE OR REPLACE TEMP MACRO {name}{body.format(literal)}")


def release(connections: Iterable[duckdb.DuckDBPyConnection]) -> None:
    """Let the time go on."""
    for connection in connections:
        for name in _MACROS:
            connection.execute(f"DROP MACRO IF EXISTS temp.main.{name}")
