"""A DuckDB sandbox for one preparation: it reads one database and nothing else, and it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.untrusted.providers.bounds import PREPARE_SCRATCH, PREPARE_SECONDS
from louver.untrusted.providers.expressions import refused
from louver.untrusted.providers.interruption import Interruption

_DATA = "louver_data"
_BATCH_ROWS = 16_384
#: The kernel's files with a container's memory limit (cgroups of version 2 and 1).
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one preparation.

    Attributes:
        table_bytes: of a prepared table, all its levels together; its rows and its records are in
            memory at the same time. By default a fifth of that memory.
        reply_bytes: of one record, or of the sums of one share.
        rows: of a join.
        seconds: of the whole preparation.
        memory_bytes: of the process, in addition to its base: DuckDB's, results of queries, the
            table. By default a fifth of the machine's, since several may prepare.
        scratch_bytes: on disk, if DuckDB's memory is too small, besides the table.
        threads: of DuckDB; None for all.
    """

    table_bytes: int = field(default_factory=lambda: machine_bytes() // 25)
    reply_bytes: int = 4 << 20
    rows: int = 100_000_000
    seconds: float = PREPARE_SECONDS
    memory_bytes: int = field(default_factory=lambda: machine_bytes() // 5)
    scratch_bytes: int = PREPARE_SCRATCH
    threads: int | None = None

    @property
    def result_bytes(self) -> int:
        """Of one query's result; three are in memory at the same time."""
        return self.memory_bytes // 12

    @property
    def database_bytes(self) -> int:
        """Of DuckDB's memory."""
        return self.memory_bytes * 3 // 8


def machine_bytes() -> int:
    """The memory of this machine, or of the container."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _CONTAINER:
        with suppress(OSError, ValueError):
            size = min(size, int(Path(file).read_text()))
    return size


class Work:
    """A connection for one preparation, see `working`."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, most_bytes: int = 4 << 30,
        check: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`most_bytes` limits one result in memory; `check` raises when time is up."""
        self._connection = connection
        self._most_bytes = most_bytes
        self._check = check

    def run(self, sql: str) -> None:
        """A statement without a result."""
        self._check()
        self._connection.execute(sql)

    def table(self, sql: str) -> pa.Table:
        """The result of a query, without loss; `provider.large` as soon as it is too large."""
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
        """The single number returned by a query; 0 for NULL."""
        self._check()
        (row,) = self._connection.execute(sql).fetchall()
        return int(row[0] or 0)

    def types(self, query: str) -> dict[str, str]:
        """The columns of a query with DuckDB's types."""
        self._check()
        rows = self._connection.execute(f"DESCRIBE {query}").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    def keep(self, name: str, table: pa.Table) -> None:
        """Store an Arrow table as a table."""
        self._check()
        self._connection.register(f"{name}_given", table)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_given")
        self._connection.unregister(f"{name}_given")


@contextmanager
def working(
    database: Path, scratch: Path, limits: Limits, interruption: Interruption | None = None
) -> Iterator[Work]:
    """A separate in-memory DuckDB with `database` attached read-only, and a time limit.

    Raises:
        errors.Error: `provider.refused` with the reason, for whatever DuckDB refuses, or if it
            took too long or too much memory; `interrupted`.
    """
    ended = interruption or Interruption()
    connection = _open(database, scratch, limits)
    try:
        with ended.watching(connection, limits.seconds) as expired:

            def check() -> None:
                ended.check()
                if expired.is_set():
                    raise _late(limits)

            try:
                yield Work(connection, limits.result_bytes, check)
            except (duckdb.Error, pa.ArrowException) as error:
                # Both report an interruption by exceptions of their own.
                check()
                if isinstance(error, duckdb.Error):
                    raise _translated(error) from error
                raise
            check()
    finally:
        connection.close()


def _late(limits: Limits) -> errors.Error:
    return refused(f"it takes longer than {limits.seconds:g} seconds")


def _open(database: Path, scratch: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "temp_directory": str(scratch),
        "memory_limit": f"{limits.database_bytes}B",
        "max_temp_directory_size": f"{limits.scratch_bytes}B",
    }
    if limits.threads is not None:
        config["threads"] = limits.threads
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
    """DuckDB's error as shown to clients: its first line, without local paths."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return refused("it takes more memory than the provider gives")
    if isinstance(error, duckdb.IOException | duckdb.InternalException | duckdb.FatalException):
        return refused("the provider failed at it")
    return refused(str(error).partition("\n")[0][:300])


def listed(items: Sequence[str]) -> str:
    """Items of a clause."""
    return ", ".join(items)
