"""Planning against plaintext DuckDB-Iceberg: Figures 6.22 and 6.23, Table 6.3."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench import isolate, report
from bench.lake import index, ours, paper, peer, tables
from bench.lake.index import Spec
from bench.lake.ranges import EXPONENTS, Bounds, Range, bounds, queries

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (2_000, 10_000)
DEFAULT = Spec()
#: Sixteen of the 64 range sizes: DuckDB takes seconds for each at a million files.
PLANNED = EXPONENTS[3::4]
QUICK_EXPONENTS = (0, 16, 32, 48, 56, 60, 62, 63)
FEW = 16
"""Files that a query may hit for the whole statement to be run: so many are made to exist."""
Told = dict[str, Any]


def run(*, quick: bool) -> report.Report:
    """The section `lake`."""
    found = report.Report("lake", "The lake: planning beside plaintext DuckDB-Iceberg")
    told = {files: _size(files, quick) for files in (QUICK_SIZES if quick else SIZES)}
    exponents = QUICK_EXPONENTS if quick else PLANNED
    for files, one in told.items():
        _lines(found, files, one)
    found.grids = [
        _table(told),
        *(_ranges(n, one, exponents) for n, one in told.items()),
    ]
    found.plots = _plots(told, exponents)
    found.notes = _notes(told)
    return found


def _size(files: int, quick: bool) -> Told:
    """Everything about one number of files."""
    given, ranges = bounds(files), queries(0, QUICK_EXPONENTS if quick else PLANNED)
    repeats = 1 if quick else max(1, min(9, 300_000 // files))
    with tempfile.TemporaryDirectory() as name:
        plain = _plain(Path(name) / "plain", given, ranges, repeats)
    found: Told = {"plain": plain}
    with tempfile.TemporaryDirectory() as name:
        made = ours.build(Path(name), {index.COLUMN: given}, DEFAULT)
        found["louver"] = made | _ours(name, ranges, quick)
    _require_complete(found["louver"], given, ranges)
    return found


def _plain(folder: Path, given: Bounds, ranges: list[Range], repeats: int) -> Told:
    column = tables.long_column("value", given.lows, given.highs)
    table = tables.write(folder, [column])
    few = [one for one in ranges if given.hit(*one).sum() <= FEW]
    for one in few:
        for number in np.flatnonzero(given.hit(*one)).tolist():
            peer.one_row(table.path(number), int(given.lows[number]))
    for one in (few[0], few[-1]):
        opened = peer.files_read(str(table.metadata), one)
        if opened != given.hit(*one).sum():
            raise AssertionError(f"DuckDB opens {opened} files")
    few_of = few[:: max(1, len(few) // 4)]
    found: Told = {"manifest_bytes": table.manifest_bytes}
    for threads in _threads():
        found[str(threads)] = isolate.run(
            "bench.lake.peer:measure", metadata=str(table.metadata), threads=threads,
            ranges=ranges, repeats=repeats, few=few_of,
        )  # fmt: skip
    full = tables.write(folder / "full", [column], full=True)
    found["full"] = isolate.run(
        "bench.lake.peer:measure", metadata=str(full.metadata), threads=1,
        ranges=ranges[:2], repeats=1, few=[],
    )  # fmt: skip
    return found


def _ours(folder: str, ranges: list[Range], quick: bool) -> Told:
    asked = [{str(index.COLUMN): one} for one in ranges]
    found: Told = {}
    for threads in _threads():
        found[str(threads)] = isolate.run(
            "bench.lake.ours:measure", folder=folder, spec=asdict(DEFAULT), queries=asked,
            repeats=1 if quick else 3, threads=threads, unverified=True,
        )  # fmt: skip
    return found


def _threads() -> tuple[int, ...]:
    return tuple(dict.fromkeys((1, len(os.sched_getaffinity(0)))))


def _require_complete(told: Told, given: Bounds, ranges: list[Range]) -> None:
    """No plan may keep fewer files than there are; which ones, the section of filters checks."""
    for one, kept in zip(ranges, told["1"]["kept"], strict=True):
        if kept < given.hit(*one).sum():
            raise AssertionError(f"a plan of {one} lost files")


def _mean(told: Told) -> float:
    return float(np.mean(told["plan_s"]))


def _lines(found: report.Report, files: int, told: Told) -> None:
    plain, lake = told["plain"], told["louver"]

    def line(what: str, ours_s: float, theirs_s: float, source: Told, aim: float | None) -> None:
        found.lines.append(
            report.Line(
                f"{files:,} files, {what}", ours_s, "s", "DuckDB-Iceberg, plaintext", theirs_s,
                target_ratio=aim, peak_mib=source["peak_mib"],
                peer_peak_mib=plain[source_threads]["peak_mib"],
            )
        )  # fmt: skip

    for threads in _threads():
        source_threads = str(threads)
        named = "one core" if threads == 1 else f"{threads} cores"
        mine, theirs = lake[source_threads], plain[source_threads]
        line(f"{named}, mean of all ranges", _mean(mine), _mean(theirs), mine, 1.0)
        unverified_s = float(np.mean(mine["unverified_s"]))
        line(f"{named}, the same, not verified", unverified_s, _mean(theirs), mine, None)
        line(f"{named}, first of a process", mine["first_s"], theirs["first_s"], mine, None)


def _table(told: dict[int, Told]) -> report.Grid:
    rows = []
    for files, one in told.items():
        mine, theirs = one["louver"], one["plain"]
        said = paper.TABLE_6_3.get(files)
        rows.append([
            f"{files:,}",
            *(report.number(_mean(theirs[str(t)])) for t in _threads()),
            *(report.number(_mean(mine[str(t)])) for t in _threads()),
            *(_times(_mean(mine[str(t)]), _mean(theirs[str(t)])) for t in _threads()),
            report.number(theirs["full"]["plan_s"][0]),
            *([f"{said[0]:g}", f"{said[1]:g}", _times(said[1], said[0])] if said else [""] * 3),
        ])  # fmt: skip
    named = [f"{t} core{'s' * (t > 1)}" for t in _threads()]
    header = ["files", *(f"DuckDB s, {t}" for t in named), *(f"Louver s, {t}" for t in named),
              *(f"ratio, {t}" for t in named), "DuckDB s, full metrics, 1 core",
              "thesis: DuckDB s", "thesis: BF-EDS s", "thesis: ratio"]  # fmt: skip
    return report.Grid("Figure 6.22 and Table 6.3: mean of the range sizes", header, rows)


def _ranges(files: int, told: Told, exponents: tuple[int, ...]) -> report.Grid:
    """Figure 6.23: some of the range sizes."""
    mine, theirs = told["louver"]["1"], told["plain"]["1"]
    rows = []
    for at, e in enumerate(exponents):
        if e not in (0, 3, 16, 19, 31, 32, 47, 48, 55, 56, 59, 60, 62, 63):
            continue
        said = paper.OVERHEAD_ALL if e == 63 else paper.OVERHEAD_SMALL
        rows.append([
            f"2^{e}", f"{mine['kept'][at]:,}", report.number(theirs["plan_s"][at]),
            report.number(mine["plan_s"][at]), report.number(mine["unverified_s"][at]),
            _times(mine["plan_s"][at], theirs["plan_s"][at]),
            f"{said:g}×" if e in (0, 3, 63) else "",
        ])  # fmt: skip
    header = ["range size", "files kept", "DuckDB s", "Louver s", "not verified s", "ratio",
              "thesis"]  # fmt: skip
    return report.Grid(f"Figure 6.23: by range size, {files:,} files, one core", header, rows)


def _times(mine: float, theirs: float) -> str:
    return f"{report.number(mine / theirs)}×"


def _plots(told: dict[int, Told], exponents: tuple[int, ...]) -> list[report.Plot]:
    def curve(of: Callable[[Told], float]) -> list[tuple[float, float]]:
        return [(float(files), of(one)) for files, one in told.items()]

    by_size = {
        "DuckDB-Iceberg, one core": curve(lambda one: _mean(one["plain"]["1"])),
        "Louver, one core": curve(lambda one: _mean(one["louver"]["1"])),
        "the paper's DuckDB-Iceberg": [(float(n), s[0]) for n, s in paper.TABLE_6_3.items()],
        "the paper's BF-EDS, AES": [(float(n), s[1]) for n, s in paper.TABLE_6_3.items()],
    }
    by_range = {}
    for files, one in told.items():
        pairs = zip(one["louver"]["1"]["plan_s"], one["plain"]["1"]["plan_s"], strict=True)
        ratios = [mine / theirs for mine, theirs in pairs]
        by_range[f"{files:,} files"] = list(zip(map(float, exponents), ratios, strict=True))
    by_range["the paper: 1.4 small, 1.1 at 2^63"] = [
        (0.0, paper.OVERHEAD_SMALL), (63.0, paper.OVERHEAD_ALL)
    ]  # fmt: skip
    return [
        report.Plot("lake-22", "Figure 6.22: planning by table size", "files", "s", by_size),
        report.Plot("lake-23", "Figure 6.23: Louver's time over DuckDB-Iceberg's, one core",
                    "log2(range size)", "times", by_range),
    ]  # fmt: skip


def _notes(told: dict[int, Told]) -> list[str]:
    """What each side's time holds."""
    checks = "; ".join(
        f"{files:,}: {1000 * one['plain']['1']['few_run_s']:.1f} against "
        f"{1000 * one['plain']['1']['few_plan_s']:.1f} ms"
        for files, one in told.items()
    )
    loads = max(one["plain"]["1"]["load_s"] for one in told.values())
    disk = ", ".join(
        f"{files:,} files {one['louver']['bytes'] / 2**20:,.0f} MiB (built in "
        f"{one['louver']['build_s']:.1f} s), manifests "
        f"{one['plain']['manifest_bytes'] / 2**20:,.1f} MiB"
        for files, one in told.items()
    )
    return [
        "DuckDB's time: `EXPLAIN SELECT count(*) … WHERE value BETWEEN …` over `iceberg_scan` of "
        "the metadata file: it reads metadata, manifest list and all manifests and compares the "
        "bounds of every file, and opens no Parquet file; it reads no catalog. That this is all of "
        "planning is checked where few files are hit, which then exist: the complete statement "
        f"against its EXPLAIN takes, on one core, {checks}. The manifests contain the bounds of "
        "one column and nothing else, deflated, 1,000 entries each: the minimum that a writer can "
        "write; `full metrics` also has counts and sizes, as PyIceberg writes them, for a range of "
        "one value.",
        "Louver's time: the catalog's pointer from SQLite and the table's metadata file, the "
        "root's signature, the token, the sweep of all segments (mapped files, warm in the page "
        "cache), tags of all rows that were read, and the list of the selected files as Python "
        "objects with path, size and key. Client and pruner are one process; `not verified` omits "
        "the tags and is the work of a pruner without keys. The range sizes are 2^3, 2^7 "
        "and so on to 2^63; the last few select many files, and there the list costs more than the "
        "sweep.",
        "`first of a process`: without the import of Louver's modules and without DuckDB's LOAD "
        f"of its extensions ({loads:.2f} s at most), but with everything after that, Louver's "
        "including opening key file and catalog. Files of both sides were just written: warm.",
        "One core: the process is bound to it, and DuckDB has one thread. A run of DuckDB at "
        "1,000,000 files is one statement per range, medians otherwise.",
        f"On disk: {disk}; all of it in temporary folders.",
        "The thesis' ratio is with AES-encrypted filters, one thread of an Apple M1 Pro, reading "
        "Parquet disabled by a patch, nothing verified, no client.",
    ]
