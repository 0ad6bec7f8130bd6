"""How much memory an embedded server takes: it runs on somebody's laptop, beside the client.

DuckDB's own default is 80 % of the machine. What it holds beyond a load's needs is only a cache
of its file, so a load into a file runs with a small pool: memory does not grow with the table.
"""

from __future__ import annotations

import ctypes
import functools
import os
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


@contextmanager
def small_pool(connection: duckdb.DuckDBPyConnection, columns: int) -> Iterator[None]:
    """While inside, the whole database instance of a connection keeps little in memory: what the
    rows need that DuckDB gathers before it writes them, of a table of so many columns.

    The setting is made on a connection of its own: a failure there ends no transaction.
    """
    with connection.cursor() as other:
        before = str(_setting(other, "memory_limit"))
        threads = int(_setting(other, "threads"))
        wanted = max(_LOAD, _LOAD_PER_THREAD * threads, _LOAD_PER_COLUMN * columns)
        lowered = wanted < _bytes(before) and _set(other, f"{wanted // _MIB}MiB")
    try:
        yield
    finally:
        if lowered:
            with connection.cursor() as other:
                _set(other, before)


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
        connection.execute(f"SET memory_limit = '{value}'")
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
