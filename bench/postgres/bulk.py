"""A queue of jobs that is worked off, and rows that are loaded."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import csv

from bench.oltp.sides import TABLE
from bench.postgres import sides
from bench.postgres.statements import timed

_JOBS = "CREATE TABLE jobs (id BIGINT{enc} PRIMARY KEY, state TEXT{enc}, task TEXT{enc})"
_QUEUED = "INSERT INTO jobs SELECT i, 'new', 'task ' || i FROM range({rows}) AS r(i)"
#: A name, and which job is next.
TAKES = {
    "any new job": "SELECT id, task FROM jobs WHERE state = 'new' LIMIT 1 FOR UPDATE SKIP LOCKED",
    "the first new job": "SELECT id, task FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1"
    " FOR UPDATE SKIP LOCKED",
}
_DONE = "UPDATE jobs SET state = 'done' WHERE id = ?"
_PIECE = 1 << 20
#: The way of a load and the peer's, which is the driver's binary COPY of the same rows in Arrow.
LOADS = ("con.load of Arrow", "COPY … FROM STDIN of csv")


def queue(
    profile: str, rows: int, warm: int, runs: int, budget_s: float
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of both sides: a transaction takes a job, locked, and marks it as done."""
    with sides.opened(profile) as pair:
        for side in pair.both():
            side.execute(_JOBS.format(enc=pair.enc(side)))
            side.execute(_QUEUED.format(rows=rows))
        pair.plain.execute("CREATE INDEX ON jobs (state)")
        pair.plain.execute("ANALYZE")
        results = {
            name: timed(pair, _worker(sql, ordered="ORDER BY" in sql), warm, runs, budget_s)
            for name, sql in TAKES.items()
        }
        pair.equal("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state")
    return results


def _worker(sql: str, *, ordered: bool) -> Callable[[Any, int], Any]:
    def once(side: Any, _: int) -> Any:
        side.execute("BEGIN")
        ((id_, task),) = side.execute(sql).fetchall()
        side.execute(_DONE, [id_])
        side.execute("COMMIT")
        return (id_, task) if ordered else None

    return once


def loads(profile: str, rows: int) -> dict[str, list[float]]:
    """Rows a second of both sides by each way, into a table with a primary key."""
    numbers = pa.array(range(rows), pa.int64())
    texts = pa.array([f"v{number}" for number in range(rows)])
    table = pa.table({"id": numbers, "v": numbers, "s": texts})
    out = io.BytesIO()
    csv.write_csv(table, out, csv.WriteOptions(include_header=False))
    results: dict[str, list[float]] = {}
    with sides.opened(profile) as pair:
        plain = pair.plain.with_types()
        for number, name in enumerate(LOADS):
            for side in pair.both():
                side.execute(
                    TABLE.format(name=f"l{number}", enc=pair.enc(side), key=" PRIMARY KEY")
                )
            start = time.perf_counter()
            if name == LOADS[0]:
                pair.ours.con.load(f"l{number}", table)
            else:
                _copied(pair.ours.con, f"l{number}", out.getvalue())
            middle = time.perf_counter()
            plain.fill(f"l{number}", table.column_names, table)
            end = time.perf_counter()
            results[name] = [rows / (middle - start), rows / (end - middle)]
            pair.equal(f"SELECT count(*), sum(id), sum(v) FROM l{number}")
    return results


def _copied(con: Any, table: str, text: bytes) -> None:
    with con.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        for start in range(0, len(text), _PIECE):
            copy.write(text[start : start + _PIECE])
