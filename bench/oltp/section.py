"""The section `oltp`: statements, clients at once, many tables, and a mix of transactions."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

from bench import isolate, report
from bench.oltp import earlier, growth, sides, statements, together, tpcc
from bench.oltp.tpcc_tables import Scale

Figures = dict[tuple[str, int, bool], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured: rows, runs of a statement, seconds of it and of a crowd's or mix's."""

    rows: tuple[int, ...]
    runs: int
    budget_s: float
    tables: int
    clients: int
    seconds: float
    mix: Scale
    mix_s: float
    profiles: tuple[str, ...] = tuple(sides.PROFILES)


FULL = Extent((2_000, 200_000), 200, 2.0, 200, 16, 3.0, Scale(2, 10, 300, 10_000), 20.0)
QUICK = Extent((2_000, 20_000), 5, 0.1, 10, 4, 0.2, Scale(2, 2, 100, 1_000), 1.0, ("cryptdb",))


def run(*, quick: bool) -> report.Report:
    """Statements, clients at once, many tables, and the mix."""
    return measured(QUICK if quick else FULL)


def measured(extent: Extent) -> report.Report:
    """All tables of the section, every measurement in a process of its own."""
    sizes = " and ".join(f"{rows:,}" for rows in extent.rows)
    section = report.Report("oltp", f"Short statements and transactions, {sizes} rows")
    figures = statement_figures(extent, extent.rows)
    section.grids += statement_grids(extent, extent.rows, figures)
    then = earlier.grid(figures)
    section.grids += [then] if then.rows else []
    section.grids += growth_grids(extent, extent.rows, extent.tables)
    section.grids += [_together(extent), _mix(extent)]
    section.notes += [
        f"These tables cover {sizes} rows. {statement_note(extent)}",
        growth.note(extent.runs),
        *([earlier.NOTE] if then.rows else []),
        "Clients are threads of one process, each with a connection of its own; they write "
        "different rows of one table; ms are median / p99. Only statements that succeeded count "
        "as statements, and an INSERT of 1,000 rows as one. An error ends its statement, which is "
        "not repeated, or its transaction, of which then no statement counts; the UPDATE and "
        "DELETE after an INSERT that failed touch no row and count, which is to the advantage of a "
        "side with errors. Each client runs its form for as long before the clock starts.",
        "The mix: TPC-C's five transactions in decks of "
        + ", ".join(f"{count} {name}" for name, count in tpcc.DECK.items())
        + f", one client, no waiting. {extent.mix.warehouses} warehouses of {extent.mix.districts} "
        f"districts of {extent.mix.customers:,} customers, {extent.mix.items:,} items (the "
        "specification has districts of 3,000 customers and 100,000 items); no foreign "
        "keys, and no columns that no transaction uses. Every column of customer is ENC, the other "
        "tables are plain; all keys are declared on both sides. Both sides run the same "
        "transactions and must end in the same state, in which the conditions 3.3.2.1 to 3.3.2.4 "
        "of the specification hold. This is not a result of TPC-C.",
    ]  # fmt: skip
    return section


def statement_note(extent: Extent) -> str:
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", tempfile.gettempdir()],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    return (
        "Three ENC columns: id BIGINT, v BIGINT, s TEXT; `order` is `sealed` with `MAY REVEAL "
        f"order`. Both databases are files on the same file system ({kind}). Cells are median / "
        "p99 in milliseconds. Both sides run the same text with `?` through `execute` in turns, "
        f"after {statements.WARM} runs that do not count, and have the same keys; no index exists "
        f"beside those. A statement runs {extent.runs} times, or fewer where these take longer "
        f"than {extent.budget_s:g} s, at least {statements.LEAST} times; with fewer than 100 runs "
        "p99 is the slowest. executemany is one transaction; DuckDB's executes row by row, so that "
        "its ratio says little. Without a declared key, ON CONFLICT is an error on both sides."
    )


def statement_figures(extent: Extent, sizes: tuple[int, ...]) -> Figures:
    """What every statement costs, by profile, rows, and whether the table has a key."""
    return {
        (profile, rows, key): isolate.run(
            "bench.oltp.statements:measured", profile=profile, key=key, rows=rows,
            runs=extent.runs, budget_s=extent.budget_s,
        )
        for profile in extent.profiles
        for key in (True, False)
        for rows in sizes
    }  # fmt: skip


def statement_grids(extent: Extent, sizes: tuple[int, ...], figures: Figures) -> list[report.Grid]:
    """A table for each profile, with and without a key."""
    grids = []
    for profile in extent.profiles:
        for key in (True, False):
            declared = "PRIMARY KEY" if key else "no declared key"
            header = ["statement"]
            for rows in sizes:
                header += [f"{rows:,} rows: Louver", "DuckDB", "Louver / DuckDB", "runs"]
            results = [figures[profile, rows, key] for rows in sizes]
            table = [
                [name, *(cell for item in results for cell in statements.shown(item[name]))]
                for name in statements.STATEMENTS
                if name in results[0]
            ]
            grids.append(report.Grid(f"`{profile}`, {declared}", header, table))
    return grids


def _together(extent: Extent) -> report.Grid:
    grid = report.Grid(
        f"{extent.clients} clients that write one table of {extent.rows[0]:,} rows, PRIMARY KEY",
        ["profile", "statements", "Louver, statements/s", "ms", "errors", "DuckDB, statements/s",
         "ms", "errors", "Louver / DuckDB"], [],
    )  # fmt: skip
    for profile in extent.profiles:
        results = isolate.run(
            "bench.oltp.together:measured", profile=profile, clients=extent.clients,
            rows=extent.rows[0], seconds=extent.seconds,
        )  # fmt: skip
        for form in together.FORMS:
            ours, plain = results[form]
            cells = [text for side in (ours, plain) for text in _rate(side)]
            share = report.number(ours["rate"] / plain["rate"])
            grid.rows.append([f"`{profile}`", form, *cells, share])
    return grid


def _rate(side: dict[str, Any]) -> tuple[str, str, str]:
    errors = ", ".join(f"{count:,} {code}" for code, count in side["errors"].items())
    times = f"{report.number(side['median'])} / {report.number(side['p99'])}"
    return report.number(side["rate"]), times, errors or "0"


def growth_grids(extent: Extent, sizes: tuple[int, ...], tables: int) -> list[report.Grid]:
    """What grows, in the profiles that have codes and that have none."""
    profiles = tuple(name for name in extent.profiles if name != "order")
    return growth.grids(profiles, sizes, tables, extent.runs, extent.budget_s)


def _mix(extent: Extent) -> report.Grid:
    grid = report.Grid(
        "A mix like that of TPC-C, customer ENC",
        ["profile", "transactions", "Louver, transactions/s", "DuckDB, transactions/s",
         "Louver / DuckDB", *(f"{name}, ms" for name in tpcc.DECK)], [],
    )  # fmt: skip
    for profile in extent.profiles:
        results = isolate.run(
            "bench.oltp.tpcc:measured", profile=profile, scale=asdict(extent.mix),
            seconds=extent.mix_s,
        )  # fmt: skip
        results = {name: results[name] for name in tpcc.DECK}
        count = sum(ours[0] for ours, _ in results.values())
        ours_s, plain_s = (sum(both[side][1] for both in results.values()) for side in (0, 1))
        rates = [count / ours_s, count / plain_s, plain_s / ours_s]
        times = [
            " ".join((_mean_ms(ours), f"({_mean_ms(plain)})")) for ours, plain in results.values()
        ]
        cells = [report.number(rate) for rate in rates]
        grid.rows.append([f"`{profile}`", f"{count:,}", *cells, *times])
    return grid


def _mean_ms(transactions: list[float]) -> str:
    count, seconds = transactions
    return report.number(1000 * seconds / count)
