"""Ask private questions, show them with their answers, and compare with plaintext DuckDB."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import louver
from examples.providers import running, url
from louver.trusted.apps.demo_console import Question, Service, same


def run(
    words: str | None, table: str, result: Callable[[int], pa.Table], queries: Iterable[Question],
    rows: int, meaning: str,
) -> int:  # fmt: skip
    """An example from its command line: makes a table of `--rows`, starts two providers of it, and
    asks them. 0 if every answer is right, 130 after Ctrl-C.

    Args:
        words: what the example is.
        table: the name of the table.
        result: makes it with so many rows.
        queries: what is asked.
        rows: how many rows by default.
        meaning: what the number of rows means.
    """
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("--rows", type=int, default=rows, help=meaning)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{table}.parquet"
        pq.write_table(result(given.rows), file)
        with suppress(KeyboardInterrupt), running(file) as two:
            print("providers: " + " and ".join(item.address for item in two))
            return 0 if ask(two, file, table, queries) else 1
    return 130


def ask(providers: list[Service], data: Path, table: str, queries: Iterable[Question]) -> bool:
    """Ask all of them; whether every answer equals that of plaintext DuckDB on the same file."""
    right = True
    with louver.connect(url(providers)) as con, duckdb.connect() as plain:
        plain.execute(f"CREATE VIEW {table} AS FROM '{data}'")
        for item in queries:
            print(f"\n── {item.title}: {item.why}")
            print("   " + item.sql.replace("\n", "\n   "))
            print(f"   private: {', '.join(map(str, item.parameters))}")
            started = time.perf_counter()
            answer = con.sql(item.sql, list(item.parameters))
            rows = answer.fetchall()
            spent_ms = (time.perf_counter() - started) * 1000
            for line in answer.text().splitlines():
                print("   " + line)
            equal = same(rows, plain.execute(item.sql, list(item.parameters)).fetchall())
            right = right and equal
            word = "equal to" if equal else "NOT EQUAL TO"
            print(f"   {spent_ms:.0f} ms; {word} plaintext DuckDB's answer")
        print("\n── what each provider has learned")
        for fact in con.leakage().arrow().to_pylist():
            print(f"   {fact['reveals']}")
    return right
