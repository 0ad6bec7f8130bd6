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
    section = report.Report("lake", "The lake: planning beside plaintext DuckDB-Iceberg")
    figures = {files: _size(files, quick) for files in (QUICK_SIZES if quick else SIZES)}
    exponents = QUICK_EXPONENTS if quick else PLANNED
    for files, item in figures.items():
        _lines(section, files, item)
    section.grids = [
        _table(figures),
        *(_ranges(n, item, exponents) for n, item in figures.items()),
    ]
    section.plots = _plots(figures, exponents)
    section.notes = _notes(figures)
    return section


def _size(files: int, quick: bool) -> Told:
    """Everything about one number of files."""
    given, ranges = bounds(files), queries(0, QUICK_EXPONENTS if quick else PLANNED)
    repeats = 1 if quick else max(1, min(9, 300_000 // files))
    with tempfile.TemporaryDirectory() as name:
        plain = _plain(Path(name) / "plain", given, ranges, repeats)
    results: Told = {"plain": plain}
    with tempfile.TemporaryDirectory() as name:
        result = ours.build(Path(name), {index.COLUMN: given}, DEFAULT)
        results["louver"] = result | _ours(name, ranges, quick)
    _require_complete(results["louver"], given, ranges)
    return results


def _plain(folder: Path, given: Bounds, ranges: list[Range], repeats: int) -> Told:
    column = tables.long_column("value", given.lows, given.highs)
    table = tables.write(folder, [column])
    few = [item for item in ranges if given.hit(*item).sum() <= FEW]
    for item in few:
        for number in np.flatnonzero(given.hit(*item)).tolist():
            peer.one_row(table.path(number), int(given.lows[number]))
    for item in (few[0], few[-1]):
        opened = peer.files_read(str(table.metadata), item)
        if opened != given.hit(*item).sum():
            raise AssertionError(f"DuckDB opens {opened} files")
    few_of = few[:: max(1, len(few) // 4)]
    results: Told = {"manifest_bytes": table.manifest_bytes}
    for threads in _threads():
        results[str(threads)] = isolate.run(
            "bench.lake.peer:measure", metadata=str(table.metadata), threads=threads,
            ranges=ranges, repeats=repeats, few=few_of,
        )  # fmt: skip
    full = tables.write(folder / "full", [column], full=True)
    results["full"] = isolate.run(
        "bench.lake.peer:measure", metadata=str(full.metadata), threads=1,
        ranges=ranges[:2], repeats=1, few=[],
    )  # fmt: skip
    return results


def _ours(folder: str, ranges: list[Range], quick: bool) -> Told:
    questions = [{str(index.COLUMN): item} for item in ranges]
    results: Told = {}
    for threads in _threads():
        results[str(threads)] = isolate.run(
            "bench.lake.ours:measure", folder=folder, spec=asdict(DEFAULT), queries=questions,
            repeats=1 if quick else 3, threads=threads, unverified=True,
        )  # fmt: skip
    return results


def _threads() -> tuple[int, ...]:
    return tuple(dict.fromkeys((1, len(os.sched_getaffinity(0)))))


def _require_complete(figures: Told, given: Bounds, ranges: list[Range]) -> None:
    """No plan may keep fewer files than there are; which ones, the section of filters checks."""
    for item, mask in zip(ranges, figures["1"]["kept"], strict=True):
        if mask < given.hit(*item).sum():
            raise AssertionError(f"a plan of {item} lost files")


def _mean(figures: Told) -> float:
    return float(np.mean(figures["plan_s"]))


def _lines(section: report.Report, files: int, figures: Told) -> None:
    plain, lake = figures["plain"], figures["louver"]

    def line(what: str, ours_s: float, theirs_s: float, source: Told, aim: float | None) -> None:
        section.lines.append(
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


def _table(figures: dict[int, Told]) -> report.Grid:
    rows = []
    for files, item in figures.items():
        mine, theirs = item["louver"], item["plain"]
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


def _ranges(files: int, figures: Told, exponents: tuple[int, ...]) -> report.Grid:
    """Figure 6.23: some of the range sizes."""
    mine, theirs = figures["louver"]["1"], figures["plain"]["1"]
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


def _plots(figures: dict[int, Told], exponents: tuple[int, ...]) -> list[report.Plot]:
    def curve(of: Callable[[Told], float]) -> list[tuple[float, float]]:
        return [(float(files), of(item)) for files, item in figures.items()]

    by_size = {
        "DuckDB-Iceberg, one core": curve(lambda item: _mean(item["plain"]["1"])),
        "Louver, one core": curve(lambda item: _mean(item["louver"]["1"])),
        "the paper's DuckDB-Iceberg": [(float(n), s[0]) for n, s in paper.TABLE_6_3.items()],
        "the paper's BF-EDS, AES": [(float(n), s[1]) for n, s in paper.TABLE_6_3.items()],
    }
    by_range = {}
    for files, item in figures.items():
        pairs = zip(item["louver"]["1"]["plan_s"], item["plain"]["1"]["plan_s"], strict=True)
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


def _notes(figures: dict[int, Told]) -> list[str]:
    """What each side's time holds."""
    checks = "; ".join(
        f"{files:,}: {1000 * item['plain']['1']['few_run_s']:.1f} against "
        f"{1000 * item['plain']['1']['few_plan_s']:.1f} ms"
        for files, item in figures.items()
    )
    loads = max(item["plain"]["1"]["load_s"] for item in figures.values())
    disk = ", ".join(
        f"{files:,} files {item['louver']['bytes'] / 2**20:,.0f} MiB (built in "
        f"{item['louver']['build_s']:.1f} s), manifests "
        f"{item['plain']['manifest_bytes'] / 2**20:,.1f} MiB"
        for files, item in figures.items()
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
