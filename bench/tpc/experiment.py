"""Every query of a benchmark under every policy, beside plaintext DuckDB on the same data.

Data, queries and policies are those of `tests/tpc`. Each policy has a process of its own, which
loads the tables, asks every query, compares the answer, and then measures: the first time apart,
when layers are opened and plans are made, and afterwards the median.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from bench import asking, data, isolate, report
from bench.timing import median
from louver import LeakageWarning
from tests.tpc import harness, sources

SCALES, QUICK_SCALES = (0.1, 1.0), (0.01,)
VARIABLE = "LOUVER_TPC_SCALES"
"""The environment's word on the scales, such as ``0.1`` or ``0.1,1``."""
#: The steps of a statement as they are shown, and their names within Louver.
STEPS = {
    "plan": ("plan",),
    "bind": ("bind",),
    "server": ("open layers", "keep", "server"),
    "open": ("open",),
    "finish": ("finish",),
}
RUNS = 3
Measured = dict[str, Any]


def run(name: str, title: str, *, quick: bool) -> report.Report:
    """All scales and policies of one benchmark."""
    section = report.Report(name, title)
    told_scales = tuple(float(item) for item in os.environ.get(VARIABLE, "").split(",") if item)
    for scale in told_scales or (QUICK_SCALES if quick else SCALES):
        with tempfile.TemporaryDirectory() as folder:
            plain = str(Path(folder) / "plain.duckdb")
            isolate.run("bench.tpc.experiment:generate", name=name, scale=scale, path=plain)
            figures = {
                policy: isolate.run(
                    "bench.tpc.experiment:measure", name=name, policy=policy, plain=plain
                )
                for policy in sources.POLICIES
            }
        _tell(section, scale, figures)
    section.notes += [
        "Medians of three runs per query, after two in which plans are made and layers are opened "
        "(`first run` is the total of the first). Every answer is compared with plaintext "
        "DuckDB's before it is measured. Both databases are files on the same disk, both with all "
        "cores. Client and server are one process: the times include no network, so the transfer "
        "of the received bytes must be added.",
        "`sealed`: only which rows a query reads may be revealed. `cryptdb`: every column may open "
        "up to its order. `mixed`: keys equality, dates order, money and free text access. The "
        "files are `tests/tpc/policies/*.toml`.",
        "`server`, `open`, `finish`: the time of the server, of decrypting the answer, and of the "
        "local DuckDB on the decrypted rows. Bytes are those that the server sent. The split "
        "states where a query's blocks run: `whole` (the server aggregates), `rows` (it "
        "joins and filters), `scans` (it filters table by table).",
    ]
    return section


def generate(name: str, scale: float, path: str) -> None:
    """The data, as a plaintext database file."""
    sources.generate(sources.BENCHMARKS[name], scale, path).close()


def measure(name: str, policy: str, plain: str) -> Measured:
    """One policy: seconds and size of the load, and of each query what `_query` tells."""
    benchmark = sources.BENCHMARKS[name]
    warnings.simplefilter("ignore", LeakageWarning)
    with tempfile.TemporaryDirectory() as position, _peer(benchmark, plain) as peer:
        folder = Path(position)
        data.state(folder)
        questions = harness.Plain(benchmark, peer, sources.queries(peer, benchmark))
        with harness.connect(folder, benchmark, policy) as con:
            start = time.perf_counter()
            harness.load(con, questions)
            load_s = time.perf_counter() - start
            queries = [_query(con, questions, number) for number in benchmark.numbers]
        size = sum(path.stat().st_size for path in folder.glob("*.duckdb"))
    return {
        "load_s": load_s,
        "file_mib": size / 2**20,
        "plain_mib": Path(plain).stat().st_size / 2**20,
        "queries": queries,
    }


def _peer(benchmark: sources.Benchmark, path: str) -> Any:
    return sources.opened(benchmark, path, read_only=True)


def _query(con: Any, plain: harness.Plain, number: int) -> Measured:
    sql = plain.queries[number]
    start = time.perf_counter()
    harness.check(con, plain, number)
    first_ms = (time.perf_counter() - start) * 1000
    # Where the first run opened layers, the second plans again; then all is settled.
    asking.ask(con, sql)
    runs = sorted((asking.ask(con, sql)[0] for _ in range(RUNS)), key=lambda item: item.total_ms)
    middle = runs[len(runs) // 2]
    return {
        "number": number,
        "first_ms": first_ms,
        "ms": middle.total_ms,
        "plain_ms": median([_plain_ms(plain, sql) for _ in range(RUNS)]),
        "steps_ms": {
            name: sum(middle.steps_ms.get(part, 0.0) for part in parts)
            for name, parts in STEPS.items()
        },
        "received_bytes": middle.received_bytes,
        "kind": harness.split(con, sql),
    }


def _plain_ms(plain: harness.Plain, sql: str) -> float:
    start = time.perf_counter()
    plain.con.execute(sql).to_arrow_table()
    return (time.perf_counter() - start) * 1000


def _tell(section: report.Report, scale: float, figures: dict[str, Measured]) -> None:
    """What one scale adds to the report."""
    for policy, item in figures.items():
        ours, theirs = (sum(q[key] for q in item["queries"]) for key in ("ms", "plain_ms"))
        section.lines.append(
            report.Line(f"SF {scale:g}, {policy}: all queries", ours, "ms", "plaintext DuckDB",
                        theirs, peak_mib=item["peak_mib"])
        )  # fmt: skip
    section.grids += [_summary(scale, figures), _per_query(scale, figures), _steps(scale, figures)]
    series = {
        policy: [(q["number"], q["ms"] / q["plain_ms"]) for q in item["queries"]]
        for policy, item in figures.items()
    }
    section.plots.append(
        report.Plot(
            f"{section.name}-{scale:g}",
            f"{section.title}, SF {scale:g}",
            "query",
            "times plaintext DuckDB",
            series,
        )
    )


def _summary(scale: float, figures: dict[str, Measured]) -> report.Grid:
    """A policy in a line: the mean ratio, the totals of the steps, what crossed, the load."""
    header = ["policy", "ratio (geometric mean)", "first run s", *(f"{s} ms" for s in STEPS),
              "received MiB", "load s", "file MiB", "DuckDB file MiB"]  # fmt: skip
    rows = []
    for policy, item in figures.items():
        questions = item["queries"]
        mean = math.exp(sum(math.log(q["ms"] / q["plain_ms"]) for q in questions) / len(questions))
        values = [
            sum(q["first_ms"] for q in questions) / 1000,
            *(sum(q["steps_ms"][step] for q in questions) for step in STEPS),
            sum(q["received_bytes"] for q in questions) / 2**20,
            item["load_s"],
            item["file_mib"],
            item["plain_mib"],
        ]
        rows.append([policy, f"{report.number(mean)}×", *map(report.number, values)])
    return report.Grid(f"SF {scale:g}: policies, sums over all queries", header, rows)


def _per_query(scale: float, figures: dict[str, Measured]) -> report.Grid:
    """A query in a line: plaintext, and per policy time, ratio, split and bytes."""
    header = ["query", "DuckDB ms"]
    for policy in figures:
        header += [f"{policy} ms", "ratio", "split", "MiB"]
    rows = []
    for together in zip(*(item["queries"] for item in figures.values()), strict=True):
        row = [str(together[0]["number"]), report.number(together[0]["plain_ms"])]
        for query in together:
            row += [
                report.number(query["ms"]),
                f"{report.number(query['ms'] / query['plain_ms'])}×",
                query["kind"],
                report.number(query["received_bytes"] / 2**20),
            ]
        rows.append(row)
    return report.Grid(f"SF {scale:g}: query by query", header, rows)


def _steps(scale: float, figures: dict[str, Measured]) -> report.Grid:
    """Where the time goes, in milliseconds."""
    header = ["query", *(f"{policy}: {' / '.join(STEPS)}" for policy in figures)]
    rows = [
        [
            str(together[0]["number"]),
            *(" / ".join(report.number(round(q["steps_ms"][s], 1)) for s in STEPS)
              for q in together),
        ]
        for together in zip(*(item["queries"] for item in figures.values()), strict=True)
    ]  # fmt: skip
    return report.Grid(f"SF {scale:g}: where the time goes, ms", header, rows)
