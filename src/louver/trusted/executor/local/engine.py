"""The local engine as a whole: its lifecycle, and what it does for a session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from sqlglot.tokens import Token

from louver.trusted.executor.local.local import (
    Answers,
    Described,
    Files,
    LocalConnection,
    Parameters,
    RowQueries,
    Schema,
    Statements,
)
from louver.trusted.planner.sql.dialect import Dialect
from louver.trusted.vault.catalog import Catalog, HomeObject, Table

if TYPE_CHECKING:
    from louver.trusted.executor.local.changed_rows import Filled, MetRows, Outcome

TemporaryState = tuple[dict[str, str], dict[str, str], dict[str, pa.Table]]
"""The texts of temporary tables and of their indexes, and the tables' rows."""


class TemporaryTables(Protocol):
    """Temporary tables: rows in the workspace, an empty twin in the binder."""

    #: how they were before a transaction first changed one
    before: TemporaryState | None

    @property
    def names(self) -> frozenset[str]:
        """Their folded names."""

    @property
    def sequences(self) -> frozenset[str]:
        """The folded names of temporary sequences, where these come along with the tables."""

    def deferrable(self) -> tuple[bool, bool]:
        """Whether some of their rules may be checked at the end of a transaction, and whether some
        are, unless it is said otherwise.
        """

    def has_index(self, name: str) -> bool:
        """Whether an index of this folded name is of a temporary table, where that counts."""

    def mentioned(self, words: set[str]) -> bool:
        """Whether some folded words name one."""

    def texts(self, words: set[str]) -> list[str]:
        """The definitions of those that a statement names."""

    def state(self) -> TemporaryState:
        """All of them with their rows."""

    def restore(self, state: TemporaryState) -> None:
        """Have these and no others."""

    def mirror(self) -> None:
        """Have in the binder, empty, what the workspace has got."""

    def keep(self) -> None:
        """Remember how they are before a transaction first changes one."""

    def undoing(self) -> AbstractContextManager[None]:
        """Go back to how they were before the transaction, with an engine that goes back too."""

    def fill(self, words: Collection[str]) -> None:
        """Put the rows of those that a statement names into the binder, within a dry run."""


class SearchPath(Protocol):
    """Which schemas names without one mean."""

    @property
    def schemas(self) -> list[str]:
        """The schemas in order; empty for the engine's own default."""

    @property
    def text(self) -> str:
        """How the path was set; empty for the engine's own default."""


class Lifecycle(Protocol):
    """How a local engine begins, changes and ends."""

    #: objects that could not be defined, for what they need is gone
    unresolved: list[HomeObject]

    @property
    def directory(self) -> str:
        """A private directory that goes with the session."""

    @property
    def state(self) -> str:
        """`new`, `broken` while it is built, then `whole`."""

    @property
    def generation(self) -> int:
        """Another number when the engine was made anew."""

    @property
    def revision(self) -> int:
        """Another number when names, types or settings may mean something else."""

    def rebuild(self, catalog: Catalog) -> None:
        """Declare all that a catalog says, anew."""

    def renew(self, catalog: Catalog) -> None:
        """The same after the engine has given itself up."""

    def is_fit(self) -> bool:
        """Whether it answers, once it is left in no transaction."""

    def close(self) -> None:
        """End it, and remove what it spilled."""

    def interrupt(self) -> None:
        """Stop the query that is finished now; may be called from another thread."""

    def define(self, item: HomeObject, catalog: Catalog) -> None:
        """Run the statement that makes an object, in the binder and as fits the workspace."""

    def mirror(self, item: HomeObject, catalog: Catalog) -> None:
        """Make in the workspace what the binder has got."""

    def resolve(self, catalog: Catalog) -> None:
        """Define what is not yet defined, as far as that can be."""

    def forget(self, kind: str, schema: str, name: str) -> None:
        """Drop an object in the workspace, where it may be gone already."""

    def forget_types(self) -> None:
        """After CREATE or DROP TYPE, or when names mean something else."""


class Settings(Protocol):
    """What a session changes of the local engine besides its schema."""

    def change_setting(self, name: str, sql: str) -> None:
        """Run a SET or RESET wherever something is computed or shown."""

    def settings_changed(self, names: Sequence[str]) -> list[str]:
        """Which of these settings the session has changed."""

    def change_path(self, sql: str) -> tuple[str, ...]:
        """Run a statement that sets the search path, or none; the path's folded schemas."""

    def reorders_nulls(self) -> bool:
        """Whether the session has said where NULLs, or rows, stand in an order."""

    def collated(self) -> bool:
        """Whether texts compare by a collation, which codes of theirs do not know."""

    def set_variable(self, name: str, rows: pa.Table, type_: str) -> None:
        """Set a variable to the value of one row of one column."""

    def drop_variable(self, name: str) -> None:
        """Forget a variable, if there is one."""

    def fix_time(self, moment: datetime) -> None:
        """Let the engine say this time."""

    def release_time(self) -> None:
        """Let the time go on."""

    def attach(self, name: str, path: str) -> None:
        """Let statements read a file."""

    def detach(self, name: str) -> None:
        """Let go of a file."""

    def put_frame(self, name: str, data: object) -> None:
        """Let statements read an object of the user's process by a name."""

    def drop_frame(self, name: str) -> None:
        """Take a name away, if it is there."""


class Binder(Protocol):
    """The empty declared schema, which judges statements."""

    @property
    def schema(self) -> Schema:
        """What the binder declares."""

    @property
    def schemas(self) -> tuple[Schema, Schema]:
        """What the binder and the workspace declare."""

    @property
    def statements(self) -> Statements:
        """What the engine says of statements that it does not run."""

    def declare(self, sql: str, parameters: Parameters = ()) -> None:
        """Run a statement on the binder, which stays as it leaves it."""

    def rehearsal(self, *, undone: bool = True) -> AbstractContextManager[LocalConnection]:
        """The dry run: the declared tables, empty, to be changed freely. All is undone at the end,
        unless the engine is built anew anyway.
        """

    def effect_of(
        self,
        connection: LocalConnection,
        filled: Sequence[Filled],
        sql: str,
        parameters: Parameters = (),
        *,
        deferred: bool = False,
    ) -> Outcome:
        """What a user's own change does to rows, within a `rehearsal`, read off each table: of an
        engine whose dialect ``reads_off``. Constraints that are ``deferred`` in the rehearsal are
        not checked.
        """

    def effect_at_once(
        self, filled: Sequence[Filled], sql: str, parameters: Parameters = ()
    ) -> Outcome | None:
        """The same in a rehearsal of its own, of few rows; None where it is to be run step by step,
        which also says what fails.
        """

    def met_by(
        self,
        connection: LocalConnection,
        filled: Sequence[Filled],
        text: tuple[str, str],
        parameters: Parameters,
        aliases: Sequence[tuple[str, Filled]],
    ) -> MetRows:
        """Run a query over rows, within a `rehearsal`: its ``text`` up to its FROM and from there
        on. Each of the ``aliases`` names a table in that FROM, whose row is in every row of the
        answer: of an engine whose dialect ``reads_off``.
        """

    def copy_from(self, connection: LocalConnection, text: tuple[str, str], data: bytes) -> None:
        """Run the engine's COPY of data on the binder's tables within a `rehearsal`: its ``text``
        before and after FROM.
        """

    def key_store(self) -> LocalConnection:
        """A connection of its own beside the declared tables, whose temporary tables may spill."""

    def is_pivot_by_rows(self, sql: str, tokens: Sequence[Token]) -> bool:
        """Whether a statement has a PIVOT whose columns the rows give."""

    def describe(self, sql: str, parameters: Parameters = ()) -> Described:
        """Names and types of a query's columns."""

    def tables_of(self, sql: str) -> set[str]:
        """The names of tables and views that a statement reads."""

    def ask_schema(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """Run a statement on the schema: DESCRIBE, SHOW TABLES, information_schema …"""

    def arrow_field(self, type_: str) -> pa.Field:
        """The Arrow field of a type, without loss."""

    def stored_as(self, type_: str) -> str:
        """The catalog's name of the type that a plain column of a type has on a server that speaks
        the engine's language: one that every such server has.
        """

    def require_received(self, values: pa.ChunkedArray) -> None:
        """Raise for values to be stored that the engine gives and would not take again."""

    def as_stored(self, type_: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values of a plain column of a type as values of the type that it is stored as."""

    def value(self, expression: str) -> pa.Array:
        """The value of a constant expression, as an array of one element."""


class Workspace(RowQueries, Protocol):
    """Where decrypted rows are processed."""

    #: names and types of the last answer: of PIVOT they depend on the data
    last_columns: Described
    #: the rows that the last statement that gives no rows changed, as its engine says; else -1
    last_affected: int

    def finish(
        self,
        answers: Answers,
        sql: str,
        parameters: Parameters = (),
        types: Sequence[str] = (),
        *,
        keeps: bool = False,
    ) -> pa.Table:
        """Run a query on opened rows that fill (schema, name); a temporary table without one."""

    def copy_to(self, rows: pa.Table, columns: Described, options: str) -> Iterator[bytes]:
        """Rows as the engine's COPY … TO STDOUT prints them under these options, in pieces."""

    def finish_over(
        self,
        name: str,
        columns: Sequence[tuple[str, str]],
        rows: pa.Table,
        sql: str,
        parameters: Parameters = (),
        types: Sequence[str] = (),
    ) -> pa.Table:
        """Run a query on a few rows alone, which stand under a name."""

    def changed_by(
        self, table: Table, rows: pa.Table, sql: str, beside: Sequence[Filled] = ()
    ) -> pa.Table:
        """Run a statement on a table with its rows; what the table is afterwards. Where the
        dialect `prints_objects`, that is in the binder, with all that is declared, and with the
        rows ``beside``.
        """

    def write_file(
        self, rows: pa.Table, clauses: str, parameters: Parameters = ()
    ) -> tuple[Described, pa.Table]:
        """COPY rows, with the clauses of the statement from TO on: what it answers."""

    def reader(self) -> LocalConnection:
        """A connection of its own that reads files and what has a name in this process."""

    def apart(self) -> LocalConnection:
        """A connection of its own to the workspace, whose tables are not there between queries."""

    def plain_arrow(self, rows: pa.Table) -> pa.Table:
        """The Arrow that the engine gives by default."""

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """The rows as the Python values that the engine gives."""

    def texts(self, rows: pa.Table) -> list[tuple[str | None, ...]]:
        """The rows with every value as the engine prints it."""

    def write_csv(
        self, rows: pa.Table, names: Sequence[str], write: Callable[[bytes], object]
    ) -> None:
        """Write rows under a header, as the engine's COPY writes them; ``write`` takes bytes."""

    def data_frame(self, rows: pa.Table) -> Any:
        """The rows as a DataFrame of pandas, with the columns' names."""

    def numpy_arrays(self, rows: pa.Table) -> list[Any]:
        """The rows as an array of NumPy for each column."""


class LocalEngine(Lifecycle, Settings, Binder, Workspace, Protocol):
    """All of it, with what a session keeps there."""

    #: the language of its SQL, and so of the session's statements
    dialect: Dialect
    #: whether queries name local data that Python holds
    has_frames: bool

    @property
    def temporary(self) -> TemporaryTables:
        """The temporary tables."""

    @property
    def files(self) -> Files:
        """Attached files and named objects."""

    @property
    def path(self) -> SearchPath:
        """The search path."""

    def beside(self, catalog: Catalog) -> LocalEngine:
        """Another engine of the same kind, built of a catalog, with this one's variables, search
        path, files and temporary tables. The caller closes it.
        """

    def alone(self, catalog: Catalog) -> LocalEngine:
        """Another engine of the same kind, built of a catalog and of nothing else."""
