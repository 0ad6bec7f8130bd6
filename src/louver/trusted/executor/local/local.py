"""What the executor, the planner and the client need of the local engine, whichever it is.

The *binder* holds every declared table, empty: it judges statements and says what is declared. The
*workspace* holds decrypted rows while one query is finished on them. No type of an engine's own
library occurs here; what fails raises Louver's errors, with the engine's own message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.trusted.executor.local.sequence_state import SequenceState as SequenceState
from louver.trusted.vault.catalog import HomeObject, Table

Answers = Mapping[tuple[str, str], tuple[Sequence[tuple[str, str]], pa.Table]]
"""Opened rows, with names and types of their columns, by the schema and name that they fill."""
Parameters = Sequence[object] | Mapping[str, object]
Described = list[tuple[str, str]]
"""Names and types of columns."""
Place = tuple[str, str]
"""Folded schema and name."""
Key = tuple[str, str, str]
"""Kind, schema and name of an object."""
Source = tuple[str, str, str]
"""What a query reads: its kind (table, call, text or statement), schema and name."""
MOST_ROWS = 1_000_000  # of a batch of a stream, where nothing else is said
#: Later kinds may need earlier ones when the binder is built anew.
RANKS = ("SCHEMA", "TYPE", "SEQUENCE", "TABLE", "INDEX", "MACRO", "VIEW", "COMMENT")


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """A column as DESCRIBE shows it; ``default`` is None where there is none."""

    name: str
    type: str
    default: str | None


@dataclass(frozen=True, slots=True)
class Constraint:
    """PRIMARY KEY, UNIQUE, NOT NULL, CHECK or FOREIGN KEY of a table, and the table's schema.
    ``text`` is the constraint as it is printed, ``expression`` what a CHECK says.
    """

    kind: str
    columns: tuple[str, ...]
    text: str
    expression: str
    schema: str
    parent: str
    parent_columns: tuple[str, ...]
    #: the parent's schema, "" where it is the table's
    parent_schema: str = ""
    #: whether a foreign key says what becomes of its rows, with those that they refer to
    acts: bool = False
    name: str = ""
    #: whether it may be checked when a transaction ends, and is unless somebody says otherwise
    is_deferrable: bool = False
    is_deferred: bool = False


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """PRIMARY KEY, UNIQUE or a unique index: its expressions and the columns that they read."""

    primary: bool
    expressions: tuple[str, ...]
    columns: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key of a table: columns, the parent's (schema, name) and the parent's columns."""

    table: str
    columns: tuple[str, ...]
    parent: tuple[str, str]
    parent_columns: tuple[str, ...]
    #: whether rows change with those that they refer to: ON DELETE or ON UPDATE
    acts: bool = False
    name: str = ""
    #: the name with its schema, as SQL
    path: str = ""
    is_deferrable: bool = False
    is_deferred: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """That a table has a foreign key to another one of its schema."""

    schema: str
    table: str
    parent: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index, and the statement that creates it."""

    schema: str
    name: str
    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as the local engine's catalog shows it. The number stays when the name changes."""

    oid: int
    sql: str


@dataclass(frozen=True, slots=True)
class SystemNames:
    """Names of the engine's own views that describe the schema, and of the functions that do."""

    views: frozenset[str]
    functions: frozenset[str]


class Schema(Protocol):
    """What a database of the local engine's kind declares: the binder, the workspace, or a file.
    Names are compared folded where a table's ``key`` is given, else exactly.
    """

    def snapshot(self, *, macros: bool) -> dict[Key, Seen]:
        """Every object of the user's. Macros are asked for only where they matter."""

    def objects(self) -> list[HomeObject]:
        """Every object except macros as a statement, in an order in which they can be made."""

    def comments(self, *, temporary: bool = False) -> list[HomeObject]:
        """The comments as statements, or those of what is temporary."""

    def text_of(self, kind: str, schema: str, name: str) -> str:
        """The statement that makes a table or view; "" when there is none. Where the dialect
        `prints_objects`, that of any other object as well.
        """

    def columns(self, schema: str, name: str) -> list[ColumnDeclaration]:
        """The columns of a table or view, in order."""

    def generated(self, schema: str, name: str) -> dict[str, str]:
        """What generated columns are computed by, as it is printed, by folded name."""

    def constraints(self, schema: str, name: str) -> list[Constraint]:
        """The constraints of a table, whose names are folded here."""

    def references(self) -> list[Reference]:
        """Every foreign key."""

    def children(self, key: Place) -> list[Place]:
        """Schema and name of the tables that refer to one."""

    def self_keys(self, schema: str, name: str) -> list[tuple[list[str], list[str]]]:
        """The foreign keys of a table to itself: own columns and referenced ones."""

    def unique_indexes(self, key: Place) -> list[tuple[str, list[str]]]:
        """The name and the expressions of every unique index of a table."""

    def indexes(self) -> list[Index]:
        """Every index that a statement created, by name."""

    def without_references(self, table: Table, texts: Sequence[str]) -> str:
        """The statement that makes a temporary table of the same name and rules, without these
        foreign keys, which are all of the table.
        """

    def constant(self, expression: str) -> object | None:
        """The Python value of a constant expression; None for NULL and where it has none."""

    def sequences(self) -> dict[Place, SequenceState]:
        """All sequences by folded schema and name."""

    def resumed(self, sequence: SequenceState) -> str:
        """The statement that makes a sequence which goes on where this one is."""

    def declared(self, text: str) -> str:
        """What a statement of `resumed` says of a sequence beside where it is; "" if no statement
        ever changes that.
        """

    def catch_up(self, behind: SequenceState, ahead: SequenceState) -> None:
        """Have a sequence stand where another instance of it does."""

    def go_on(self, sequence: SequenceState, text: str) -> bool:
        """Have a sequence stand where a statement of `resumed` leaves it, and no more known of what
        the session has drawn; False where the engine has to be built anew for that.
        """

    def last_in(self, sequence: SequenceState, text: str) -> int:
        """The number that was drawn last where a statement of `resumed` leaves a sequence."""

    def draws(self, schema: str, name: str) -> dict[str, Place]:
        """By their folded names the columns of a table that get numbers of sequences, and nothing
        else, where nothing is given.
        """

    def count(self, path: str) -> int:
        """The rows of a table, by its name as SQL."""


class Statements(Protocol):
    """What the local engine says of a statement that it does not run."""

    def require_syntax(self, sql: str) -> None:
        """Raise the engine's own error where it cannot read a statement."""

    def bind(self, sql: str, parameters: Parameters = ()) -> None:
        """Raise the engine's own error where a statement does not bind."""

    def sources(self, sql: str) -> list[Source] | None:
        """What a query reads, by the engine's own parser; None for what it calls no query."""

    def names_read(self, sql: str) -> set[str]:
        """The folded names of tables that a statement reads; raises where it does not bind."""

    def prepared(self, _sql: str, _declared: Sequence[str]) -> tuple[tuple[str, ...], Described]:
        """The types of a statement's placeholders, of which some may be declared, and its columns:
        of an engine that has such.
        """
        return (), []

    def coerced(self, _expressions: Sequence[str], _types: Sequence[str]) -> pa.Table:
        """The values of expressions as those of placeholders of these types, and behind them their
        texts, as one row: of an engine that has such.
        """
        return pa.table({})

    def names_row_type(self, _error: errors.Error) -> bool:
        """Whether the type that an error misses is that of a declared table's rows."""
        return False

    def refused(
        self, _sql: str, *, draws: bool = True, temporary: bool = False,  # noqa: ARG002
    ) -> str:  # fmt: skip
        """What a query or change does that is of the engine which runs it, and not to be had of a
        local one: its name for the user, "" of none. ``draws``: it is known to draw from sequences;
        else it must not. ``temporary``: a part may change rows, of temporary tables alone.
        """
        return ""

    def depends_on_rows_alone(self, _sql: str) -> bool:
        """Whether a query or change reads nothing but rows of tables that it names: not the schema,
        settings, variables or its own text. False where the engine does not know.
        """
        return False

    def exact_value(self, expression: str) -> tuple[bool, object]:
        """The Python value of a constant expression, and whether it means the same again."""

    def values(self, items: Sequence[str], parameters: Parameters = ()) -> pa.Table:
        """The values of some expressions, as one row."""

    def has_function(self, name: str) -> bool:
        """Whether there is a function, or macro, of this name."""

    def has_setting(self, name: str) -> bool:
        """Whether the engine has a setting of this folded name."""

    def setting(self, name: str) -> pa.Table | None:
        """The value of a setting as one text; None where there is none of this name."""

    def system_names(self) -> SystemNames:
        """The names of the engine's own catalog."""

    def broken(self, message: str) -> errors.Error:
        """The engine's error for a broken constraint, which it did not find itself."""

    def own_functions(self) -> frozenset[str]:
        """The folded names of the engine's own functions, which operators may call unsaid."""


class RowQueries(Protocol):
    """Whatever runs a query over rows alone."""

    def over(self, name: str, rows: pa.Table, sql: str) -> pa.Table:
        """A query over rows that stand under a name."""


class LocalConnection(RowQueries, Protocol):
    """One connection to the local engine, which runs SQL of its dialect."""

    def execute(self, sql: str, parameters: Parameters = ()) -> None:
        """Run statements whose rows are of no interest."""

    def fetchall(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement as Python values."""

    def fetchone(self, sql: str, parameters: Parameters = ()) -> tuple[Any, ...] | None:
        """The first row of a statement."""

    def fetch_arrow(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """The rows of a statement."""

    def fetch_described(self, sql: str, parameters: Parameters = ()) -> tuple[Described, pa.Table]:
        """Names and types of the columns of a statement's rows, and the rows."""

    def stream(
        self, sql: str, parameters: Parameters = (), batch_rows: int = MOST_ROWS
    ) -> pa.RecordBatchReader:
        """The rows of a statement, as they are computed, in batches of at most so many."""

    def register(self, name: str, rows: object) -> None:
        """Let statements read rows under a name."""

    def unregister(self, name: str) -> None:
        """Take the name away."""

    def require_key(self, key: UniqueKey, fresh: str, spared: str) -> None:
        """Raise where rows of ``fresh`` repeat a key of ``spared`` or of each other."""

    def require_parent(self, foreign: ForeignKey, fresh: str, parent: str) -> None:
        """Raise where a row of ``fresh`` refers to nothing in ``parent``."""

    def require_unreferenced(self, foreign: ForeignKey, keys: pa.Table, children: pa.Table) -> None:
        """Raise where one of ``children`` refers to one of the keys, the first one that goes."""

    def taken(self, table: str, rows: pa.Table) -> list[str]:
        """What of each column of given rows is put into the column of that name of a table."""

    def require_exact(self, source: str, table: Table, rows: pa.Table) -> None:
        """Raise where new rows of a table, fetched from a source, are not what it holds."""

    def close(self) -> None:
        """End the connection."""


# ---------------------------------------------------------------------- plaintext of the user's


@dataclass(frozen=True, slots=True)
class File:
    """An attached file, and what may be read of it."""

    name: str
    path: str
    tables: frozenset[Place]
    #: all words of the text of each view, and of what this names in the file, by folded name
    views: Mapping[str, frozenset[str]]
    #: folded names of views that do not bind where there is nothing beside the file, and of tables
    #: whose generated columns are computed where they are read, with what is kept there
    foreign: frozenset[str]
    macros: frozenset[str]


@dataclass(frozen=True, slots=True)
class Frame:
    """An object under its name."""

    name: str
    data: object


class Frames(Protocol):
    """Objects of the user's process that have a name."""

    @property
    def known(self) -> Mapping[str, Frame]:
        """All of them by folded name."""


class Files(Protocol):
    """The attached files."""

    @property
    def known(self) -> Mapping[str, File]:
        """All of them by folded name."""

    @property
    def lost(self) -> set[str]:
        """Those that are gone, or no longer what they were."""

    @property
    def tables(self) -> dict[str, frozenset[Place]]:
        """The tables of each, for the flow rule; of "" the named objects."""

    @property
    def frames(self) -> Frames:
        """The named objects."""

    def said(self, tokens: Sequence[Token]) -> list[str]:
        """The files that some tokens may name: by a word before a dot, or as a DATABASE."""
