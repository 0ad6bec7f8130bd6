"""DuckDB-Iceberg as the peer: how long it plans over a plaintext table.

`EXPLAIN SELECT count(*) … WHERE value BETWEEN …` makes DuckDB read metadata, manifest list and
all manifests and compare every file's bounds, and opens no Parquet file. That it does all this is
checked: the statement itself, run where few files are hit, takes as long within its noise.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.lake.ranges import Range
from bench.timing import median

EXTENSIONS = ("avro", "iceberg")
"""In the order in which they must be loaded."""


def connect(threads: int, *extensions: str) -> duckdb.DuckDBPyConnection:
    """A connection with the extensions that the packages of PyPI bring."""
    con = duckdb.connect(config={"threads": threads})
    for name in extensions or EXTENSIONS:
        con.execute(f"LOAD '{_extension(name)}'")
    return con


def measure(
    *, metadata: str, threads: int, ranges: list[Range], repeats: int, few: list[Range]
) -> dict[str, Any]:
    """Seconds of every range: planning alone, and the whole statement where `few` files are hit."""
    start = time.perf_counter()
    con = connect(threads)
    load_s = time.perf_counter() - start
    first_s = _plan(con, metadata, ranges[0])
    plans = [[_plan(con, metadata, item) for item in ranges] for _ in range(repeats)]
    run_s = [_run(con, metadata, item) for item in few for _ in range(repeats)]
    again = [_plan(con, metadata, item) for item in few for _ in range(repeats)]
    return {
        "load_s": load_s,
        "first_s": first_s,
        "plan_s": [median(times) for times in zip(*plans, strict=True)],
        "few_run_s": median(run_s) if run_s else None,
        "few_plan_s": median(again) if again else None,
    }


def files_read(metadata: str, item: Range) -> int:
    """How many files DuckDB opens for a range: all of them must exist."""
    con = connect(1)
    con.execute("PRAGMA enable_profiling = 'no_output'")
    figures = con.execute("EXPLAIN ANALYZE " + _query(metadata, item)).fetchall()[0][1]
    mark = "Total Files Read: "
    return int(figures.partition(mark)[2].split()[0]) if mark in figures else 0


def one_row(path: Path, value: int) -> None:
    """A data file that bears one value, for the few that are opened."""
    field = pa.field("value", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([pa.array([value])], pa.schema([field])), path)


def _plan(con: duckdb.DuckDBPyConnection, metadata: str, item: Range) -> float:
    start = time.perf_counter()
    con.execute("EXPLAIN " + _query(metadata, item)).fetchall()
    return time.perf_counter() - start


def _run(con: duckdb.DuckDBPyConnection, metadata: str, item: Range) -> float:
    start = time.perf_counter()
    con.execute(_query(metadata, item)).fetchall()
    return time.perf_counter() - start


def _query(metadata: str, item: Range) -> str:
    """The thesis' listing 17."""
    low, high = item
    return f"SELECT count(*) FROM iceberg_scan('{metadata}') WHERE value BETWEEN {low} AND {high}"


def _extension(name: str) -> Path:
    folder = Path(duckdb.__file__).parents[1] / f"duckdb_extension_{name}"
    return next(folder.rglob(f"{name}.duckdb_extension"))
