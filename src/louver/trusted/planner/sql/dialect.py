"""The language of the local engine, which is the user's as well: what differs in texts, as one row.

Everything that cuts a user's text up, reads it as a tree, or prints a tree for the local engine
takes what is of the language from here. What a server reads is its backend's to print.

A process may hold sessions of several languages. Each session has its local engine's `Dialect`,
which its front doors enter by `speaking`; whatever reads a text asks for `spoken()` at that time.
What keeps results by a text keeps them by the dialect too. Outside of a session it is DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Protocol

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import Token as SqlToken

from louver.names import DUCKDB_SCHEMAS, OWN, OwnSchemas
from louver.trusted.vault.catalog import Catalog


class Nesting(Protocol):
    """How deep a place of a text is, read piece by piece."""

    @property
    def is_open(self) -> bool:
        """Whether a semicolon here ends no statement."""

    @property
    def is_routine(self) -> bool:
        """Whether the statement makes a function or a procedure, whose placeholders are its own."""

    def read(self, piece: str) -> None:
        """Go on behind a piece beside strings, comments, placeholders and quoted names."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One language. There is one object of each, so that they are compared and hashed as such."""

    #: sqlglot's name of it, which backends say whose plain text means the same there
    name: str
    #: sqlglot's tokens, parser and printer of it
    sqlglot: SqlglotDialect
    #: what may hide a placeholder or a semicolon, one group each, and the placeholders themselves
    lexeme: re.Pattern[str]
    #: comments that stand within comments
    nests_comments: bool
    #: a number that sqlglot cuts otherwise, and how one is written
    split_number: re.Pattern[str]
    number: re.Pattern[str]
    #: operators that the engine reads before its other comparisons, and sqlglot along with them
    early: frozenset[str]
    #: operators that the engine reads after arithmetic, and sqlglot before it; or that end a value
    late: frozenset[str]
    #: functions that take a table, or a query, as an argument
    takes_names: frozenset[str]
    #: whether a string may stand where a table's or a column's name does
    texts_name: bool
    #: words that turn rows into columns: which columns there are may depend on the rows
    pivots: frozenset[str]
    #: the placeholder of a key: a number from 1, or a name
    placeholder: Callable[[int | str], str]
    #: a text as a literal
    string: Callable[[str], str]
    #: the words of a text, where sqlglot's tokens of it are others
    words: Callable[[str, list[SqlToken]], list[SqlToken]] | None = None
    #: all characters that are blanks, where the engine makes names of Unicode's others
    blanks: str | None = None
    #: raises SqlglotError for trees that the engine may read otherwise, beside those operators
    require: Callable[[str, list[SqlToken], list[exp.Expr | None]], None] | None = None
    #: the catalog's name of a type that the engine prints
    catalog_type: Callable[[str], str] = str
    #: the engine's name of one of the catalog's types
    own_type: Callable[[str], str] = str
    #: whether Louver knows by itself what the engine makes of constants and of simple terms; else
    #: the engine is asked each time
    has_simple_terms: bool = False
    #: numbers whose arithmetic is exact and never leaves their range, beside those of the catalog
    exact_types: frozenset[str] = frozenset()
    #: the widest type of a sum of whole numbers
    whole_sums: str = "HUGEINT"
    #: whether AVG of exact numbers is the engine's own quotient of their SUM and COUNT
    divides_sums: bool = False
    #: whether the engine reads off what a change did, by itself and for every form of change
    reads_off: bool = False
    #: whether its statements beside queries, changes and definitions are others than DuckDB's
    has_own_statements: bool = False
    #: whether any error ends the transaction that it is in
    fails_whole: bool = False
    #: options that its EXPLAIN takes before FORMAT: there are no rows, so that costs mean nothing
    explains: str = ""
    #: what says which semicolons end a statement, where bodies of functions hold some
    nesting: Callable[[], Nesting | None] = lambda: None
    #: types whose values are objects of the schema, which a text names
    names_objects: frozenset[str] = frozenset()
    #: functions that change a sequence
    draws: frozenset[str] = frozenset(("nextval",))
    #: whether the engine prints every kind of object, in full names and with all that has become
    #: of it, so that the catalog keeps what is printed instead of the user's text
    prints_objects: bool = False
    #: what lists the tables and views, and what describes one of this name, for the shell
    listing: str = "SHOW TABLES"
    description: Callable[[str], str] = lambda table: f"DESCRIBE {table}"
    #: the schemas that every database has
    schemas: OwnSchemas = DUCKDB_SCHEMAS
    #: raises for names of a changed catalog, beside those before, that are one without capitals
    require_names: Callable[[Catalog, Catalog], None] = lambda _before, _catalog: None


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


DUCKDB = Dialect(
    name="duckdb",
    # Of other versions sqlglot reads some operators otherwise: from 2.0 on, ~ matches anywhere.
    sqlglot=DuckDB(version="1.5.5"),
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
    split_number=re.compile(r"\d_\d|[\d.][eE]\d+[+-]"),
    number=re.compile(r"\d+(_\d+)*(\.(\d+(_\d+)*)?)?([eE][+-]?\d+(_\d+)*)?"),
    early=frozenset(("==", "~", "~~", "~~*", "^@")),
    late=frozenset(("@", "!")),
    texts_name=True,
    takes_names=frozenset(("query", "query_table", "histogram", "histogram_values")),
    pivots=frozenset(("pivot", "pivot_wider", "unpivot", "pivot_longer")),
    placeholder="${}".format,
    has_simple_terms=True,
    string=_string,
)

_SPOKEN: ContextVar[Dialect] = ContextVar("louver_dialect", default=DUCKDB)

spoken: Callable[[], Dialect] = _SPOKEN.get
"""The language of the session that runs now."""

_ELSEWHERE = {"postgres": "louver.trusted.planner.sql.postgres_dialect"}
"""Modules of the languages that most processes do not speak, each with its `DIALECT`."""


def named(name: str) -> Dialect | None:
    """The language of a name; None for one that no local engine speaks."""
    if name == DUCKDB.name:
        return DUCKDB
    module = _ELSEWHERE.get(name)
    dialect = None if module is None else import_module(module).DIALECT
    return dialect if isinstance(dialect, Dialect) else None


class speaking:  # noqa: N801
    """Read texts in a session's language within a block, in this thread or task alone. Threads that
    begin within it do not inherit it, and a generator must not yield in it.
    """

    __slots__ = ("_before", "_dialect", "_schemas")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._before: Token[Dialect] | None = None
        self._schemas: Token[OwnSchemas] | None = None

    def __enter__(self) -> None:
        self._before = _SPOKEN.set(self._dialect)
        self._schemas = OWN.set(self._dialect.schemas)

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        if self._before is not None and self._schemas is not None:
            _SPOKEN.reset(self._before)
            OWN.reset(self._schemas)
