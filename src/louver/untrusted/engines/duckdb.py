"""DuckDB as the untrusted machine: a file that may be read by the adversary.

It stands where a server would stand, so it gets ciphertext and public values only, and it may
spill what it has beside its file. It reaches neither the network nor any other file.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.untrusted.engines import prepared, server_functions, settings
from louver.untrusted.engines.engine import Prompt, Traffic
from louver.untrusted.engines.failures import quietly, translated
from louver.untrusted.engines.interruption import CtrlC
from louver.untrusted.engines.live_stream import LiveStream
from louver.wire.messages import Constant, Statement

if TYPE_CHECKING:
    from louver.untrusted.engines.engine import Engine
    from louver.untrusted.engines.stored import StoredRows

MEMORY = settings.MEMORY
BATCH_ROWS = 65_536
#: More rows are read by several threads.
_MOST_AT_ONCE = 122_880
_MOST_IN_BATCH = 1_000_000
"""Rows in a batch of an answer that is read whole: as many as DuckDB takes by itself."""
_FEW = 4
"""Constants of statements that may come again with the same ones."""
_names = itertools.count()


class DuckDBEngine(Prompt):
    """One connection to an embedded DuckDB; `side()` gives further ones on the same database."""

    backend = "duckdb"

    def __init__(
        self,
        path: str | os.PathLike[str] = MEMORY,
        threads: int | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        """Open or create the database file at `path`; `:memory:` keeps it in memory."""
        text = os.fspath(path)
        in_memory = text == MEMORY
        #: Whether this connection brought the database into being.
        self.created = in_memory or not Path(text).exists()
        #: A stable name of the database; "" for one that dies with this process.
        self.address = "" if in_memory else place_of(text)
        with translated(self.address):
            connection = duckdb.connect(text, read_only, settings.config(text, threads))
            server_functions.register(connection)
        self._adopt(connection)

    def _adopt(self, connection: duckdb.DuckDBPyConnection) -> None:
        # Where Python has no script, DuckDB would draw a progress bar.
        connection.execute("SET enable_progress_bar = false")
        self._connection = connection
        self._open = True
        self._stream: LiveStream | None = None
        self._prepared = prepared.Prepared(connection)
        self.in_transaction = self._unended = False
        self.traffic = Traffic()

    def side(self) -> DuckDBEngine:
        """A second connection: what it commits stays, whatever this one's transaction does.

        DuckDB closes side connections together with the one that they came from.
        """
        other = object.__new__(DuckDBEngine)
        other.created, other.address = self.created, self.address
        with translated(self.address):
            other._adopt(self._connection.cursor())
        return other

    def query(self, statement: Statement) -> pa.Table:
        """Run a query and return all of its rows."""
        with self._running(statement) as connection, CtrlC(self.interrupt):
            # Of few rows `to_arrow_table` takes a third of a millisecond longer.
            table = connection.to_arrow_reader(_MOST_IN_BATCH).read_all()
        return self._received(table)

    def stream(self, statement: Statement) -> pa.RecordBatchReader:
        """Run a query and return its rows batch by batch.

        DuckDB ends an unfinished stream without a word when its connection runs something
        else; so that no row is lost, what is left of it is then read into memory first.
        """
        self._settle()
        self._send(statement)
        registered = self._register(statement)
        try:
            with translated(self.address):
                result = self._execute(statement)
                reader = result.to_arrow_reader(BATCH_ROWS)
        except BaseException:
            self._unregister(registered)
            raise
        stream = LiveStream(self, reader, lambda: self._unregister(registered))
        self._stream = stream
        return pa.RecordBatchReader.from_batches(reader.schema, iter(stream))

    def value(self, statement: Statement) -> Constant:
        """The first column of a query's first row, None without rows.

        Without constants it runs prepared: about 0.1 ms, for checks before every statement.
        """
        self._settle()
        self._send(statement)
        if statement.constants or statement.tables:
            with self._running(statement, counted=True) as connection:
                row = connection.fetchone()
        else:
            with translated(self.address):
                row = self._connection.execute(self._prepared.named(statement.sql)).fetchone()
        results = cast(Constant, row[0]) if row else None
        self.traffic.bytes_in += len(results) if isinstance(results, bytes) else 8
        self.traffic.rows_in += 1
        return results

    def table_names(self) -> list[str]:
        """The names of all tables, see `Engine`."""
        return cast(list[str], self.query(settings.TABLE_NAMES).column(0).to_pylist())

    def run(self, statement: Statement) -> int:
        """Run a statement and return the number of rows it touched (0 for DDL)."""
        constants = statement.constants
        if constants and len(constants) <= _FEW and statement.kind == "write":
            known = self._prepared.again(statement.sql, constants)
            if known is not None:
                return self._short(statement, known, ())
        with self._running(statement) as connection:
            row = connection.fetchone() if connection.description else None
        counts = statement.kind == "write" and row and isinstance(row[0], int)
        return int(row[0]) if counts and row else 0

    def _short(
        self, statement: Statement, parsed: duckdb.Statement | str, values: Sequence[object]
    ) -> int:
        """Run a write that is over before anyone could stop it; the rows that it touched."""
        self._settle()
        self._send(statement)
        with translated(self.address):
            run = self._connection.execute
            row = (run(parsed, values) if values else run(parsed)).fetchone()
        return int(row[0]) if row else 0

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Insert Arrow rows into the server table with this (quoted) SQL name, by column name.

        A stream is one transaction in bounded memory; what making it raises comes out as it is.
        """
        name = f"louver_in_{next(_names)}"
        columns = ", ".join(quoted(column) for column in rows.schema.names)
        sql = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {name}"
        if isinstance(rows, pa.Table):
            few = prepared.values_of(table, rows)
            if few is not None:
                statement = Statement(few[0], tuple(few[1]), kind="write")
                self._short(statement, self._prepared.statement(few[0]), few[1])
                return
            self.run(Statement(sql, kind="write", tables={name: rows}))
            return
        from louver.untrusted.engines import memory

        own = not self.in_transaction
        if own:
            self.begin()
        try:
            width = len(rows.schema)
            pool = memory.small_pool(self.address).lowered(self._connection, table, width)
            with pool if self.address else nullcontext(_any_size) as fit:
                self._append_stream(sql, name, rows, fit)
        except BaseException:
            if own:
                self.rollback()
            raise
        if own:
            self.commit()

    def _append_stream(
        self, sql: str, name: str, rows: pa.RecordBatchReader, fit: Callable[[int], None]
    ) -> None:
        from louver.untrusted.engines import feeding

        for number, part in enumerate(feeding.statements(rows), 1):
            self._settle()
            with translated(self.address):
                fit(number * feeding.STATEMENT_ROWS)
            self._send(Statement(sql, kind="write"))
            feeding.feed(
                rows.schema, self._counted(part), lambda r: self._insert(sql, name, r),
                self.interrupt,
            )  # fmt: skip

    def _insert(self, sql: str, name: str, rows: pa.RecordBatchReader) -> None:
        """Run in a thread of its own, see `feeding`."""
        with translated(self.address):
            self._connection.register(name, rows)
            try:
                self._connection.execute(sql)
            finally:
                self._unregister([name])

    def _counted(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self.traffic.bytes_out += batch.nbytes
            self.traffic.rows_out += batch.num_rows
            yield batch

    def begin(self) -> None:
        """Open a transaction."""
        self._control("BEGIN TRANSACTION")
        self.in_transaction = True

    def commit(self) -> None:
        """Commit the open transaction; when that fails, it is rolled back."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Undo the open transaction, at the latest when the connection is used again."""
        self._end("ROLLBACK")

    def _end(self, sql: str) -> None:
        self._settle()
        self.in_transaction, self._unended = False, True
        with translated(self.address):
            self._connection.execute(self._prepared.statement(sql))
        self._unended = False

    def lost_race(self, error: errors.Error) -> bool:
        """Whether a statement failed only because another connection was faster."""
        return isinstance(error, errors.IntegrityError) or (
            isinstance(error, errors.DatabaseError) and "onflict" in error.message
        )

    def interrupt(self) -> None:
        """Stop the running statement; may be called from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of the file; an open transaction is undone, an open stream ends."""
        if self._open:
            self._open = False
            self._stream = None
            self._prepared.clear()
            with translated(self.address):
                self._connection.close()

    def _control(self, sql: str) -> None:
        self._settle()
        with translated(self.address):
            self._connection.execute(self._prepared.statement(sql))

    @contextmanager
    def _running(
        self, statement: Statement, counted: bool = False
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Execute a statement with its Arrow inputs in place, and take them away after it."""
        if not counted:
            self._settle()
            self._send(statement)
        registered = self._register(statement)
        try:
            with translated(self.address):
                yield self._execute(statement)
        finally:
            self._unregister(registered)

    def _execute(self, statement: Statement) -> duckdb.DuckDBPyConnection:
        with CtrlC(self.interrupt):
            if statement.constants:
                parsed = self._prepared.statement(statement.sql)
                return self._connection.execute(parsed, list(statement.constants))
            return self._connection.execute(statement.sql)

    def _register(self, statement: Statement) -> list[str]:
        registered: list[str] = []
        try:
            with translated(self.address):
                for name, table in statement.tables.items():
                    self._connection.register(name, _scanned(table))
                    registered.append(name)
        except BaseException:
            self._unregister(registered)
            raise
        return registered

    def _unregister(self, names: list[str]) -> None:
        for name in names:
            # An aborted transaction refuses it; its rollback takes the name away as well.
            with quietly():
                self._connection.unregister(name)

    def _settle(self) -> None:
        """Before the connection is used again: bring an unfinished stream to safety."""
        if not self._open:
            raise errors.make("database.closed")
        if self._stream is not None:
            self._stream.detach()
            self._stream = None
        if self._unended:
            # DuckDB may have ended the transaction before it failed, or not have heard of it.
            with translated(self.address), suppress(duckdb.TransactionException):
                self._connection.execute("ROLLBACK")
            self._unended = False

    def _send(self, statement: Statement) -> None:
        self.traffic.count(statement)

    def _received(self, table: pa.Table) -> pa.Table:
        self.traffic.bytes_in += table.nbytes
        self.traffic.rows_in += table.num_rows
        return table


def _scanned(table: pa.Table) -> object:
    """Rows as DuckDB reads them soonest; a statement reads them once."""
    if table.num_rows <= _MOST_AT_ONCE:
        return table
    from louver import arrow_streams

    return arrow_streams.once(table)


def _any_size(_rows: int) -> None:
    """A database in memory keeps all."""


def place_of(path: str) -> str:
    """A stable name of the database in a file."""
    return "duckdb:" + str(Path(path).resolve())


def open_url(url: str, *, read_only: bool = False) -> DuckDBEngine:
    """The engine of a URL."""
    return DuckDBEngine(settings.file_of(url), read_only=read_only)


def place_of_url(url: str) -> str:
    """The stable name of the database at a URL; "" for one in memory."""
    path = settings.file_of(url)
    return "" if path == MEMORY else place_of(path)


def stored_at(url: str) -> AbstractContextManager[StoredRows]:
    """What the file of a URL stores, read without anything of Louver's."""
    from louver.untrusted.engines import duckdb_storage

    return duckdb_storage.of_file(settings.file_of(url))


def stored_of(engine: Engine) -> StoredRows:
    """What the database of a connection stores, read through a side connection."""
    from louver.untrusted.engines import duckdb_storage, stored

    side = engine.side()
    return stored.StoredRows(lambda sql: side.query(Statement(sql)), duckdb_storage.tables)


def require_database(url: str) -> None:
    """An error where the file exists and is not a database."""
    path = settings.file_of(url)
    if Path(path).exists():
        DuckDBEngine(path).close()
