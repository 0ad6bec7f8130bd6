"""The language of the local engine, which is the user's as well: what differs in texts, as one row.

Everything that cuts a user's text up, reads it as a tree, or prints a tree for the local engine
takes what is of the language from here. What a server reads is its backend's to print.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.dialects.duckdb import DuckDB


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language."""

    #: sqlglot's name of it, which backends say whose plain text means the same there
    name: str
    #: sqlglot's tokens, parser and printer of it
    sqlglot: type[SqlglotDialect]
    #: what may hide a placeholder or a semicolon, one group each, and the placeholders themselves
    lexeme: re.Pattern[str]
    #: comments that stand within comments
    nests_comments: bool
    #: a number that sqlglot cuts into two, and how one is written
    split_number: re.Pattern[str]
    number: re.Pattern[str]
    #: operators that the engine reads before its other comparisons, and sqlglot along with them
    early: frozenset[str]
    #: operators that the engine reads after arithmetic, and sqlglot before it; or that end a value
    late: frozenset[str]
    #: functions that take a table, or a query, as an argument
    takes_names: frozenset[str]
    #: words that turn rows into columns: which columns there are may depend on the rows
    pivots: frozenset[str]
    #: the placeholder of a key: a number from 1, or a name
    placeholder: Callable[[int | str], str]
    #: a text as a literal
    string: Callable[[str], str]


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


DUCKDB = Dialect(
    name="duckdb",
    sqlglot=DuckDB,
    lexeme=re.compile(
        r"""(?P<string>'(?:[^']|'')*')
          | (?P<escape>\b[eE]'(?:[^'\\]|\\.|'')*')
          | (?P<quoted>"(?:[^"]|"")*")
          | (?P<comment>--[^\r\n]*)
          | (?P<block>/\*)
          | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
          | (?P<numbered>\$\d+)
          | (?P<named>\$[A-Za-z_]\w*)
          | (?P<question>\?)
          | (?P<cast>::)
          | (?P<colon>:(?P<colon_name>[A-Za-z_]\w*))
          | (?P<semicolon>;)
        """,
        re.VERBOSE | re.DOTALL,
    ),
    nests_comments=True,
    split_number=re.compile(r"\d_\d"),
    number=re.compile(r"\d+(_\d+)*(\.(\d+(_\d+)*)?)?([eE][+-]?\d+(_\d+)*)?"),
    early=frozenset(("==", "~", "~~", "~~*", "^@")),
    late=frozenset(("@", "!")),
    takes_names=frozenset(("query", "query_table", "histogram", "histogram_values")),
    pivots=frozenset(("pivot", "pivot_wider", "unpivot", "pivot_longer")),
    placeholder="${}".format,
    string=_string,
)

LOCAL = DUCKDB
"""The language of the local engine there is."""
