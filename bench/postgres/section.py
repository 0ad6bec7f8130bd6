"""The section `postgres`: short statements and clients at once, beside the driver alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench import isolate, report
from bench.postgres import clients, statements
from bench.timing import median

PROFILES = ("cryptdb",)
#: By the issue, of settled and prepared statements by a key, over the driver alone.
ADDED_MS = 0.3
AIMED = ("point read by key", "INSERT of one row", "UPDATE by key", "DELETE by key")


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured: rows and tables, runs that warm up and that count, and clients."""

    sizes: tuple[tuple[int, int], ...]
    warm: int
    runs: int
    budget_s: float
    clients: tuple[int, ...]
    seconds: float


FULL = Extent(((2_000, 2), (2_000, 200), (2_000_000, 2)), 100, 300, 3.0, (1, 16), 3.0)
QUICK = Extent(((2_000, 2), (20_000, 5)), 10, 10, 0.2, (1, 4), 0.2)


def run(*, quick: bool) -> report.Report:
    """Statements with few rows and tables and with many, and clients at once."""
    return measured(QUICK if quick else FULL)


def measured(extent: Extent) -> report.Report:
    """All tables of the section, every measurement in a process of its own."""
    section = report.Report("postgres", "Short statements on a PostgreSQL server")
    for profile in PROFILES:
        figures = [
            isolate.run(
                "bench.postgres.statements:measured", profile=profile, rows=rows, tables=tables,
                warm=extent.warm, runs=extent.runs, budget_s=extent.budget_s,
            )
            for rows, tables in extent.sizes
        ]  # fmt: skip
        section.lines += _lines(figures[0])
        section.grids.append(_statements(profile, extent, figures))
        section.grids.append(_together(profile, extent))
    section.notes += [
        "The server is a private one on a Unix socket, with fsync off; the peer is Louver's own "
        "driver (rust/postgres) on plaintext tables in another database of it: its statements stay "
        "prepared, too. Three columns: id BIGINT, v BIGINT, s TEXT, all ENC on Louver's side. The "
        "table of a read by a key has one on both sides; that by an open code has none, its layer "
        "was taken off by an earlier query, and the plain column is indexed as the codes are.",
        f"Cells are median / p99 in milliseconds of at most {extent.runs} runs, or fewer within "
        f"{extent.budget_s:g} s, after {extent.warm} that do not count: the first conditions of a "
        "table are in the ledger one by one. Both sides run in turns. “Grows” is the median over "
        "that of the first size.",
        "Clients are threads of one process of Python, each with a connection of its own; they "
        f"write different rows of one table of {extent.sizes[0][0]:,} rows. An error ends its "
        "statement, which is not repeated.",
    ]
    return section


def _lines(figures: dict[str, Any]) -> list[report.Line]:
    return [
        report.Line(
            f"{name}, over the driver alone",
            median(figures[name]["ours"]) - median(figures[name]["plain"]),
            "ms", "the driver alone", median(figures[name]["plain"]), target=ADDED_MS,
        )
        for name in AIMED
    ]  # fmt: skip


def _statements(profile: str, extent: Extent, figures: list[dict[str, Any]]) -> report.Grid:
    header = ["statement"]
    for position, (rows, tables) in enumerate(extent.sizes):
        header += [f"{rows:,} rows, {tables} tables: Louver", "driver alone", "Louver adds"]
        header += ["Louver grows", "driver grows"] if position else []
    lines = [
        [name, *statements.shown([item[name] for item in figures])] for name in statements.FORMS
    ]
    return report.Grid(f"`{profile}`: statements", header, lines)


def _together(profile: str, extent: Extent) -> report.Grid:
    grid = report.Grid(
        f"`{profile}`: clients at once",
        ["clients", "statements", "Louver, statements/s", "ms", "errors",
         "driver alone, statements/s", "ms", "errors", "Louver / driver"], [],
    )  # fmt: skip
    for count in extent.clients:
        results = isolate.run(
            "bench.postgres.clients:measured", profile=profile, clients=count,
            rows=extent.sizes[0][0], seconds=extent.seconds,
        )  # fmt: skip
        for form in clients.FORMS:
            ours, plain = results[form]
            cells = [text for side in (ours, plain) for text in _rate(side)]
            grid.rows.append(
                [str(count), form, *cells, report.number(ours["rate"] / plain["rate"])]
            )
    return grid


def _rate(side: dict[str, Any]) -> tuple[str, str, str]:
    errors = ", ".join(f"{count:,} {code}" for code, count in side["errors"].items())
    times = f"{report.number(side['median'])} / {report.number(side['p99'])}"
    return report.number(side["rate"]), times, errors or "0"
