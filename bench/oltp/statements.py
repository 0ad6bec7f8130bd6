"""One statement on one row, with few rows and many, and with few tables and many."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bench.oltp import sides
from bench.timing import median, percentile

WARM, LEAST, BATCH = 3, 5, 1_000
READ = "SELECT v, s FROM t0 WHERE id = ?"
INSERT = "INSERT INTO t0 VALUES (?, ?, ?)"
UPSERT = INSERT + " ON CONFLICT (id) DO UPDATE SET v = excluded.v"
BATCHED = f"INSERT INTO t0 VALUES {', '.join(['(?, ?, ?)'] * BATCH)}"
#: A name and the statement; the numbers of each run are those of `given`.
STATEMENTS = {
    "point read": READ,
    "INSERT of one row": INSERT,
    f"executemany of {BATCH:,} rows": INSERT,
    f"INSERT of {BATCH:,} rows": BATCHED,
    "UPDATE by key": "UPDATE t0 SET v = ? WHERE id = ?",
    "DELETE by key": "DELETE FROM t0 WHERE id = ?",
    "upsert by key": UPSERT,
}
Figures = dict[str, Any]


def measured(profile: str, key: bool, rows: int, runs: int, budget_s: float) -> dict[str, Figures]:
    """Milliseconds of every statement on both sides, which run in turns."""
    with sides.opened(profile) as pair:
        pair.table("t0", rows, key=key)
        results = {
            name: _timed(pair, name, rows, runs, budget_s)
            for name in STATEMENTS
            if key or STATEMENTS[name] is not UPSERT
        }
        pair.equal("SELECT count(*), sum(id), sum(v), min(s), max(s) FROM t0")
    return results


def shown(figures: Figures) -> list[str]:
    """Median and p99 of both, the ratio of the medians, and the number of runs."""
    from bench import report

    ours, plain = figures["ours"], figures["plain"]
    pairs = [
        f"{report.number(median(times))} / {report.number(percentile(times, 99))}"
        for times in (ours, plain)
    ]
    return [*pairs, f"{report.number(median(ours) / median(plain))}×", str(len(ours))]


def _timed(pair: sides.Sides, name: str, rows: int, runs: int, budget_s: float) -> Figures:
    """As many runs as the budget allows, `LEAST` at least, after those that warm up."""
    times: Figures = {"ours": [], "plain": []}
    begun = time.perf_counter()
    for number, values in enumerate(_given(name, rows)):
        if number == WARM:
            begun = time.perf_counter()
        count = number - WARM
        if count >= runs or (count >= LEAST and time.perf_counter() - begun > budget_s):
            break
        answers = []
        for side, spent in zip(pair.both(), times.values(), strict=True):
            start = time.perf_counter()
            answers.append(_run(side, name, values))
            if number >= WARM:
                spent.append((time.perf_counter() - start) * 1000)
        if answers[0] != answers[1]:
            raise RuntimeError(f"another answer than plaintext DuckDB's: {name}, {values}")
    return times


def _run(side: Any, name: str, values: list[Any]) -> Any:
    sql = STATEMENTS[name]
    if not name.startswith("executemany"):
        done = side.execute(sql, values)
        return done.fetchall() if sql is READ else None
    # In one transaction, so that neither side commits row by row.
    side.begin()
    side.executemany(sql, values)
    side.commit()
    return None


def _given(name: str, rows: int) -> Iterator[list[Any]]:
    """The parameters of each run: keys from all over the table, or new ones."""
    fresh = rows + 1_000_000 * (1 + list(STATEMENTS).index(name))
    number = 0
    while True:
        number += 1
        # 7919 is prime: no key comes twice before all have come.
        key = number * 7919 % rows
        if name.endswith("rows"):
            first = fresh + number * BATCH
            batch = [[first + item, item, "new"] for item in range(BATCH)]
            yield batch if name.startswith("executemany") else [v for row in batch for v in row]
        elif name.startswith("INSERT"):
            yield [fresh + number, number, "new"]
        elif name.startswith("upsert"):
            yield [fresh + number if number % 2 else key, number, "new"]
        else:
            yield [number, key] if name.startswith("UPDATE") else [key]
