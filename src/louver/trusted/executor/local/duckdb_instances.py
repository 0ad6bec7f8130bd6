"""Two DuckDB instances in memory, the binder and the workspace, and what runs in one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from louver import errors, private_folders
from louver.names import fold, quoted
from louver.private_folders import PrivateFolder
from louver.trusted.executor.local import arrow_values, object_texts, transaction_time
from louver.trusted.executor.local.attached import Files
from louver.trusted.executor.local.connection import DuckDBConnection, translated
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.local.local import (
    Described,
    LocalConnection,
    Parameters,
    Statements,
)
from louver.trusted.executor.local.search_path import SearchPath
from louver.trusted.executor.local.variables import Variables
from louver.trusted.vault.catalog import Table

if TYPE_CHECKING:
    from louver.trusted.executor.local.changed_rows import Filled, MetRows, Outcome

Option = str | bool | int | float | list[str]
#: The private directories of the engines that are open.
LIVE: set[PrivateFolder] = set()
_ROWS = "louver_rows"
_PREFIX = "louver-home-"


def options(directory: str, *, lossless: bool = True) -> dict[str, Option]:
    """How every local DuckDB is opened; ``directory`` is a private one, to spill into."""
    return {
        "temp_directory": directory,
        "temp_file_encryption": "true",
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        # A file that is loaded is read once.
        "enable_external_file_cache": "false",
        "arrow_lossless_conversion": "true" if lossless else "false",
    }


class DuckDBInstances:
    """Both instances, and the private directory that the workspace may spill into, encrypted."""

    def __init__(self) -> None:
        #: a private directory that goes with the session
        base = Path(tempfile.gettempdir())
        private_folders.sweep_once(_PREFIX, base)
        self._own = private_folders.new(_PREFIX, base)
        self.directory = str(self._own.path)
        LIVE.add(self._own)
        self.binder = self._connect()
        self.workspace = self._connect()
        self._converter: duckdb.DuckDBPyConnection | None = None
        #: another number when the instances are others
        self.generation = 0

    def _connect(self, *, lossless: bool = True) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(":memory:", config=options(self.directory, lossless=lossless))

    def _replace(self) -> None:
        for connection in (self.binder, self.workspace):
            connection.close()
        self.binder, self.workspace = self._connect(), self._connect()
        self.generation += 1

    @property
    def instances(self) -> list[duckdb.DuckDBPyConnection]:
        """All instances that there are now."""
        converter = [] if self._converter is None else [self._converter]
        return [self.binder, self.workspace, *converter]

    def close(self) -> None:
        """End all instances and remove what they spilled."""
        for connection in self.instances:
            connection.close()
        self._own.remove()
        LIVE.discard(self._own)

    def interrupt(self) -> None:
        """Stop the query that is finished now; may be called from another thread."""
        self.workspace.interrupt()

    def is_fit(self) -> bool:
        """Whether all instances answer, once none is left in a transaction."""
        try:
            for connection in self.instances:
                with suppress(duckdb.Error):
                    connection.execute("ROLLBACK")
                connection.execute("SELECT 1")
        except duckdb.Error:
            return False
        return True

    @property
    def schema(self) -> DuckDBSchema:
        """What the binder declares."""
        return DuckDBSchema(self.binder)

    @property
    def schemas(self) -> tuple[DuckDBSchema, DuckDBSchema]:
        """What the binder and the workspace declare."""
        return self.schema, DuckDBSchema(self.workspace)

    @property
    def statements(self) -> Statements:
        """What DuckDB says of statements that it does not run; few sessions ask."""
        from louver.trusted.executor.local.duckdb_statements import DuckDBStatements

        return DuckDBStatements(self.binder, self.workspace)

    # ------------------------------------------------------------------ the binder

    def declare(self, sql: str, parameters: Parameters = ()) -> None:
        """Run a statement on the binder, which stays as it leaves it."""
        try:
            DuckDBConnection(self.binder).execute(sql, parameters)
        except errors.Error:
            # After an ALTER that fails, DuckDB takes its next statement for one of a transaction.
            _undo(self.binder)
            raise

    @contextmanager
    def rehearsal(self, *, undone: bool = True) -> Iterator[LocalConnection]:
        """The declared tables, empty, to be changed freely: all is undone at the end, unless the
        engine is built anew anyway.
        """
        if not undone:
            yield DuckDBConnection(self.binder)
            return
        connection = self.binder
        try:
            with translated():
                connection.execute("BEGIN TRANSACTION")
                yield DuckDBConnection(connection)
        finally:
            _undo(connection)

    def effect_of(
        self,
        _: LocalConnection,
        __: Sequence[Filled],
        ___: str,
        ____: Parameters = (),
        *,
        deferred: bool = False,  # noqa: ARG002
    ) -> Outcome:
        """See `Binder`; DuckDB has a text for each form of change (`change.changing`)."""
        raise errors.make("internal", detail="DuckDB does not read changes off")

    def effect_at_once(self, _: Sequence[Filled], __: str, ___: Parameters = ()) -> Outcome | None:
        """See `Binder`."""
        raise errors.make("internal", detail="DuckDB does not read changes off")

    def met_by(
        self,
        _: LocalConnection,
        __: Sequence[Filled],
        ___: tuple[str, str],
        ____: Parameters,
        _____: Sequence[tuple[str, Filled]],
    ) -> MetRows:
        """See `Binder`; DuckDB has no locks of rows."""
        raise errors.make("internal", detail="DuckDB does not read rows off")

    def copy_from(self, _: LocalConnection, __: tuple[str, str], ___: bytes) -> None:
        """See `Binder`; DuckDB's COPY is of files."""
        raise errors.make("local.feature", feature="COPY FROM STDIN")

    def copy_to(self, _: pa.Table, __: Described, ___: str) -> Iterator[bytes]:
        """See `Workspace`; DuckDB's COPY is of files."""
        raise errors.make("local.feature", feature="COPY TO STDOUT")

    def key_store(self) -> LocalConnection:
        """A connection of its own beside the declared tables, whose temporary tables may spill."""
        return DuckDBConnection(self.binder.cursor())

    # ------------------------------------------------------------------ the workspace

    def reader(self) -> LocalConnection:
        """A connection of its own that reads files and what has a name in this process."""
        return DuckDBConnection(self.workspace.cursor())

    def apart(self) -> LocalConnection:
        """A connection of its own to the workspace."""
        return self.reader()

    def over(self, name: str, rows: pa.Table, sql: str) -> pa.Table:
        """A query over rows that stand under a name."""
        return DuckDBConnection(self.workspace).over(name, rows, sql)

    def changed_by(
        self, table: Table, rows: pa.Table, sql: str, _beside: Sequence[Filled] = ()
    ) -> pa.Table:
        """Run a statement on a table with its rows; what the table is afterwards.

        DuckDB's own error comes up where the rows do not allow it: duplicates, NULLs, failed casts.
        The rows are committed for a moment, since DuckDB checks an index over those only.
        """
        workspace = self.workspace
        items = ", ".join(f"{quoted(c.name)}::{c.type} AS {quoted(c.name)}" for c in table.columns)
        statement = f"CREATE OR REPLACE TABLE {table.local_name} AS SELECT {items} FROM {_ROWS}"
        with translated():
            arrow_values.register(workspace, _ROWS, rows)
            try:
                workspace.execute(statement)
                workspace.execute(sql)
                return workspace.execute(f"SELECT * FROM {table.local_name}").to_arrow_table()
            finally:
                workspace.unregister(_ROWS)
                workspace.execute(f"DROP TABLE IF EXISTS {table.local_name} CASCADE")

    def write_file(
        self, rows: pa.Table, clauses: str, parameters: Parameters = ()
    ) -> tuple[Described, pa.Table]:
        """COPY rows, with the clauses of the statement from TO on: what it answers."""
        # Arrow finds columns by name, and two may have the same.
        names = [f"c{position}" for position in range(rows.num_columns)]
        pairs = zip(names, rows.column_names, strict=True)
        items = ", ".join(f"{name} AS {quoted(column)}" for name, column in pairs)
        sql = f"COPY (SELECT {items} FROM {_ROWS}) {clauses}"
        connection = DuckDBConnection(self.workspace)
        connection.register(_ROWS, rows.rename_columns(names))
        try:
            return connection.fetch_described(sql, parameters)
        finally:
            connection.unregister(_ROWS)

    def add_functions(self, register: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Let functions that are written in Python be called in the workspace."""
        register(self.workspace)

    def forget(self, kind: str, schema: str, name: str) -> None:
        """Drop an object in the workspace, where it may be gone already, as with its schema."""
        qualified = quoted(name) if kind == "SCHEMA" else object_texts.place_of(schema, name)
        with suppress(duckdb.Error):
            self.workspace.execute(f"DROP {kind} IF EXISTS {qualified} CASCADE")


class DuckDBKept(DuckDBInstances):
    """Both instances with what a session has set in them."""

    def __init__(self) -> None:
        super().__init__()
        self.variables, self.path, self.files = Variables(), SearchPath(), Files()
        #: changes when names, types or settings may mean something else
        self.revision = 0

    def forget_types(self) -> None:
        """After CREATE or DROP TYPE, or when names mean something else."""
        self.revision += 1

    def fix_time(self, moment: datetime) -> None:
        """Let both instances say this time."""
        with translated():
            transaction_time.fix((self.binder, self.workspace), moment)
        self.forget_types()

    def release_time(self) -> None:
        """Let the time go on."""
        with translated():
            transaction_time.release((self.binder, self.workspace))
        self.forget_types()

    def put_frame(self, name: str, data: object) -> None:
        """Give an object a name in both instances."""
        with translated():
            self.files.put((self.binder, self.workspace), name, data)
        self.forget_types()

    def drop_frame(self, name: str) -> None:
        """Take a name away, if it is there."""
        if fold(name) in self.files.frames.known:
            self.files.drop((self.binder, self.workspace), name)
            self.forget_types()

    def stored_as(self, type_: str) -> str:
        """See `Binder`: a server of DuckDB's has the same types."""
        return type_

    def require_received(self, _values: pa.ChunkedArray) -> None:
        """See `Binder`: DuckDB takes all that it gives."""

    def as_stored(self, _type: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """See `Binder`."""
        return values

    def attach(self, name: str, path: str) -> None:
        """Attach a file, read only, to both instances."""
        with translated():
            self.files.attach((self.binder, self.workspace), name, path, options(self.directory))

    def detach(self, name: str) -> None:
        """Let go of a file."""
        with translated():
            self.files.detach((self.binder, self.workspace), name)

    def set_variable(self, name: str, rows: pa.Table, type_: str) -> None:
        """Set a variable to the value of one row of one column."""
        with translated():
            self.variables.put((self.binder, self.workspace), name, rows, type_)

    def drop_variable(self, name: str) -> None:
        """Forget a variable, if there is one."""
        with translated():
            self.variables.drop((self.binder, self.workspace), name)


def _undo(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
    except RuntimeError as error:
        # DuckDB's word for Ctrl-C, which came just now: what was to be undone still is.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise (KeyboardInterrupt() if "interrupted" in str(error) else error) from None
