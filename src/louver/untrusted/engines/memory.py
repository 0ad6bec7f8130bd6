"""How much memory an embedded server takes: it runs on somebody's laptop, beside the client.

DuckDB's own default is 80 % of the machine. What it holds beyond a load's needs is only a cache
of its file, so a load into a file runs with a small pool: memory does not grow with the table.
DuckDB holds all unique indexes in it beside that, those of new rows twice until they are committed.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from louver.names import fold

VARIABLE = "LOUVER_SERVER_MEMORY"
"""The environment's word on the server's memory, such as ``8GB``; ``none`` for DuckDB's own."""
_MIB = 1 << 20
_MOST = 4096 * _MIB
_PART_OF_MACHINE = 4
_LOAD = 128 * _MIB
_LOAD_PER_THREAD = 32 * _MIB
# 122,880 rows of a sealed number, and as much again while they are written.
_LOAD_PER_COLUMN = 12 * _MIB
# An entry of a unique index of 16 random bytes takes about 50 bytes.
_INDEX_ENTRY = 64
_numbers = itertools.count()


def limit() -> str:
    """The memory limit of an embedded server; "" leaves it to DuckDB."""
    setting = os.environ.get(VARIABLE, "").strip()
    if setting:
        return "" if fold(setting) == "none" else setting
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return ""
    return f"{min(machine // _PART_OF_MACHINE, _MOST) // _MIB}MiB"


class SmallPool:
    """How little a database instance may keep in memory while rows are loaded into it: what DuckDB
    gathers of them before it writes them, and the indexes. The limit is that of the whole instance,
    in which several clients may load at once.

    The setting is made on a connection of its own: a failure there ends no transaction.
    """

    def __init__(self) -> None:
        """No client loads."""
        self._lock = threading.Lock()
        self._before = ""
        self._wanted: dict[int, int] = {}

    @contextmanager
    def lowered(
        self, connection: duckdb.DuckDBPyConnection, table: str, columns: int
    ) -> Iterator[Callable[[int], None]]:
        """While inside, little is kept, for a table of so many columns, by its quoted name. What it
        gives is to be told before every statement how many rows the load has by the end of it at
        the most.
        """
        number = next(_numbers)

        def fit(rows: int) -> None:
            threads = int(_setting(connection, "threads"))
            wanted = max(_LOAD, _LOAD_PER_THREAD * threads, _LOAD_PER_COLUMN * columns)
            known, own = _index_entries(connection, table)
            self._fit(connection, number, wanted + 2 * rows * own * _INDEX_ENTRY, known)

        try:
            yield fit
        finally:
            with self._lock:
                self._wanted.pop(number, None)
                if not self._wanted and self._before:
                    _set(connection, self._before)
                    self._before = ""

    def _fit(
        self, connection: duckdb.DuckDBPyConnection, number: int, wanted: int, entries: int
    ) -> None:
        with self._lock:
            # In use is more than estimated where other clients have not committed yet.
            indexes = max(entries * _INDEX_ENTRY, _index_bytes(connection))
            self._wanted[number] = wanted
            limit = sum(self._wanted.values()) + indexes
            before = self._before or str(_setting(connection, "memory_limit"))
            value = f"{limit // _MIB}MiB" if limit < _bytes(before) else before
            if _set(connection, value):
                self._before = before


@functools.cache
def small_pool(_address: str) -> SmallPool:
    """The one of a database file, for all connections of this process."""
    return SmallPool()


def _index_entries(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[int, int]:
    """Entries of all indexes of a database, and how many indexes a table has."""
    row = connection.execute(
        "SELECT coalesce(sum(estimated_size * index_count), 0)::BIGINT,"
        " coalesce(max(index_count) FILTER (WHERE name = $1), max(index_count), 0)::BIGINT"
        f" FROM (SELECT *, {_quoted('schema_name')} || '.' || {_quoted('table_name')} AS name"
        " FROM duckdb_tables())",
        [table],
    ).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def _quoted(name: str) -> str:
    return f"""'"' || replace({name}, '"', '""') || '"'"""


def _index_bytes(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute(
        "SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'ART_INDEX'"
    ).fetchone()
    return int(row[0]) if row else 0


def give_back() -> None:
    """Return freed memory to the system; takes milliseconds. Of many buffers that come and go in
    several threads glibc keeps most, a third of all that was ever loaded.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """The C library's own function; None elsewhere."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return trim


def _set(connection: duckdb.DuckDBPyConnection, value: str) -> bool:
    try:
        with connection.cursor() as other:
            other.execute(f"SET memory_limit = '{value}'")
    except duckdb.Error:
        # What is in use cannot be let go of; then it stays as it was.
        return False
    return True


def _setting(connection: duckdb.DuckDBPyConnection, name: str) -> Any:
    row = connection.execute(f"SELECT current_setting('{name}')").fetchone()
    return row[0] if row else ""


def _bytes(shown: str) -> float:
    """A size as DuckDB shows it, ``3.7 GiB``."""
    number, _, unit = shown.partition(" ")
    units = {"bytes": 1, "KiB": 1 << 10, "MiB": _MIB, "GiB": 1 << 30, "TiB": 1 << 40}
    return float(number) * units.get(unit, 1)
