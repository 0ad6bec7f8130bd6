"""A DuckDB in which one preparation runs: it reads one database and nothing else, and it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.untrusted.providers.expressions import refused

_DATA = "louver_data"
_BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class Limits:
    """What one preparation may take.

    Attributes:
        table_bytes: of a prepared table, all its levels together.
        reply_bytes: of one record, or of the sums of one share.
        rows: of a join.
        seconds: of the whole preparation.
        memory_bytes: of DuckDB; by default a quarter of the machine's, for several may prepare.
        threads: of DuckDB; None for all.
    """

    table_bytes: int = 4 << 30
    reply_bytes: int = 4 << 20
    rows: int = 100_000_000
    seconds: float = 120.0
    memory_bytes: int | None = field(default_factory=lambda: _memory_bytes() // 4)
    threads: int | None = None


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Work:
    """A connection for one preparation, see `working`."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, most_bytes: int = 4 << 30,
        check: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`most_bytes` is what one result may take in memory; `check` raises when time is up."""
        self._connection = connection
        self._most_bytes = most_bytes
        self._check = check

    def run(self, sql: str) -> None:
        """A statement without a result."""
        self._check()
        self._connection.execute(sql)

    def table(self, sql: str) -> pa.Table:
        """What a query gives, without loss; `provider.large` as soon as it is too much."""
        self._check()
        reader = self._connection.execute(sql).to_arrow_reader(_BATCH_ROWS)
        batches, taken = [], 0
        for batch in reader:
            taken += batch.nbytes
            if taken > self._most_bytes:
                raise errors.make("provider.large", bytes=taken, most=self._most_bytes)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)

    def number(self, sql: str) -> int:
        """The one number that a query gives."""
        (row,) = self._connection.execute(sql).fetchall()
        return int(row[0] or 0)

    def types(self, query: str) -> dict[str, str]:
        """The columns of a query with DuckDB's types."""
        rows = self._connection.execute(f"DESCRIBE {query}").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    def keep(self, name: str, table: pa.Table) -> None:
        """Make a table of an Arrow table."""
        self._connection.register(f"{name}_given", table)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_given")
        self._connection.unregister(f"{name}_given")


@contextmanager
def working(database: Path, scratch: Path, limits: Limits) -> Iterator[Work]:
    """A DuckDB of its own in memory, with `database` attached read-only; ended after a time.

    Raises:
        errors.Error: `provider.refused` with the reason, for whatever DuckDB refuses, or if it
            took too long or too much memory.
    """
    connection = _open(database, scratch, limits)
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        connection.interrupt()

    def check() -> None:
        # What DuckDB did not run when the time was up was not interrupted.
        if expired.is_set():
            raise refused(f"it takes longer than {limits.seconds:g} seconds")

    timer = threading.Timer(limits.seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield Work(connection, (limits.memory_bytes or _memory_bytes()) // 4, check)
        check()
    except duckdb.Error as error:
        if expired.is_set():
            raise refused(f"it takes longer than {limits.seconds:g} seconds") from error
        raise _translated(error) from error
    finally:
        timer.cancel()
        connection.close()


def _open(database: Path, scratch: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "temp_directory": str(scratch),
    }
    if limits.threads is not None:
        config["threads"] = limits.threads
    if limits.memory_bytes is not None:
        config["memory_limit"] = f"{limits.memory_bytes}B"
        config["max_temp_directory_size"] = f"{4 * limits.memory_bytes}B"
    connection = duckdb.connect(":memory:", config=config)
    try:
        escaped = str(database).replace("'", "''")
        for sql in (
            f"ATTACH '{escaped}' AS {_DATA} (READ_ONLY)",
            f"USE {_DATA}",
            "SET arrow_lossless_conversion = true",
            "SET preserve_insertion_order = true",
            "SET TimeZone = 'UTC'",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            connection.execute(sql)
    except duckdb.Error:
        connection.close()
        raise
    return connection


def _translated(error: duckdb.Error) -> errors.Error:
    """What a stranger is told of an error of DuckDB: its first line, without paths of ours."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return refused("it takes more memory than the provider gives")
    if isinstance(error, duckdb.IOException | duckdb.InternalException | duckdb.FatalException):
        return refused("the provider failed at it")
    return refused(str(error).partition("\n")[0][:300])


def listed(items: Sequence[str]) -> str:
    """Items of a clause."""
    return ", ".join(items)
