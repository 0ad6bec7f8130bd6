"""The section `wire`: PostgreSQL's clients through the front door, and directly."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bench import isolate, report
from bench.timing import median
from bench.wire import sides, statements, together, tpcc, tpcc_tables

#: What the door may add, and the shares that it is to reach.
ADDED_MS, ADDED_ENC_MS, LEAST_TPCC, LEAST_COPY = 0.10, 0.20, 0.85, 0.5
AIMED = {
    statements.NO_ENC: ADDED_MS, "point read by key": ADDED_ENC_MS,
    "INSERT of one row": ADDED_ENC_MS, "UPDATE by key": ADDED_ENC_MS, "DELETE by key": ADDED_ENC_MS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured; see `bench.postgres.section.Extent`. ``copied`` are rows,
    ``statements`` those that memory is watched for, ``crowd`` clients connected at once.
    """

    rows: tuple[int, ...]
    tables: tuple[int, ...]
    warm: int
    runs: int
    budget_s: float
    clients: tuple[int, ...]
    seconds: float
    copied: int
    scale: tpcc_tables.Scale
    terminals: int
    warm_s: float
    statements: int
    crowd: int


FULL = Extent(
    (2_000, 2_000_000), (1, 200), 200, 2_000, 10.0, (1, 16), 5.0, 1_000_000,
    tpcc_tables.Scale(2, 10, 300, 1_000), 4, 60.0, 100_000, 500,
)  # fmt: skip
QUICK = Extent(
    (2_000,), (1, 5), 20, 50, 1.0, (1, 4), 1.0, 20_000, tpcc_tables.Scale(1, 2, 30, 100), 2, 5.0,
    2_000, 20,
)  # fmt: skip


def run(*, quick: bool) -> report.Report:
    """All parts, of little data or of much."""
    return measured(QUICK if quick else FULL)


def measured(extent: Extent) -> report.Report:
    """All tables of the section, every measurement in a process of its own."""
    section = report.Report("wire", "The front door: PostgreSQL's clients")
    for rows in extent.rows:
        _statements(section, extent, rows)
    _throughput(section, extent)
    _copies(section, extent)
    _transactions(section, extent)
    _resources(section, extent)
    section.notes += _notes(extent)
    return section


def _notes(extent: Extent) -> Iterator[str]:
    yield (
        "The server is a private one, with fsync off; it has a database behind `louver serve pg` "
        "(profile `cryptdb`) and one with plaintext tables, to which clients connect directly. "
        "All of them use Unix sockets. " + _pooled()
    )
    yield (
        "Single statements are those of psycopg 3, which prepares each, but for those that have "
        "literals, which are in their texts: cells are median / p99 in "
        f"milliseconds of at most {extent.runs:,} runs, or fewer within {extent.budget_s:g} s, "
        f"after {extent.warm} that do not count; the sides run in turns. “Adds” is the difference "
        "of the medians. Columns: id bigint PRIMARY KEY, v bigint, s text, all ENC at the door, "
        "but for the statements that are said to have no ENC column."
    )
    yield (
        "Many clients are pgbench's, one thread, with prepared statements, "
        f"{extent.seconds:g} s behind as many that do not count. "
        f"COPY is that of psycopg, of {extent.copied:,} rows of these columns."
    )
    size = extent.scale
    yield (
        f"TPC-C: {size.warehouses} warehouses of {size.districts} districts with "
        f"{size.customers:,} customers each, {size.items:,} items; all columns of customer are ENC "
        f"at the door; {extent.terminals} terminals without keying and thinking times, threads of "
        f"one process, {extent.warm_s:g} s that do not count and as many that do. The twelve "
        "conditions of clause 3.3.2 hold at the end on both sides."
    )


def _pooled() -> str:
    if sides.POOLER is None:
        return "PgBouncer is not installed on this machine, so it is not a peer here."
    return (
        "PgBouncer pools sessions in front of the plaintext tables: where its older versions pool "
        "transactions, clients prepare nothing."
    )


def _statements(section: report.Report, extent: Extent, rows: int) -> None:
    figures = isolate.run(
        "bench.wire.statements:measured", rows=rows, tables=extent.tables, warm=extent.warm,
        runs=extent.runs, budget_s=extent.budget_s,
    )  # fmt: skip
    for tables, item in zip(extent.tables, figures, strict=True):
        extent_ = f"{rows:,} rows, {tables} table{'s' * (tables > 1)}"
        names = list(item[statements.NO_ENC])
        for form, target in AIMED.items():
            section.lines.append(
                report.Line(
                    f"{form}, {extent_}: over a direct connection", statements.added(item[form]),
                    "ms", "a direct connection", median(item[form]["direct"]), target=target,
                )
            )  # fmt: skip
        lines = [[name, *statements.shown(item[name], report.number)] for name in statements.FORMS]
        header = ["statement", *names, "the door adds"]
        section.grids.append(report.Grid(f"Statements, {extent_}", header, lines))


def _throughput(section: report.Report, extent: Extent) -> None:
    grid: report.Grid | None = None
    for count in extent.clients:
        results = isolate.run(
            "bench.wire.together:throughput", clients=count, rows=extent.rows[0],
            seconds=extent.seconds,
        )  # fmt: skip
        for form in together.FORMS:
            rates = results[form]
            if grid is None:
                header = ["clients", "statement", *(f"{name}, a second" for name in rates)]
                grid = report.Grid("Clients at once", [*header, "the door / direct"], [])
                section.grids.append(grid)
            share = report.number(rates["the door"] / rates["direct"])
            grid.rows.append([str(count), form, *map(report.number, rates.values()), share])


def _copies(section: report.Report, extent: Extent) -> None:
    copies = isolate.run("bench.wire.together:copies", rows=extent.copied)
    section.lines += [
        report.Line(f"{name}, {extent.copied:,} rows", copies[name][0], "rows/s",
                    "a direct connection", copies[name][1], more_is_better=True,
                    target_ratio=LEAST_COPY)
        for name in together.COPIES
    ]  # fmt: skip


def _transactions(section: report.Report, extent: Extent) -> None:
    results = isolate.run(
        "bench.wire.together:transactions", scale=asdict(extent.scale), terminals=extent.terminals,
        warm_s=extent.warm_s, seconds=extent.warm_s,
    )  # fmt: skip
    door, direct = results["the door"], results["direct"]
    section.lines.append(
        report.Line("TPC-C, all columns of customer ENC", door["rate"], "transactions/s",
                    "a direct connection", direct["rate"], more_is_better=True,
                    target_ratio=LEAST_TPCC)
    )  # fmt: skip
    rows = [
        [name, *(cell for own in (door, direct) for cell in (
            str(own["counts"].get(name, 0)), report.number(own["median_ms"].get(name, 0))))]
        for name in tpcc.DECK
    ]  # fmt: skip
    rows.append(["lost against another, ran again", str(door["lost"]), "", str(direct["lost"]), ""])
    header = ["transaction", "the door", "median ms", "direct", "median ms"]
    section.grids.append(report.Grid("TPC-C", header, rows))


def _resources(section: report.Report, extent: Extent) -> None:
    used = isolate.run("bench.wire.together:memory", rows=extent.rows[0], total=extent.statements)
    crowd = isolate.run("bench.wire.together:crowd", clients=extent.crowd)
    section.grids.append(
        report.Grid("Memory and many clients", ["measurement", "figure"], list(_told(used, crowd)))
    )


def _told(used: dict[str, Any], crowd: dict[str, Any]) -> Iterator[list[str]]:
    total, first, last = used["statements"], used["mib"][0], used["mib"][-1]
    yield [f"the door's memory after {total // 10:,} statements", f"{report.number(first)} MiB"]
    yield [f"after {total:,}", f"{report.number(last)} MiB"]
    count = crowd["clients"]
    each_ms = report.number(crowd["connected_s"] / count * 1000)
    yield [f"{count} clients connected at once, each", f"{each_ms} ms to connect"]
    yield ["memory of the door that each takes", f"{report.number(crowd['mib'] / count)} MiB"]
    yield ["connections to the server that each takes", f"{crowd['connections'] / count:g}"]


def main(words: list[str] | None = None) -> int:
    """`python -m bench.wire.section --statements N` or `--clients N`: one measurement as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.wire.section", description=main.__doc__)
    parser.add_argument("--statements", type=int, help="how many the door's memory is watched for")
    parser.add_argument("--clients", type=int, help="how many are connected at once")
    given = parser.parse_args(words)
    if given.statements:
        print(json.dumps(together.memory(2_000, given.statements)))
    if given.clients:
        print(json.dumps(together.crowd(given.clients)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
