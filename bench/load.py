"""Loading a Parquet file: rows per second, and memory that must not grow with the table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench import data, isolate, report
from louver.trusted.client.inside import context_of

DECLARED = "id BIGINT {0}, name TEXT {0}, born DATE {0}, salary DECIMAL(12,2) {0}, age INT"
GROWTH = 1.25
"""The largest table may take this much more memory than the smallest; noise and no more."""


def run(*, quick: bool) -> report.Report:
    """Each load in a process of its own."""
    sizes = (25_000, 100_000) if quick else (100_000, 400_000, 1_600_000)
    sdb_sizes = (5_000, 10_000) if quick else (50_000, 100_000, 200_000)
    section = report.Report("load", "Loading from Parquet")
    series: dict[str, list[tuple[float, float]]] = {}
    for profile, rows in [("sealed", n) for n in sizes] + [("sdb", n) for n in sdb_sizes]:
        ours = isolate.run("bench.load:louver", profile=profile, rows=rows)
        theirs = isolate.run("bench.load:plain", rows=rows)
        section.lines.append(
            report.Line(
                f"{profile}, {rows:,} rows", rows / ours["load_s"], "rows/s", "plaintext DuckDB",
                rows / theirs["load_s"], more_is_better=True,
                peak_mib=ours["peak_mib"], peer_peak_mib=theirs["peak_mib"],
            )
        )  # fmt: skip
        for name, item in ((profile, ours), (f"plaintext, beside {profile}", theirs)):
            series.setdefault(name, []).append((rows, item["peak_mib"] - item["start_mib"]))
        section.grids.append(_grid(f"{profile}, {rows:,} rows", ours, theirs))
    for profile in ("sealed", "sdb"):
        points = series[profile]
        section.lines.append(
            report.Line(
                f"{profile}: memory at {points[-1][0]:,} rows", points[-1][1], "MiB",
                f"itself at {points[0][0]:,} rows", points[0][1],
                target_ratio=None if quick else 1 / GROWTH,
            )
        )  # fmt: skip
    section.grids = [_joined(section.grids)]
    section.plots.append(
        report.Plot("load-memory", "Memory that a load adds", "rows", "MiB", series)
    )
    section.notes += [
        f"The table has five columns, four of them encrypted ({DECLARED.format('ENC')}). Each load "
        "runs in a process of its own, `con.load` into a new database file against "
        "`INSERT … SELECT FROM read_parquet` of plaintext DuckDB, both until it is durable.",
        "Memory is the process's peak less its use before the load; the process is client and "
        "server, so DuckDB's own write cache counts.",
    ]
    return section


def _grid(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> report.Grid:
    header = ["load", "Louver s", "DuckDB s", "Louver added MiB", "DuckDB added MiB",
              "Louver file MiB", "DuckDB file MiB"]  # fmt: skip
    cells = [
        report.number(value)
        for key in ("load_s", "added_mib", "file_mib")
        for value in (ours[key], theirs[key])
    ]
    return report.Grid("Memory and size", header, [[name, *cells]])


def _joined(grids: list[report.Grid]) -> report.Grid:
    return report.Grid(grids[0].title, grids[0].header, [row for g in grids for row in g.rows])


def louver(profile: str, rows: int) -> dict[str, float]:
    """Our own load."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = _file(folder, rows)
        with data.louver(folder, profile) as con:
            con.execute(f"CREATE TABLE staff ({DECLARED.format('ENC')})")
            if profile == "sdb":
                # The primes are found once per key file; that belongs to no load.
                context_of(con).columns.modulus()
            results = _timed(lambda: con.load("staff", path))
            held = con.execute("SELECT count(*) FROM staff").fetchall()
        assert held == [(rows,)], held
        return results | {"file_mib": _mib(folder, profile)}


def plain(rows: int) -> dict[str, float]:
    """DuckDB's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = _file(folder, rows)
        with data.plain(folder) as con:
            con.execute(f"CREATE TABLE staff ({DECLARED.format('')})")
            results = _timed(lambda: con.execute(f"INSERT INTO staff FROM read_parquet('{path}')"))
        return results | {"file_mib": _mib(folder, "plain")}


def _file(folder: Path, rows: int) -> Path:
    """Written by another process, so that its memory is not counted here."""
    path = folder / "staff.parquet"
    isolate.run("bench.load:write", path=str(path), rows=rows)
    return path


def write(path: str, rows: int) -> None:
    """The file to load."""
    data.table_staff(Path(path), rows)


def _timed(work: Any) -> dict[str, float]:
    isolate.reset_peak()
    held, start = isolate.peak_mib(), time.perf_counter()
    work()
    load_s, peak = time.perf_counter() - start, isolate.peak_mib()
    return {"load_s": load_s, "start_mib": held, "peak_mib": peak, "added_mib": peak - held}


def _mib(folder: Path, name: str) -> float:
    return sum(p.stat().st_size for p in folder.glob(f"{name}.duckdb*")) / 2**20
