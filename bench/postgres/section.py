"""The section `postgres`: PostgreSQL's language, beside the driver alone on plaintext tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench import isolate, report
from bench.oltp.together import MIX
from bench.postgres import bulk, clients, statements
from bench.timing import median

PROFILES = ("cryptdb",)
#: What Louver may add to settled and prepared statements by a key, and the part of the driver's
#: statements per second that the mix of many clients is to reach.
ADDED_MS, LEAST_SHARE = 0.3, 0.7
AIMED = ("point read by key", "INSERT of one row", "UPDATE by key", "DELETE by key",
         "upsert, key is there", "upsert, key is new")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured: rows and numbers of tables, runs that warm up and that count, clients,
    jobs, and rows that are loaded.
    """

    rows: tuple[int, ...]
    tables: tuple[int, ...]
    warm: int
    runs: int
    budget_s: float
    clients: tuple[int, ...]
    seconds: float
    jobs: int
    loaded: int


FULL = Extent((2_000, 2_000_000), (1, 200), 100, 1_000, 10.0, (1, 16), 5.0, 20_000,
              1_000_000)  # fmt: skip
QUICK = Extent((2_000,), (1, 5), 10, 10, 0.1, (4,), 0.1, 2_000, 10_000)


def run(*, quick: bool) -> report.Report:
    """All parts, of little data or of much."""
    return measured(QUICK if quick else FULL)


def measured(extent: Extent) -> report.Report:
    """All tables of the section, every measurement in a process of its own."""
    section = report.Report("postgres", "PostgreSQL's language on a PostgreSQL server")
    for profile in PROFILES:
        for rows in extent.rows:
            _statements(section, profile, extent, rows)
        _together(section, profile, extent)
        _bulk(section, profile, extent)
    section.notes += _notes(extent)
    return section


def _notes(extent: Extent) -> Iterator[str]:
    yield (
        "The server is a private one on a Unix socket, with fsync off; the peer is Louver's own "
        "driver (rust/postgres) on plaintext tables in another database of it, whose statements "
        "stay prepared, with values bound. Louver's databases have the language of PostgreSQL, "
        "whose local engine is another PostgreSQL on the same machine. Three columns: id BIGINT "
        "PRIMARY KEY, v BIGINT, s TEXT, all ENC on Louver's side. Of s the peer has an index, and "
        "Louver that of its codes, whose layer an earlier query took off."
    )
    yield (
        f"Cells are median / p99 in milliseconds of at most {extent.runs:,} runs, or fewer within "
        f"{extent.budget_s:g} s, after {extent.warm} that do not count: the first conditions of a "
        "table are in the ledger one by one. Both sides run in turns. “Adds” is the difference of "
        "the medians in milliseconds."
    )
    yield (
        "Clients are threads of one process of Python on both sides, each with a connection of its "
        f"own; they write different rows of one table of {extent.rows[0]:,} rows. An error ends "
        "its statement, which is not repeated."
    )
    yield (
        f"The queue has {extent.jobs:,} jobs, all new at first. A worker begins a transaction, "
        "takes a job by FOR UPDATE SKIP LOCKED, marks it as done, and commits; the time is that of "
        "the whole. The peer has an index on the state. Rows are loaded into a table as above; the "
        "driver loads them by binary COPY from Arrow, also where Louver is given csv."
    )


def _statements(section: report.Report, profile: str, extent: Extent, rows: int) -> None:
    figures = isolate.run(
        "bench.postgres.statements:measured", profile=profile, rows=rows, tables=extent.tables,
        warm=extent.warm, runs=extent.runs, budget_s=extent.budget_s,
    )  # fmt: skip
    header = ["statement"]
    for tables, item in zip(extent.tables, figures, strict=True):
        header += [f"{_counted(tables)}: Louver", "driver alone", "Louver adds", "ratio"]
        for name in AIMED:
            theirs = median(item[name]["plain"])
            section.lines.append(
                report.Line(
                    f"{name}, {rows:,} rows, {_counted(tables)}: over the driver alone",
                    median(item[name]["ours"]) - theirs, "ms", "the driver alone", theirs,
                    target=ADDED_MS,
                )
            )  # fmt: skip
    lines = [
        [name, *statements.shown([item[name] for item in figures])] for name in statements.FORMS
    ]
    section.grids.append(report.Grid(f"`{profile}`: statements, {rows:,} rows", header, lines))


def _counted(tables: int) -> str:
    return f"{tables} table{'s' * (tables > 1)}"


def _together(section: report.Report, profile: str, extent: Extent) -> None:
    grid = report.Grid(
        f"`{profile}`: clients at once",
        ["clients", "statements", "Louver, statements/s", "ms", "errors",
         "driver alone, statements/s", "ms", "errors", "Louver / driver"], [],
    )  # fmt: skip
    for count in extent.clients:
        results = isolate.run(
            "bench.postgres.clients:measured", profile=profile, clients=count,
            rows=extent.rows[0], seconds=extent.seconds,
        )  # fmt: skip
        for form in clients.FORMS:
            ours, plain = results[form]
            cells = [text for side in (ours, plain) for text in _rate(side)]
            grid.rows.append(
                [str(count), form, *cells, report.number(ours["rate"] / plain["rate"])]
            )
        ours, plain = results[MIX]
        section.lines.append(
            report.Line(
                f"{count} client{'s' * (count > 1)}: {MIX}", ours["rate"], "statements/s",
                "the driver alone", plain["rate"], more_is_better=True,
                target_ratio=LEAST_SHARE if count > 1 else None,
            )
        )  # fmt: skip
    section.grids.append(grid)


def _bulk(section: report.Report, profile: str, extent: Extent) -> None:
    queue = isolate.run(
        "bench.postgres.bulk:queue", profile=profile, rows=extent.jobs, warm=extent.warm,
        runs=extent.runs, budget_s=extent.budget_s,
    )  # fmt: skip
    rows = [[name, *statements.shown([queue[name]])] for name in bulk.TAKES]
    header = ["job taken", "Louver", "driver alone", "Louver adds", "ratio"]
    title = f"`{profile}`: a queue of {extent.jobs:,} jobs"
    section.grids.append(report.Grid(title, header, rows))
    loads = isolate.run("bench.postgres.bulk:loads", profile=profile, rows=extent.loaded)
    section.lines += [
        report.Line(f"{name}, {extent.loaded:,} rows", loads[name][0], "rows/s",
                    "the driver's binary COPY", loads[name][1], more_is_better=True)
        for name in bulk.LOADS
    ]  # fmt: skip


def _rate(side: dict[str, Any]) -> tuple[str, str, str]:
    errors = ", ".join(f"{count:,} {code}" for code, count in side["errors"].items())
    times = f"{report.number(side['median'])} / {report.number(side['p99'])}"
    return report.number(side["rate"]), times, errors or "0"
