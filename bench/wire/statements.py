"""Single statements of one client: what the door adds to each, in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from bench.timing import median, percentile
from bench.wire import sides

LEAST, FEW = 3, 5
Values = Callable[[int, int], tuple[Any, ...]]
"""The parameters of a statement, from a key that is there and one that is new."""
#: t has ENC columns at the door, and p none.
TABLE = "CREATE TABLE {name} (id bigint{enc} PRIMARY KEY, v bigint{enc}, s text{enc})"
#: What ends the names of statements that have their values in their texts.
LITERALS = "with literals"
NO_ENC = "no ENC column: point read"
FORMS: dict[str, tuple[str, Values]] = {
    NO_ENC: ("SELECT v, s FROM p0 WHERE id = %s", lambda old, _: (old,)),
    "no ENC column: UPDATE by key": (
        "UPDATE p0 SET v = %s WHERE id = %s", lambda old, new: (new, old),
    ),
    "point read by key": ("SELECT v, s FROM t0 WHERE id = %s", lambda old, _: (old,)),
    "INSERT of one row": ("INSERT INTO t0 VALUES (%s, %s, %s)", lambda _, new: (new, 1, "new")),
    "UPDATE by key": ("UPDATE t0 SET v = %s WHERE id = %s", lambda old, new: (new, old)),
    "DELETE by key": ("DELETE FROM t0 WHERE id = %s", lambda old, _: (old,)),
    f"point read by key, {LITERALS}": (
        "SELECT v, s FROM t0 WHERE id = %s", lambda old, _: (old,),
    ),
    f"INSERT of one row, {LITERALS}": (
        "INSERT INTO t0 VALUES (%s, %s, %s)", lambda _, new: (new, 1, f"new {new}"),
    ),
    "BEGIN, read, UPDATE, COMMIT": (
        "BEGIN; SELECT v, s FROM t0 WHERE id = %s; UPDATE t0 SET v = %s WHERE id = %s; COMMIT",
        lambda old, new: (old, new, old),
    ),
}  # fmt: skip
Figures = dict[str, dict[str, list[float]]]
"""By form and side: milliseconds."""


def table(pair: sides.Sides, name: str, rows: int, *, enc: bool) -> None:
    """The same table on both sides, whose columns are ENC at the door or nowhere."""
    for side in pair.all():
        word = f" {side.enc}" if enc and side.enc else ""
        with side.connect() as con:
            con.execute(TABLE.format(name=name, enc=word))
            with con.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for start in range(0, rows, 10_000):
                    last = min(start + 10_000, rows)
                    copy.write("".join(f"{n}\t{n * 3}\tv{n}\n" for n in range(start, last)))


def measured(
    rows: int, tables: Sequence[int], warm: int, runs: int, budget_s: float
) -> list[Figures]:
    """Every form on all sides, which run in turns; once for each number of tables, ascending."""
    results: list[Figures] = []
    with sides.opened() as pair:
        table(pair, "t0", rows, enc=True)
        table(pair, "p0", rows, enc=False)
        there = 1
        for part, count in enumerate(tables):
            for number in range(there, count):
                table(pair, f"t{number}", FEW, enc=True)
            there = count
            connections = {}
            for side in pair.all():
                connections[side.name] = side.connect()
                connections[side.name].execute("ANALYZE")
            results.append({
                name: timed(connections, part * len(FORMS) + position, rows, warm, runs, budget_s)
                for position, name in enumerate(FORMS)
            })  # fmt: skip
            for con in connections.values():
                con.close()
        equal(pair.all(), "SELECT count(*), sum(id), sum(v) FROM t0")
        equal(pair.all(), "SELECT count(*), sum(id), sum(v) FROM p0")
    return results


def equal(items: Sequence[sides.Side], sql: str) -> None:
    """All sides give the same answer, or no time of them means anything."""
    answers = []
    for side in items:
        with side.connect() as con:
            answers.append(con.execute(sql).fetchall())
    if any(answer != answers[0] for answer in answers):
        raise RuntimeError(f"another answer than PostgreSQL's: {sql}: {answers}")


def timed(
    connections: dict[str, psycopg.Connection[Any]],
    nth: int,
    rows: int,
    warm: int,
    runs: int,
    budget_s: float,
) -> dict[str, list[float]]:
    """Milliseconds of one form by side: as many runs as the budget allows, `LEAST` at least, after
    those that warm up. Keys that are there come from all over the table: 7919 is prime, so that
    none comes twice before all have come.
    """
    form, (sql, values) = list(FORMS.items())[nth % len(FORMS)]
    texts, prepares = sql.split("; "), not form.endswith(LITERALS)
    results: dict[str, list[float]] = {name: [] for name in connections}
    fresh, begun = rows + 100_000_000 * (1 + nth), time.perf_counter()
    for number in range(warm + runs):
        if number == warm:
            begun = time.perf_counter()
        if number >= warm + LEAST and time.perf_counter() - begun > budget_s:
            break
        for name, con in connections.items():
            old = (number + nth * (warm + runs)) * 7919 % rows
            given = values(old, fresh + number)
            start = time.perf_counter()
            for text in texts:
                count = text.count("%s")
                result = con.cursor() if prepares else psycopg.ClientCursor(con)
                result.execute(text, given[:count])
                given = given[count:]
                if result.description is not None:
                    result.fetchall()
            if number >= warm:
                results[name].append((time.perf_counter() - start) * 1000)
    return results


def shown(figures: dict[str, list[float]], number: Callable[[float], str]) -> list[str]:
    """Median and p99 of each side, and what the door adds to the direct one."""
    cells = [f"{number(median(own))} / {number(percentile(own, 99))}" for own in figures.values()]
    return [*cells, number(added(figures))]


def added(figures: dict[str, list[float]]) -> float:
    """The difference of the medians of the door and of a direct connection."""
    door, direct, *_ = figures.values()
    return median(door) - median(direct)
