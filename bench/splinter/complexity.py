"""Figure 6: rounds, work and bytes of each aggregate and class of conditions, against n."""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import louver
from bench import isolate, report
from bench.report import number
from bench.splinter.client import cpu_seconds
from examples import providers
from louver.trusted.client.inside import session_of

SIZES, QUICK_SIZES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20), (1 << 10, 1 << 12, 1 << 14)
REPEATS = 12
CLAUSES = 24
"""Of disjoint conditions."""
_MANY = ", ".join("?" * CLAUSES)
#: Aggregate, class of the condition, the paper's time, rounds and bytes, and the query.
ROWS = (
    ("SUM", "1-value", "O(n)", "1", "O(1)", "SELECT sum(v) AS s FROM t WHERE k = ?"),
    ("SUM", "interval", "O(n)", "1", "O(1)", "SELECT sum(v) AS s FROM t WHERE k BETWEEN ? AND ?"),
    ("SUM", "disjoint", "O(n)", "1", "O(1)", f"SELECT sum(v) AS s FROM t WHERE k IN ({_MANY})"),
    ("MAX", "1-value", "O(n)", "1", "O(1)", "SELECT max(v) AS m FROM t WHERE k = ?"),
    (
        *("MAX", "interval", "O(n log n)", "2", "O(log n)"),
        "SELECT max(v) AS m FROM t WHERE k BETWEEN ? AND ?",
    ),
    (
        *("MAX", "disjoint", "O(n log n)", "O(log n)", "O(log n)"),
        f"SELECT max(v) AS m FROM t WHERE k IN ({_MANY})",
    ),
    (
        *("TOPK", "1-value", "O(n)", "1", "O(1)"),
        "SELECT v FROM t WHERE k = ? ORDER BY v DESC, i LIMIT 10",
    ),
    (
        *("TOPK", "interval", "O(n log n)", "2", "O(log n)"),
        "SELECT v FROM t WHERE k BETWEEN ? AND ? ORDER BY v DESC, i LIMIT 10",
    ),
    (
        *("TOPK", "disjoint", "O(n log n)", "O(log n)", "O(log n)"),
        f"SELECT v FROM t WHERE k IN ({_MANY}) ORDER BY v DESC, i LIMIT 10",
    ),
)
Told = dict[str, Any]


def run(*, quick: bool) -> report.Report:
    """The section `splinter-protocols`."""
    sizes = QUICK_SIZES if quick else SIZES
    figures = {rows: _size(rows) for rows in sizes}
    section = report.Report(
        "splinter-protocols", "Splinter's protocols against the size of a table"
    )
    section.grids = [_summary(figures), _details(figures)]
    section.plots = [
        _plot(figures, "cpu_ms", "splinter-work", "Work of both providers", "CPU ms"),
        _plot(figures, "bytes", "splinter-bytes", "Bytes of a question, one provider", "bytes"),
    ]
    section.notes = [
        "n rows, every key once, in shuffled order; two providers with one thread each, no delay. "
        f"Work is CPU time of both, the mean of {REPEATS} questions; the exponent is the slope of "
        "its logarithm against that of n over the larger half of the sizes (1 is linear).",
        "A disjoint condition is sent clause by clause in parallel or answered by a search, "
        f"whichever the planner finds cheaper; here it has {CLAUSES} clauses.",
    ]
    return section


def table(rows: int) -> pa.Table:
    """Row number, a key that is unique, a value."""
    chance = np.random.default_rng(rows)
    return pa.table(
        {
            "i": pa.array(np.arange(rows), pa.int32()),
            "k": pa.array(chance.permutation(rows), pa.int32()),
            "v": pa.array(chance.integers(0, 1_000_000, rows), pa.int32()),
        }
    )


def _size(rows: int) -> list[Told]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.parquet"
        pq.write_table(table(rows), file)
        with providers.running(file, options=("--threads", "1")) as two:
            results: list[Told] = isolate.run(
                "bench.splinter.complexity:measure",
                url=providers.url(two), pids=[item.pid for item in two], rows=rows,
            )  # fmt: skip
    return results


def measure(*, url: str, pids: list[int], rows: int) -> list[Told]:
    """Every row of the figure, on one size."""
    warnings.simplefilter("ignore")
    with louver.connect(url) as con:
        return [_one(con, row[-1], pids, rows) for row in ROWS]


def _one(con: Any, sql: str, pids: list[int], rows: int) -> Told:
    chance = np.random.default_rng(rows)
    fleet = session_of(con).context.fleet

    def secrets() -> list[int]:
        if "BETWEEN" in sql:
            return sorted(chance.integers(0, rows, 2).tolist())
        return list(chance.choice(rows, sql.count("?"), replace=False).tolist())

    started = time.perf_counter()
    con.execute(sql, secrets()).fetchall()
    first_ms = (time.perf_counter() - started) * 1000
    con.execute(sql, secrets()).fetchall()
    rounds, traffic, cpu_s = fleet.rounds, fleet.traffic, cpu_seconds(pids)
    up, down = traffic.bytes_out, traffic.bytes_in
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        con.execute(sql, secrets()).fetchall()
        times.append((time.perf_counter() - started) * 1000)
    traffic = fleet.traffic
    each = REPEATS * len(pids)
    return {
        "rounds": (fleet.rounds - rounds) / REPEATS,
        "up": (traffic.bytes_out - up) / each,
        "down": (traffic.bytes_in - down) / each,
        "bytes": (traffic.bytes_out - up + traffic.bytes_in - down) / each,
        "cpu_ms": (cpu_seconds(pids) - cpu_s) * 1000 / REPEATS,
        "ms": median(times),
        "first_ms": first_ms,
    }


def _summary(figures: dict[int, list[Told]]) -> report.Grid:
    sizes = list(figures)
    least, most = sizes[0], sizes[-1]
    rows = []
    for at, (aggregate, condition, time_, rounds, data, _) in enumerate(ROWS):
        first, last = figures[least][at], figures[most][at]
        rows.append(
            [
                aggregate,
                condition,
                *(time_, rounds, data),
                f"{number(first['rounds'])} … {number(last['rounds'])}",
                f"{number(first['bytes'])} … {number(last['bytes'])}",
                f"{number(first['cpu_ms'])} … {number(last['cpu_ms'])}",
                _exponent(figures, at),
            ]
        )
    header = [
        *("aggregate", "condition", "paper: time", "rounds", "bytes"),
        *("rounds", "bytes", "CPU ms", "exponent of the work"),
    ]
    title = f"Figure 6: from n = {least:,} to n = {most:,}"
    return report.Grid(title, header, rows)


def _exponent(figures: dict[int, list[Told]], at: int) -> str:
    sizes = list(figures)
    low, high = sizes[len(sizes) // 2 - 1], sizes[-1]
    work = [figures[n][at]["cpu_ms"] for n in (low, high)]
    if min(work) < 1:
        return "too short to tell"
    return f"{math.log(work[1] / work[0]) / math.log(high / low):.2f}"


def _details(figures: dict[int, list[Told]]) -> report.Grid:
    rows = [
        [
            f"{row[0]}, {row[1]}",
            f"{size:,}",
            *(number(item[k]) for k in ("rounds", "up", "down", "cpu_ms", "ms", "first_ms")),
        ]
        for at, row in enumerate(ROWS)
        for size, results in figures.items()
        for item in [results[at]]
    ]
    header = ["query", "n", "rounds", "bytes up", "bytes down", "CPU ms", "ms", "first, ms"]
    return report.Grid("Every size", header, rows)


def _plot(figures: dict[int, list[Told]], key: str, file: str, title: str, y: str) -> report.Plot:
    series = {
        f"{row[0]}, {row[1]}": [
            (math.log2(size), max(results[at][key], 0.1)) for size, results in figures.items()
        ]
        for at, row in enumerate(ROWS)
    }
    return report.Plot(file, title, "log2 of the number of rows", y, series)
