"""What a short statement costs with few rows and many, with one table and many, on its own and as
one of ten of a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench import report
from bench.oltp import sides
from bench.oltp.statements import BATCH, BATCHED, INSERT, READ, UPSERT
from bench.timing import median, percentile

WARM, LEAST, TOGETHER, FEW = 3, 3, 10, 5
ALONE, OF_TEN = "alone", f"of {TOGETHER}"
#: Tables beside `t0`: without a key, a few rows, and two of which one refers to the other.
BESIDE = {
    "n0": "(id BIGINT{enc}, v BIGINT{enc}, s TEXT{enc})",
    "few": "(id BIGINT{enc}, v BIGINT{enc})",
    "parent": "(id BIGINT{enc} PRIMARY KEY, v BIGINT{enc})",
    "child": "(id BIGINT{enc} PRIMARY KEY, p BIGINT{enc} REFERENCES parent(id))",
}
FILLED = {
    "n0": "SELECT i, i % 1000, 'v' || i FROM range({rows}) AS r(i)",
    "few": f"SELECT i * 3, i FROM range({FEW}) AS r(i)",
    "parent": "SELECT i, i FROM range(2 * {rows}) AS r(i)",
}
Values = Callable[[int, int], list[Any]]
"""The parameters of a statement, from a key that is there and one that is new."""
#: A name, the statement, and its parameters.
FORMS: dict[str, tuple[str, Values]] = {
    "point read by key": (READ, lambda old, _: [old]),
    "point read without a key": (READ.replace("t0", "n0"), lambda old, _: [old]),
    "INSERT of one row": (INSERT, lambda _, new: [new, 1, "new"]),
    f"INSERT of {BATCH:,} rows": (
        BATCHED, lambda _, new: [v for item in range(BATCH) for v in (new + item, item, "new")],
    ),
    "UPDATE by key": ("UPDATE t0 SET v = ? WHERE id = ?", lambda old, new: [new, old]),
    "DELETE by key": ("DELETE FROM t0 WHERE id = ?", lambda old, _: [old]),
    "upsert, key is there": (UPSERT, lambda old, _: [old, 1, "new"]),
    "upsert, key is new": (UPSERT, lambda _, new: [new, 1, "new"]),
    "ON CONFLICT DO NOTHING": (
        f"{INSERT} ON CONFLICT DO NOTHING", lambda old, _: [old, 1, "new"],
    ),
    f"UPDATE … FROM of {FEW} rows": (
        "UPDATE n0 SET v = few.v FROM few WHERE n0.id = few.id", lambda _, __: [],
    ),
    f"MERGE of {FEW} rows": (
        "MERGE INTO n0 USING few ON n0.id = few.id WHEN MATCHED THEN UPDATE SET v = few.v",
        lambda _, __: [],
    ),
    "INSERT with a foreign key": (
        "INSERT INTO child VALUES (?, ?)", lambda old, new: [new, 2 * old],
    ),
    "DELETE of a parent": ("DELETE FROM parent WHERE id = ?", lambda old, _: [2 * old + 1]),
}  # fmt: skip
#: What takes long, and what DuckDB refuses in the transaction that has changed the key's index.
NOT_TOGETHER = (f"INSERT of {BATCH:,} rows", "DELETE of a parent")
Figures = dict[str, dict[str, dict[str, list[float]]]]
"""By form and way: milliseconds of both sides, and of their CPU."""


def measured(profile: str, rows: int, tables: int, runs: int, budget_s: float) -> Figures:
    """Every form on both sides, which run in turns."""
    results: Figures = {}
    with sides.opened(profile) as pair:
        _fill(pair, rows, tables)
        for position, name in enumerate(FORMS):
            given = _given(position, rows)
            results[name] = {
                way: _timed(pair, name, given, runs, budget_s, way) for way in ways(name)
            }
        for table in ("t0", "n0", "parent", "child"):
            pair.equal(f"SELECT count(*), sum(id) FROM {table}")
    return results


def ways(name: str) -> tuple[str, ...]:
    """How a form is measured."""
    return (ALONE,) if name in NOT_TOGETHER else (ALONE, OF_TEN)


def grids(profiles: tuple[str, ...], rows: tuple[int, ...], tables: int, runs: int,
          budget_s: float) -> list[report.Grid]:  # fmt: skip
    """One table for each profile: the forms, with ever more rows, and with many tables."""
    extents = [(count, 1) for count in rows] + ([(rows[0], tables)] if tables > 1 else [])
    results = []
    for profile in profiles:
        header = ["statement", ""]
        for count, beside in extents:
            words = f"{count:,} rows" + (f", {beside} tables" if beside > 1 else "")
            header += [f"{words}: Louver", "DuckDB", "Louver / DuckDB"]
            if (count, beside) != extents[0]:
                header += ["Louver grows", "DuckDB grows"]
        figures = [
            measured_apart(profile, count, beside, runs, budget_s) for count, beside in extents
        ]
        lines = [
            [name, way, *_cells([item[name][way] for item in figures])]
            for name in FORMS
            for way in figures[0][name]
        ]
        results.append(report.Grid(f"`{profile}`: what grows", header, lines))
    return results


def measured_apart(profile: str, rows: int, tables: int, runs: int, budget_s: float) -> Figures:
    """The same in a process of its own."""
    from bench import isolate

    done: Figures = isolate.run(
        "bench.oltp.growth:measured", profile=profile, rows=rows, tables=tables, runs=runs,
        budget_s=budget_s,
    )  # fmt: skip
    return done


def note(runs: int) -> str:
    """What the tables say."""
    return (
        f"What grows: milliseconds of a statement, median / p99 of at most {runs} runs, "
        f"by itself and as one of {TOGETHER} between BEGIN and COMMIT, which are counted with it. "
        "“Grows” is the CPU time of all threads over that of the first column (medians), so that "
        "other work on the machine does not show. The table of UPDATE … FROM, of MERGE and of the "
        "read without a key has none; DuckDB finds its rows by zone maps, for they lie in order."
    )


def _cells(figures: list[dict[str, list[float]]]) -> list[str]:
    cells: list[str] = []
    for position, item in enumerate(figures):
        for side in ("ours", "plain"):
            times = item[side]
            shown = f"{report.number(median(times))} / {report.number(percentile(times, 99))}"
            cells.append(shown)
        cells.append(f"{report.number(median(item['ours']) / median(item['plain']))}×")
        if position:
            cells += [
                f"{median(item[side]) / median(figures[0][side]):.2f}×"
                for side in ("ours_cpu", "plain_cpu")
            ]
    return cells


def _fill(pair: sides.Sides, rows: int, tables: int) -> None:
    pair.table("t0", rows, key=True)
    for side in pair.both():
        for name, columns in BESIDE.items():
            side.execute(f"CREATE TABLE {name} {columns.format(enc=pair.enc(side))}")
            if name in FILLED:
                side.execute(f"INSERT INTO {name} {FILLED[name].format(rows=rows)}")
    for number in range(1, tables - len(BESIDE)):
        pair.table(f"t{number}", FEW, key=True)


def _given(position: int, rows: int) -> Iterator[tuple[int, int]]:
    """A key that is there, from all over the table, and a new one."""
    fresh, number = rows + 100_000_000 * (1 + position), position
    while True:
        number += 1
        # 7919 is prime: no key comes twice before all have come.
        yield number * 7919 % rows, fresh + number * BATCH


def _timed(
    pair: sides.Sides, name: str, given: Iterator[tuple[int, int]], runs: int, budget_s: float,
    way: str,
) -> dict[str, list[float]]:  # fmt: skip
    """As many runs as the budget allows, `LEAST` at least, after those that warm up."""
    results: dict[str, list[float]] = {"ours": [], "plain": [], "ours_cpu": [], "plain_cpu": []}
    count = 1 if way == ALONE else TOGETHER
    begun = time.perf_counter()
    warm = min(WARM, runs)
    for number in range(warm + runs):
        if number == warm:
            begun = time.perf_counter()
        if number >= warm + LEAST and time.perf_counter() - begun > budget_s:
            break
        sql, values = FORMS[name]
        some = [values(*next(given)) for _ in range(count)]
        answers = []
        for side, key in zip(pair.both(), ("ours", "plain"), strict=True):
            start, cpu = time.perf_counter(), time.process_time()
            answers.append(_run(side, sql, some))
            if number >= warm:
                results[key].append((time.perf_counter() - start) * 1000 / count)
                results[f"{key}_cpu"].append((time.process_time() - cpu) * 1000 / count)
        if answers[0] != answers[1]:
            raise RuntimeError(f"another answer than plaintext DuckDB's: {name}, {some}")
    return results


def _run(side: Any, sql: str, some: list[list[Any]]) -> list[Any]:
    if len(some) == 1:
        return [_executed(side, sql, some[0])]
    side.execute("BEGIN")
    answers = [_executed(side, sql, values) for values in some]
    side.execute("COMMIT")
    return answers


def _executed(side: Any, sql: str, values: list[Any]) -> Any:
    done = side.execute(sql, values)
    return done.fetchall() if sql.startswith("SELECT") else None
