"""Kinds and sizes of the filters on one table: time, false positives, size.

Figure 6.11 on the scale of a table instead of one filter, and 6.17-6.21. The kinds, hashes and
encryptions that the product does not have are measured by the examples of `rust/papers`. Segments
are made, swept by all tokens and dropped one after the other, so that no more than one is in
memory; no disk is used.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench import isolate, report
from bench.lake import index, paper
from bench.lake.index import Spec
from bench.lake.ranges import EXPONENTS, Range, bounds, queries
from bench.timing import best
from louver.untrusted.lake.sweep import sweep

SIZES = tuple(1 << power for power in range(10, 17))
DEFAULT = Spec()
ROUNDS = 3
"""Every sweep is timed so often; the shortest counts, for it is what the work itself takes."""


def run(*, quick: bool) -> report.Report:
    """The section `lake-filters`."""
    files = 20_000 if quick else 1_000_000
    section = report.Report("lake-filters", f"The lake: filters of {files:,} files, one core")
    (by_range,) = _swept([_case(DEFAULT, files, EXPONENTS, 1 if quick else 3, ROUNDS)])
    _evenness(section, by_range, files)
    _sizes(section, files, quick, by_range)
    _kinds(section, files, quick)
    _batches(section, quick)
    _manifest(section, quick)
    section.notes += _notes()
    return section


def measure(
    *, spec: dict[str, Any], files: int, ranges: list[Range], rounds: int, per: int
) -> dict[str, Any]:
    """Seconds to make the index; per range, the best sweep's seconds and the false positives."""
    index.one_core()
    chosen, given = Spec(**spec), bounds(files)
    build_s, size = 0.0, 0
    sweep_s = np.zeros((rounds, len(ranges)))
    false, missing = np.zeros(len(ranges), np.int64), 0
    with tempfile.TemporaryDirectory() as folder:
        table = index.ring(Path(folder)).lake_table(index.TABLE)
        # The first array made of NumPy's lets pyarrow load pandas: no part of the work.
        index.segment(table, chosen, *(ends[:1] for ends in given.mapped()))
        start = time.perf_counter()
        tokens = [index.token(table, chosen, item) for item in ranges]
        token_s = (time.perf_counter() - start) / len(ranges)
        start = time.perf_counter()
        for part, segment in index.segments(table, chosen, given, per):
            build_s += time.perf_counter() - start
            size += len(segment)
            for at, item in enumerate(ranges):
                mask = index.sweep(segment, tokens[at])[: part.stop - part.start].astype(bool)
                hit = given.hit(*item)[part]
                false[at] += int((mask & ~hit).sum())
                missing += int((hit & ~mask).sum())
            # Round by round, so that a moment of other load does not fall on one range alone.
            for turn in range(rounds):
                sweep_s[turn] += [_sweep_s(segment, token) for token in tokens]
            start = time.perf_counter()
    if missing:
        raise AssertionError(f"{chosen} lost {missing} files")
    return {
        "build_s": build_s,
        "token_s": token_s,
        "bytes": size,
        "sweep_s": sweep_s.min(axis=0).tolist(),
        "false": false.tolist(),
    }


def _sweep_s(segment: bytes, token: bytes) -> float:
    start = time.perf_counter()
    sweep(segment, token)
    return time.perf_counter() - start


def several(*, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """`measure` of every case, in one process."""
    return {"all": [measure(**case) for case in cases]}


def _case(
    spec: Spec,
    files: int,
    exponents: tuple[int, ...],
    seeds: int = 1,
    rounds: int = 1,
    per: int = index.SEGMENT_FILES,
) -> dict[str, Any]:
    ranges = [item for seed in range(seeds) for item in queries(seed, exponents)]
    return {"spec": asdict(spec), "files": files, "ranges": ranges, "rounds": rounds, "per": per}


def _swept(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    figures = isolate.run("bench.lake.filters:several", cases=cases)
    return [item | {"peak_mib": figures["peak_mib"]} for item in figures["all"]]


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _evenness(section: report.Report, figures: dict[str, Any], files: int) -> None:
    """Figure 6.17."""
    times = np.array(figures["sweep_s"]).reshape(-1, len(EXPONENTS)).min(axis=0)
    middle = (times.max() + times.min()) / 2
    spread = 100 * float((times.max() - times.min()) / 2 / middle)
    section.lines.append(
        report.Line(
            "sweep time over range sizes 2^0 to 2^63, deviation", spread, "%",
            "the goal", 5.0, target=5.0, peak_mib=figures["peak_mib"],
        )
    )  # fmt: skip
    points = [(float(e), 1000 * float(t)) for e, t in zip(EXPONENTS, times, strict=True)]
    section.plots.append(
        report.Plot(
            "lake-17", f"Figure 6.17: sweep of {files:,} files by range size", "log2(range size)",
            "ms", {str(DEFAULT): points}, log=False,
        )
    )  # fmt: skip


def _sizes(section: report.Report, files: int, quick: bool, default: dict[str, Any]) -> None:
    """Figures 6.18, 6.19, 6.20."""
    rows = []
    times: dict[str, list[tuple[float, float]]] = {}
    falses: dict[str, list[tuple[float, float]]] = {}
    exponents = EXPONENTS[::16] if quick else EXPONENTS
    specs = [
        Spec(kind=kind, bits=bits)
        for bits in (SIZES[::2] if quick else SIZES)
        for kind in ("split-block", "basic")
    ]
    others = _swept([_case(spec, files, exponents) for spec in specs if spec != DEFAULT])
    for spec in specs:
        figures = default if spec == DEFAULT else others.pop(0)
        false = _mean(figures["false"])
        times.setdefault(spec.kind, []).append((spec.bits, 1000 * _mean(figures["sweep_s"])))
        falses.setdefault(spec.kind, []).append((spec.bits, max(false, 1e-3)))
        rows.append(_size_row(spec, figures, files))
        _goal(section, spec, false, files)
    header = ["filter", "bits", "sweep ms", "false positives: mean", "most", "index MiB",
              "KiB per 1,000 files", "index made in s", "thesis"]  # fmt: skip
    section.grids.append(report.Grid(f"Figures 6.18-6.20: sizes, {files:,} files", header, rows))
    for number, title, what, series in (
        (18, "sweep time by filter size", "ms", times),
        (19, "false positives by filter size (none drawn as 0.001)", "files", falses),
    ):
        section.plots.append(
            report.Plot(f"lake-{number}", f"Figure 6.{number}: {title}", "bits", what, series)
        )


def _size_row(spec: Spec, figures: dict[str, Any], files: int) -> list[str]:
    said = {16_384: "", 32_768: f"{paper.DOUBLED_BITS:g}× the time of 16,384", 2_048: "470 KB"}
    return [
        spec.kind,
        f"{spec.bits:,}",
        report.number(1000 * _mean(figures["sweep_s"])),
        report.number(_mean(figures["false"])),
        str(max(figures["false"])),
        report.number(figures["bytes"] / 2**20),
        report.number(figures["bytes"] / files * 1000 / 1024),
        report.number(figures["build_s"]),
        said.get(spec.bits, "") if spec.kind == "split-block" else "",
    ]


def _goal(section: report.Report, spec: Spec, false: float, files: int) -> None:
    """The goals are for 1,000,000 files: fewer are counted up to that in proportion."""
    goal = {16_384: 8.0, 32_768: 1.0}.get(spec.bits)
    if goal is not None:
        section.lines.append(
            report.Line(
                f"{spec}: false positives per query on 1,000,000 files",
                false * 1_000_000 / files, "files", "the goal", goal, target=goal,
            )
        )  # fmt: skip


def _kinds(section: report.Report, files: int, quick: bool) -> None:
    """Figure 6.11 over a table: every kind."""
    files = min(files, 5_000 if quick else 100_000)
    exponents = EXPONENTS[::16] if quick else EXPONENTS[::4]
    specs = [Spec(kind=kind, k=k) for kind, k in _KS]
    rows = []
    swept = _swept([_case(spec, files, exponents) for spec in specs])
    for spec, figures in zip(specs, swept, strict=True):
        sweep_s = _mean(figures["sweep_s"])
        rows.append([
            spec.kind, str(spec.k), report.number(1000 * sweep_s),
            report.number(1e9 * sweep_s / files), report.number(_mean(figures["false"])),
            report.number(1e6 * figures["token_s"]),
            report.number(1e6 * figures["build_s"] / files),
        ])  # fmt: skip
    header = ["filter", "k", "sweep ms", "ns per file", "false positives",
              "token µs", "index µs per file"]  # fmt: skip
    title = f"Kinds, 16,384 bits, {files:,} files"
    section.grids.append(report.Grid(title, header, rows))


#: The kinds and how many bits an element has in each.
_KS = (
    ("basic", 6),
    ("basic", 8),
    ("split-block", 8),
)


def _batches(section: report.Report, quick: bool) -> None:
    """Figure 6.21: files per segment, where the thesis varies entries per manifest."""
    files = 10_000 if quick else 100_000
    rows, points = [], []
    sizes = (100, 1_000, 10_000, index.SEGMENT_FILES)
    swept = _swept([_case(DEFAULT, files, EXPONENTS[::16], 1, ROUNDS, per) for per in sizes])
    for per, figures in zip(sizes, swept, strict=True):
        time_ms = 1000 * _mean(figures["sweep_s"])
        points.append((float(per), time_ms))
        saved = paper.BATCH_SAVES.get(per)
        rows.append([
            f"{per:,}", report.number(time_ms), report.number(figures["bytes"] / 2**20),
            f"{100 * saved:g} % less than with a tenth" if saved else "",
        ])  # fmt: skip
    title = f"Figure 6.21: files per segment, {files:,} files"
    header = ["files per segment", "sweep ms", "index MiB", "thesis"]
    section.grids.append(report.Grid(title, header,
                                   rows))  # fmt: skip
    section.plots.append(
        report.Plot("lake-21", title, "files per segment", "ms", {str(DEFAULT): points})
    )


def manifest(*, bits: list[int], runs: int) -> dict[str, Any]:
    """Seconds to make the segment of 1,000 files, by size of the filter: the best run."""
    index.one_core()
    lows, highs = bounds(1_000).mapped()
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        table = index.ring(Path(folder)).lake_table(index.TABLE)
        for size in bits:
            spec = Spec(bits=size)
            results[str(size)] = best(
                lambda spec=spec: index.segment(table, spec, lows, highs), least=runs
            )
    return {"seconds": results}


def _manifest(section: report.Report, quick: bool) -> None:
    """Figure 6.28, our segment: what a manifest of 1,000 entries is in the thesis."""
    figures = isolate.run("bench.lake.filters:manifest", bits=list(SIZES), runs=3 if quick else 20)
    thesis_s, ore_s = paper.MANIFEST_S
    for size in (DEFAULT.bits, SIZES[-1]):
        section.lines.append(
            report.Line(
                f"index of 1,000 files, {size:,} bits", 1000 * figures["seconds"][str(size)], "ms",
                "the paper's BF-EDS, AES, 65,536 bits", 1000 * thesis_s, target=30.0,
                peak_mib=figures["peak_mib"],
            )
        )  # fmt: skip
    points = [(float(size), figures["seconds"][str(size)]) for size in SIZES]
    series = {
        "Louver, split-block": points,
        "the paper's BF-EDS at 65,536": [(65_536.0, thesis_s)],
        "the paper's ORE": [(float(size), ore_s) for size in SIZES],
    }
    section.plots.append(
        report.Plot("lake-28-segment", "Figure 6.28: index of 1,000 files", "bits", "s", series)
    )


def _notes() -> list[str]:
    return [
        "One process bound to one core; sweeps of whole segments in memory, just made (the time "
        "of fetching an index is in the section `lake`). A sweep's time is the shortest of "
        f"{ROUNDS} rounds for Figures 6.17 and 6.21, of one otherwise; deviation is half of the "
        "distance between the slowest and the fastest range, over their middle. Replies are not "
        "in it: they grow with what is kept, as every reply does.",
        "Ranges: 64 of sizes 2^0 to 2^63, anywhere in [0, 2^63); of 1,000,000 files with values "
        "side by side in that domain. No sweep lost a file, or this section would have failed. "
        "The thesis does not print numbers of its curves 6.17 to 6.19; it asks for no goal of "
        "false positives, its outliers at the largest sizes are below 5.",
        "The thesis' manifests hold 1,000 entries with everything else that Iceberg tells of a "
        "file, 470 KB at 2,048 bits; ours hold filters and tags only.",
    ]
