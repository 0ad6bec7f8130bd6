"""Tables to measure on, and connections of Louver and of plaintext DuckDB to hold them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

A_LIMIT, B_LIMIT, GROUPS = 1_000_000, 20_000, 100
"""A and B are uniform below these, so `A < B` holds in 1 % of the rows."""


def table_t(path: Path, rows: int) -> None:
    """T(A, B, G): uniform whole numbers, the same at every run."""
    _write(
        path,
        f"SELECT (hash(i) % {A_LIMIT})::INTEGER AS A, (hash(i + {rows}) % {B_LIMIT})::INTEGER AS B,"
        f" (hash(i + {2 * rows}) % {GROUPS})::INTEGER AS G FROM range({rows}) AS r(i)",
    )


def table_d(path: Path) -> None:
    """D(G, W): one row for every group."""
    _write(path, f"SELECT i::INTEGER AS G, (i * 7 % 100)::INTEGER AS W FROM range({GROUPS}) r(i)")


def table_staff(path: Path, rows: int) -> None:
    """Staff: a number, a text, a date, an amount, and a column that is not encrypted."""
    _write(
        path,
        "SELECT i AS id, 'name ' || (hash(i) % 1000000) AS name,"
        " DATE '2000-01-01' + (hash(i) % 9000)::INTEGER AS born,"
        " ((hash(i + 1) % 10000000) / 100)::DECIMAL(12, 2) AS salary,"
        f" (hash(i + 2) % 80)::INTEGER AS age FROM range({rows}) AS r(i)",
    )


def below(selectivity: float) -> int:
    """The q for which `A < q` holds in this share of the rows."""
    return round(A_LIMIT * selectivity)


@contextmanager
def louver(folder: Path, profile: str) -> Iterator[Any]:
    """A connection to a new database file in a folder, with a key file of its own."""
    state(folder)
    import louver as package

    key = folder / f"{profile}.louverkey"
    package.KeyRing.create(key)
    with package.connect(f"duckdb:///{folder}/{profile}.duckdb", keys=key, profile=profile) as con:
        yield con


def state(folder: Path) -> None:
    """Let Louver keep what it pins in a folder, and not in the user's own."""
    os.environ["LOUVER_STATE_DIR"] = str(folder / "state")


@contextmanager
def plain(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Plaintext DuckDB on a new database file."""
    with duckdb.connect(str(folder / "plain.duckdb")) as con:
        yield con


def _write(path: Path, query: str) -> None:
    with duckdb.connect() as con:
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
