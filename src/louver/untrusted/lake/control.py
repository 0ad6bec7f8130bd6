"""The control file of a warehouse: one SQLite database, used by several processes concurrently.

Every call is a separate transaction, so no client blocks another while it is idle. Readers do not
wait for writers (WAL), and a writer waits for another one for a limited time.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from louver import errors
from louver.wire.control import CATALOG_CREATE, EPOCH_CREATE, LEDGER_CREATE, Batch
from louver.wire.messages import Constant, Count, Rows, Statement

NAME = "louver.sqlite"
WAIT_SECONDS = 30
_PAUSE_SECONDS = 0.005
#: A hostile file may contain views that never end.
_MAX_STEPS = 200_000_000
_STEPS = 1_000_000
#: The limit of one value: a packed catalog, and a little more.
_MAX_VALUE_BYTES = 160 << 20
#: The limit of an answer beyond the size of the file.
_SLACK_BYTES = 64 << 10
_CREATES = (CATALOG_CREATE, LEDGER_CREATE, EPOCH_CREATE)
#: The statements that created the tables, as SQLite stores them.
_TABLES = frozenset(create.sql.replace("IF NOT EXISTS ", "") for create in _CREATES)


class Control(Protocol):
    """Executes batches: a local file, or a remote service."""

    #: A stable name of the warehouse.
    address: str
    #: Whether this client created the control tables.
    created: bool

    def perform(self, batch: Batch) -> list[Rows | Count]:
        """Run a batch; `lake.race` if a count differs from the expected one or a row exists."""
        ...

    def interrupt(self) -> None:
        """Stop the running statement; may be called from another thread."""
        ...

    def close(self) -> None:
        """Close; may be called twice."""
        ...


class ControlFile:
    """The SQLite file in a directory of the warehouse."""

    def __init__(self, directory: str | os.PathLike[str], wait_seconds: float = WAIT_SECONDS):
        """Open or create it; the directory is created if missing."""
        folder = Path(directory).resolve()
        self.address = f"lake:{folder}"
        self._wait = wait_seconds
        self._lock = threading.Lock()
        self._open = True
        self._steps = 0
        with self._translated():
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / NAME
            self.created = not path.exists()
            self._connection = sqlite3.connect(
                path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def perform(self, batch: Batch) -> list[Rows | Count]:
        """Run a batch as one transaction."""
        with self._lock, self._translated():
            if not self._open:
                raise errors.make("database.closed")
            self._steps = 0
            writes = any(statement.kind != "query" for statement in batch.statements)
            self._connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                self._check_tables()
                answers = self._run(batch)
                self._connection.execute("COMMIT" if batch.keep else "ROLLBACK")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise
        return answers

    def interrupt(self) -> None:
        """Stop the running statement."""
        with suppress(sqlite3.Error):
            self._connection.interrupt()

    def close(self) -> None:
        """Close the file."""
        with self._lock, self._translated():
            self._open = False
            self._connection.close()

    def _prepare(self) -> None:
        execute = self._connection.execute
        # The file may have been written by the adversary.
        execute("PRAGMA trusted_schema = OFF")
        execute("PRAGMA cell_size_check = ON")
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        self._connection.set_progress_handler(self._tick, _STEPS)
        execute(f"PRAGMA busy_timeout = {int(self._wait * 1000)}")
        self._keep_a_log()
        # What is pinned locally must survive a power failure here.
        execute("PRAGMA synchronous = FULL")

    def _keep_a_log(self) -> None:
        """Turn WAL on. SQLite does not wait here for others that turn it on at the same time."""
        ends = time.monotonic() + self._wait
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
                if not busy or time.monotonic() >= ends:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _tick(self) -> int:
        self._steps += _STEPS
        return self._steps > _MAX_STEPS

    def _check_tables(self) -> None:
        """Refuse a file that contains more than the control tables.

        A view, a generated column or a table without its index makes SQLite sort more than the file
        stores, in memory or on disk, before the first row is returned.
        """
        room = self._size() + _SLACK_BYTES
        for kind, text in self._connection.execute("SELECT type, sql FROM sqlite_master"):
            known = text in _TABLES if kind == "table" else (kind, text) == ("index", None)
            room -= len(str(text))
            if not known or room < 0:
                detail = "it holds something else than control tables"
                raise errors.make("lake.io", place=self.address, detail=detail)

    def _run(self, batch: Batch) -> list[Rows | Count]:
        answers: list[Rows | Count] = []
        for position, statement in enumerate(batch.statements):
            answer = self._one(statement)
            if position < len(batch.expected) and answer != Count(batch.expected[position]):
                raise errors.make("lake.race", place=self.address)
            answers.append(answer)
        return answers

    def _one(self, statement: Statement) -> Rows | Count:
        named = {str(n): constant for n, constant in enumerate(statement.constants, 1)}
        if statement.kind == "query":
            room = self._size() + _SLACK_BYTES
            return Rows(_table(self._connection.execute(statement.sql, named), room))
        cursor = self._connection.execute(statement.sql, named)
        return Count(max(cursor.rowcount, 0) if statement.kind == "write" else 0)

    def _size(self) -> int:
        """The size of the file in bytes, as seen by this transaction."""
        pages, size = (
            int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "page_size")
        )
        return pages * size

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error
        except OSError as error:
            raise errors.make("lake.io", place=self.address, detail=str(error)) from error

    def _error(self, error: sqlite3.Error) -> BaseException:
        text = str(error)
        if isinstance(error, sqlite3.IntegrityError) or "already exists" in text:
            return errors.make("lake.race", place=self.address)
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return errors.make("lake.busy", place=self.address, seconds=int(self._wait))
        if name.startswith("SQLITE_FULL"):
            return errors.make("disk.full", place=self.address, detail=text)
        if name == "SQLITE_INTERRUPT" and self._steps <= _MAX_STEPS:
            return KeyboardInterrupt()
        if name == "SQLITE_ERROR" or isinstance(error, sqlite3.ProgrammingError):
            return errors.make("lake.statement", place=self.address, detail=text)
        return errors.make("lake.io", place=self.address, detail=text)


def _table(cursor: sqlite3.Cursor, room: int) -> pa.Table:
    """The rows of a query, at most `room` bytes: a hostile file may list a page many times."""
    names = [column[0] for column in cursor.description or ()]
    rows: list[tuple[Constant, ...]] = []
    for row in cursor:
        room -= sum(len(value) if isinstance(value, str | bytes) else 1 for value in row)
        if room < 0:
            raise errors.make("reply.format", detail="an answer is longer than its file")
        rows.append(row)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    try:
        return pa.table([pa.array(list(column)) for column in columns], names=names)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        # SQLite allows any value in any column.
        raise errors.make("reply.format", detail="a column holds values of two types") from error
