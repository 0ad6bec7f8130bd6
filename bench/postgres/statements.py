"""One statement on one row, or on a thousand, of a table with few rows or many."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from bench import report
from bench.oltp.statements import BATCH, BATCHED, INSERT, READ, UPSERT
from bench.postgres import sides
from bench.timing import median, percentile

LEAST, FEW = 3, 5
Values = Callable[[int, int], list[Any]]
"""The parameters of a statement, from a key that is there and one that is new."""
_ROW = "v{}".format
FORMS: dict[str, tuple[str, Values]] = {
    "point read by key": (READ, lambda old, _: [old]),
    "INSERT of one row": (INSERT, lambda _, new: [new, 1, "new"]),
    "UPDATE by key": ("UPDATE t0 SET v = ? WHERE id = ?", lambda old, new: [new, old]),
    "DELETE by key": ("DELETE FROM t0 WHERE id = ?", lambda old, _: [old]),
    "upsert, key is there": (UPSERT, lambda old, new: [old, new, "new"]),
    "upsert, key is new": (UPSERT, lambda _, new: [new, 1, "new"]),
    f"INSERT of {BATCH:,} rows": (
        BATCHED, lambda _, new: [v for item in range(BATCH) for v in (new + item, item, "new")],
    ),
    "point read by an open code": (
        "SELECT id, v FROM t0 WHERE s = ?", lambda old, _: [_ROW(old)],
    ),
    "UPDATE by an open code": (
        "UPDATE t0 SET v = ? WHERE s = ?", lambda old, new: [new, _ROW(old)],
    ),
}  # fmt: skip
Figures = dict[str, dict[str, list[float]]]
"""By form: milliseconds of both sides."""


def measured(
    profile: str, rows: int, tables: Sequence[int], warm: int, runs: int, budget_s: float
) -> list[Figures]:
    """Every form on both sides, which run in turns; once for each number of tables, ascending."""
    results: list[Figures] = []
    with sides.opened(profile) as pair:
        pair.table("t0", rows)
        pair.plain.execute("CREATE INDEX ON t0 (s)")
        there = 1
        for part, count in enumerate(tables):
            for number in range(there, count):
                pair.table(f"t{number}", FEW)
            there = count
            pair.plain.execute("ANALYZE")
            results.append({
                name: _timed(pair, part * len(FORMS) + position, rows, warm, runs, budget_s)
                for position, name in enumerate(FORMS)
            })  # fmt: skip
        pair.equal("SELECT count(*), sum(id), sum(v) FROM t0")
    return results


def shown(figures: Sequence[dict[str, list[float]]]) -> list[str]:
    """Median and p99 of both sides, what Louver adds, and the ratio of the medians, by extent."""
    cells: list[str] = []
    for item in figures:
        for side in ("ours", "plain"):
            middle, late = median(item[side]), percentile(item[side], 99)
            cells.append(f"{report.number(middle)} / {report.number(late)}")
        ours, plain = median(item["ours"]), median(item["plain"])
        cells += [report.number(ours - plain), f"{report.number(ours / plain)}×"]
    return cells


def timed(
    pair: sides.Sides, once: Callable[[Any, int], Any], warm: int, runs: int, budget_s: float
) -> dict[str, list[float]]:
    """Milliseconds of both sides, which run in turns and must return the same: as many runs as the
    budget allows, `LEAST` at least, after those that warm up.
    """
    results: dict[str, list[float]] = {"ours": [], "plain": []}
    begun = time.perf_counter()
    for number in range(warm + runs):
        if number == warm:
            begun = time.perf_counter()
        if number >= warm + LEAST and time.perf_counter() - begun > budget_s:
            break
        answers = []
        for side, spent in zip(pair.both(), results.values(), strict=True):
            start = time.perf_counter()
            answers.append(once(side, number))
            if number >= warm:
                spent.append((time.perf_counter() - start) * 1000)
        if answers[0] != answers[1]:
            raise RuntimeError(f"another answer than PostgreSQL's: {answers[0]}, {answers[1]}")
    return results


def _timed(
    pair: sides.Sides, nth: int, rows: int, warm: int, runs: int, budget_s: float
) -> dict[str, list[float]]:
    """One form. Keys that are there come from all over the table: 7919 is prime, so none comes
    twice before all have come.
    """
    sql, values = list(FORMS.values())[nth % len(FORMS)]
    warm = min(warm, LEAST) if sql is BATCHED else warm
    fresh = rows + 100_000_000 * (1 + nth)

    def once(side: Any, number: int) -> Any:
        old = (number + nth * (warm + runs)) * 7919 % rows
        done = side.execute(sql, values(old, fresh + number * BATCH))
        return done.fetchall() if sql.startswith("SELECT") else None

    return timed(pair, once, warm, runs, budget_s)
