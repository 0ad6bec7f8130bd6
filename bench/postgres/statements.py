"""One statement on one row, or on a thousand, of a table with few rows or many."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.oltp.statements import BATCH, BATCHED, INSERT, READ, UPSERT
from bench.postgres import sides
from bench.timing import median, percentile

LEAST, FEW = 3, 5
Values = Callable[[int, int], list[Any]]
"""The parameters of a statement, from a key that is there and one that is new."""
FORMS: dict[str, tuple[str, Values]] = {
    "point read by key": (READ, lambda old, _: [old]),
    "point read by an open code": (READ.replace("t0", "n0"), lambda old, _: [old]),
    "INSERT of one row": (INSERT, lambda _, new: [new, 1, "new"]),
    "UPDATE by key": ("UPDATE t0 SET v = ? WHERE id = ?", lambda old, new: [new, old]),
    "DELETE by key": ("DELETE FROM t0 WHERE id = ?", lambda old, _: [old]),
    "upsert, key is there": (UPSERT, lambda old, new: [old, new, "new"]),
    "upsert, key is new": (UPSERT, lambda _, new: [new, 1, "new"]),
    "UPDATE by an open code": ("UPDATE n0 SET v = ? WHERE id = ?", lambda old, new: [new, old]),
    "DELETE by an open code": ("DELETE FROM n0 WHERE id = ?", lambda old, _: [old]),
    f"INSERT of {BATCH:,} rows": (
        BATCHED, lambda _, new: [v for item in range(BATCH) for v in (new + item, item, "new")],
    ),
}  # fmt: skip
Figures = dict[str, dict[str, list[float]]]
"""By form: milliseconds of both sides."""


def measured(
    profile: str, rows: int, tables: int, warm: int, runs: int, budget_s: float
) -> Figures:
    """Every form on both sides, which run in turns."""
    with sides.opened(profile) as pair:
        pair.table("t0", rows, key=True)
        pair.table("n0", rows, key=False)
        for number in range(2, tables):
            pair.table(f"t{number}", FEW, key=True)
        pair.plain.execute("ANALYZE")
        results = {
            name: _timed(pair, position, rows, warm, runs, budget_s)
            for position, name in enumerate(FORMS)
        }
        for name in ("t0", "n0"):
            pair.equal(f"SELECT count(*), sum(id), sum(v) FROM {name}")
    return results


def shown(figures: list[dict[str, list[float]]]) -> list[str]:
    """Median and p99 of both sides, what Louver adds, and how much both grow, by extent."""
    from bench import report

    cells: list[str] = []
    for position, item in enumerate(figures):
        for side in ("ours", "plain"):
            middle, late = median(item[side]), percentile(item[side], 99)
            cells.append(f"{report.number(middle)} / {report.number(late)}")
        cells.append(report.number(median(item["ours"]) - median(item["plain"])))
        if position:
            grown = (median(item[s]) / median(figures[0][s]) for s in ("ours", "plain"))
            cells += [f"{factor:.2f}×" for factor in grown]
    return cells


def _timed(
    pair: sides.Sides, position: int, rows: int, warm: int, runs: int, budget_s: float
) -> dict[str, list[float]]:
    """As many runs as the budget allows, `LEAST` at least, after those that warm up. Keys that are
    there come from all over the table: 7919 is prime, so none comes twice before all have come.
    """
    sql, values = list(FORMS.values())[position]
    many = sql is BATCHED
    results: dict[str, list[float]] = {"ours": [], "plain": []}
    warm, fresh = min(warm, LEAST) if many else warm, rows + 100_000_000 * (1 + position)
    begun = time.perf_counter()
    for number in range(warm + runs):
        if number == warm:
            begun = time.perf_counter()
        if number >= warm + LEAST and time.perf_counter() - begun > budget_s:
            break
        old = (number + position * (warm + runs)) * 7919 % rows
        given, answers = values(old, fresh + number * BATCH), []
        for side, spent in zip(pair.both(), results.values(), strict=True):
            start = time.perf_counter()
            done = side.execute(sql, given)
            answers.append(done.fetchall() if sql.startswith("SELECT") else None)
            if number >= warm:
                spent.append((time.perf_counter() - start) * 1000)
        if answers[0] != answers[1]:
            raise RuntimeError(f"another answer than PostgreSQL's: {sql}, {given}")
    return results
