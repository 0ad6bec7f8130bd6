"""Figures 6.1 to 6.15 and 6.26 to 6.28: what single functions take, by the Rust example.

The example `eds_figures` prints a JSON line per point; here they become tables, plots and, where
the thesis says a number, ratios beside it.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench import machine, report

EXAMPLE = ["cargo", "run", "--release", "--locked", "-p", "louver-papers", "--example",
           "eds_figures", "--"]  # fmt: skip
TITLES = {
    "6.1": "id of the leftmost leaf, by height of the tree",
    "6.2": "coverage set of a leaf, by height",
    "6.3": "coverage set: naive, incremental, ours",
    "6.4": "minimum cover of a range, by height",
    "6.5": "nodes expanded for a minimum cover, by height",
    "6.6": "keyed hashes, by length of the input",
    "6.7": "uniformity: mean chi-square, by buckets (best: buckets - 1)",
    "6.8": "runs of 50 that deviate (p < 0.05; 2.5 expected), by buckets",
    "6.9": "false positives of split-block variants on 1,000,000 files",
    "6.10": "one query of a split-block filter, 64 and 256 bits of digest",
    "6.11": "one query, not encrypted, filters of 1 % false positives",
    "6.12": "one query, XOR-encrypted",
    "6.13": "XOR decryptions of a query",
    "6.14": "sub-tokens by matching pairs, basic filter",
    "6.15": "one query by encryption, split-block of 16,384 bits",
    "6.26": "pruning beside an order-revealing baseline",
    "6.27": "one ciphertext of a range",
    "6.28": "ciphertexts of a manifest of 1,000 files, by bits",
}
Series = dict[str, float]
Figures = dict[str, dict[str, Series]]


@dataclass(frozen=True, slots=True)
class Said:
    """A ratio that the thesis states: first over second, in both words and numbers."""

    figure: str
    what: str
    over: tuple[str, str]
    under: tuple[str, str]
    thesis: str


MEET, MISS = "intersecting", "not intersecting"
#: Which series over which, at which x; names are those that the example prints.
SAID = (
    Said("6.4", "bottom up over top down, height 64", ("bottom up", "64"), ("top down", "64"),
         "1.2"),
    Said("6.5", "the same, nodes expanded", ("bottom up", "64"), ("top down", "64"), "3.8"),
    Said("6.9", "256 bits without multiplication over 64 bits",
         ("256 bits, split only (paper)", "mean"), ("64 bits, multiplied", "mean"), "6.3"),
    Said("6.11", "basic over split-block, not intersecting", ("Basic", MISS),
         ("SplitBlock64", MISS), "2.1 on average"),
    Said("6.12", "basic by bit over split-block by block, not intersecting",
         ("Basic, XorBit, Highway", MISS), ("SplitBlock64, XorBlock, Highway", MISS), "2.5"),
    Said("6.13", "basic over 768, not intersecting", ("Basic, XorBit", MISS), ("", "768"),
         "0.188"),
    Said("6.13", "basic over 768, intersecting", ("Basic, XorBit", MEET), ("", "768"), "0.169"),
    Said("6.15", "XOR by block over AES, not intersecting", ("XorBlock, Highway", MISS),
         ("Aes, Highway", MISS), "5.5"),
    Said("6.15", "XOR by block over AES, intersecting", ("XorBlock, Highway", MEET),
         ("Aes, Highway", MEET), "4.6"),
    Said("6.26", "ORE over BF-EDS in AES, file by file", ("ORE, file by file", "random values"),
         ("BF-EDS, Aes, file by file", "random values"), "1.8"),
    Said("6.26", "ORE over BF-EDS in the default mode, both swept", ("ORE, sweep", "random values"),
         ("BF-EDS, XorBit, sweep", "random values"), ""),
    Said("6.26", "the same, values below 2^28", ("ORE, sweep", "values below 2^28"),
         ("BF-EDS, XorBit, sweep", "values below 2^28"), ""),
    Said("6.27", "ORE of 64 bits over BF-EDS in AES", ("ORE, 64 bits", "one range"),
         ("BF-EDS, Aes, Highway", "one range"), "135 (of one number or of a range: not said)"),
    Said("6.27", "the same, ORE of one number", ("ORE, 64 bits", "one number"),
         ("BF-EDS, Aes, Highway", "one range"), "135"),
    Said("6.27", "ORE of 32 bits over BF-EDS in AES", ("ORE, 32 bits", "one range"),
         ("BF-EDS, Aes, Highway", "one range"), "67"),
    Said("6.27", "ORE of 64 bits over BF-EDS in XOR by block", ("ORE, 64 bits", "one range"),
         ("BF-EDS, XorBlock, Highway", "one range"), "117"),
    Said("6.28", "ORE over BF-EDS in AES, file by file, 65,536 bits", ("ORE, 64 bits", "any"),
         ("file by file, Aes (paper)", "65536"), "30 (text), 39 (caption)"),
    Said("6.28", "ORE over our segment, default, 65,536 bits", ("ORE, 64 bits", "any"),
         ("segment, XorBit", "65536"), ""),
)  # fmt: skip


def run(*, quick: bool) -> report.Report:
    """The section `lake-micro`."""
    section = report.Report("lake-micro", "The lake: single functions, one thread")
    points = measured(quick=quick)
    section.grids = [_ratios(gathered(points))]
    # A figure may tell of several things: each unit has a table, the commonest the plot.
    for figure, title in TITLES.items():
        units = Counter(point["unit"] for point in points if point["figure"] == figure)
        for position, (unit, _) in enumerate(units.most_common()):
            of_unit = [point for point in points if point["unit"] == unit]
            named, series = f"Figure {figure}: {title} ({unit})", gathered(of_unit)[figure]
            section.grids.append(_grid(named, series))
            if position == 0:
                section.plots += _plot(figure, named, unit, series)
    section.notes = _notes()
    return section


def measured(*, quick: bool) -> list[dict[str, Any]]:
    """What the example prints, point by point."""
    done = subprocess.run(
        [*EXAMPLE, *(["--quick"] if quick else [])],
        cwd=machine.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def gathered(points: list[dict[str, Any]]) -> Figures:
    """Points by figure, series and x, in the order of the thesis."""
    results: Figures = {figure: {} for figure in TITLES}
    for point in points:
        series = results.setdefault(point["figure"], {}).setdefault(point["series"], {})
        series[str(point["x"])] = float(point["y"])
    return {figure: series for figure, series in results.items() if series}


def _ratios(figures: Figures) -> report.Grid:
    rows = []
    for said in SAID:
        over, under = _at(figures, said.figure, said.over), _at(figures, said.figure, said.under)
        ours = report.number(over / under) if over is not None and under else "not measured"
        rows.append([said.figure, said.what, ours, said.thesis or "not in it"])
    header = ["figure", "ratio of", "here", "thesis"]
    return report.Grid("Ratios that the thesis states, and their like here", header, rows)


def _at(figures: Figures, figure: str, position: tuple[str, str]) -> float | None:
    name, x = position
    return float(x) if not name else figures.get(figure, {}).get(name, {}).get(x)


def _grid(title: str, series: dict[str, Series]) -> report.Grid:
    places = _sorted(list(dict.fromkeys(x for points in series.values() for x in points)))
    some = places if len(places) <= 10 else [x for x in places if _round(x)] or places
    rows = [
        [name, *(report.number(points[x]) if x in points else "" for x in some)]
        for name, points in series.items()
    ]
    return report.Grid(title, ["", *some], rows)


def _plot(figure: str, title: str, unit: str, series: dict[str, Series]) -> list[report.Plot]:
    places = _sorted(list(dict.fromkeys(x for points in series.values() for x in points)))
    numeric = [x for x in places if x.isdigit()]
    position: Callable[[str], float] = float
    label = "x"
    if len(numeric) < 2:
        numeric, position = places, lambda x: float(places.index(x))
        label = ", ".join(f"{at}: {x}" for at, x in enumerate(places))
    lines = {
        name: [(position(x), y) for x, y in sorted(points.items(), key=lambda p: places.index(p[0]))
               if x in numeric and y > 0]
        for name, points in series.items()
    }  # fmt: skip
    lines = {name: points for name, points in lines.items() if points}
    if not lines:
        return []
    return [report.Plot(f"lake-{figure.partition('.')[2]}", title, label, unit, lines)]


def _sorted(places: list[str]) -> list[str]:
    return sorted(places, key=lambda x: (not x.isdigit(), int(x) if x.isdigit() else 0))


def _round(x: str) -> bool:
    return not x.isdigit() or int(x) & (int(x) - 1) == 0 or int(x) % 16 == 0


def _notes() -> list[str]:
    return [
        "By `cargo run --release -p louver-papers --example eds_figures`, one thread, the least "
        "of several rounds; what it takes to build the example is not in the times. The thesis: "
        "Google Benchmark on an Apple M1 Pro. Its curves have no numbers in the text.",
        "`(paper)` marks what does as the thesis does, for comparison. The order-revealing "
        "baseline (Lewi and Wu, blocks of 12 bits) was written for this comparison from the "
        "thesis' description and made fast with equal care, so its ratios are far below the "
        "thesis', whose baseline was slow; where a range has two ciphertexts and the thesis does "
        "not say which it counts, both ratios stand.",
        "The baseline shows the order of all bounds to whoever asks once; an index shows what a "
        "token opens. The ratios are of time alone.",
    ]
