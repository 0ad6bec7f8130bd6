"""The kernel against crate fss-rs, one core: Figures 12 and 13 and targets."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from bench import report
from bench.machine import ROOT
from bench.report import number
from bench.splinter import paper

CRATE = Path(__file__).resolve().parent / "rates"
PEER = "fss-rs 0.6"
Rates = dict[tuple[str, str, int], dict[str, float]]
#: Targets at 24 bits: Louver's name, the peer's name, least rate per second, least ratio to the
#: peer.
TARGETS = (
    ("point", "point", 30e6, 12.0),
    ("comparison", "comparison", 10e6, None),
    ("point, sorted", "point", 150e6, None),
)
FULL_MS, MAKE_US = 40.0, 5.0


def run(*, quick: bool) -> report.Report:
    """The section `splinter-kernel`."""
    rates = measured(quick)
    section = report.Report("splinter-kernel", "Function secret sharing: one core, one run")
    _lines(section, rates)
    section.grids = [_figure_12(rates), _figure_13(rates), _whole(rates)]
    section.plots = [_plot_12(rates), _plot_13(rates)]
    section.notes = _notes()
    return section


def measured(quick: bool) -> Rates:
    """Build and run the crate beside this file."""
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    build = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", target]
    subprocess.run(build, cwd=CRATE, check=True)
    core = str(max(os.sched_getaffinity(0)))
    program = str(Path(target) / "release" / "splinter-rates")
    command = ["taskset", "-c", core, program, *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    content = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]
    return {(item["who"], item["what"], item["bits"]): item for item in content}


def _lines(section: report.Report, rates: Rates) -> None:
    for ours, theirs, least, times in TARGETS:
        mine, peer = (rates.get(key) for key in (("louver", ours, 24), ("fss-rs", theirs, 24)))
        if mine is None or peer is None:
            continue
        line = report.Line(
            f"{ours}, 24 bits", mine["per_s"] / 1e6, "million/s", PEER, peer["per_s"] / 1e6,
            more_is_better=True, target=least / 1e6,
        )  # fmt: skip
        section.lines.append(line)
        if times is not None:
            section.lines.append(
                report.Line(
                    f"{ours}, 24 bits, against the peer", mine["per_s"] / 1e6, "million/s", PEER,
                    peer["per_s"] / 1e6, more_is_better=True, target_ratio=times,
                )
            )  # fmt: skip
    full, peer = rates.get(("louver", "point, all to words", 24)), rates.get(_all(24))
    if full is not None and peer is not None:
        section.lines.append(
            report.Line(
                "whole domain of 24 bits to 64-bit words", full["seconds"] * 1000, "ms", PEER,
                peer["seconds"] * 1000, target=FULL_MS,
            )
        )  # fmt: skip
    for what in ("make point", "make comparison"):
        mine, peer = rates[("louver", what, 24)], rates[("fss-rs", what, 24)]
        section.lines.append(
            report.Line(
                f"{what}, 24 bits, both shares", 1e6 / mine["per_s"], "µs", PEER,
                1e6 / peer["per_s"], target=MAKE_US,
            )
        )  # fmt: skip


def _all(bits: int) -> tuple[str, str, int]:
    return ("fss-rs", "point, all", bits)


def _figure_12(rates: Rates) -> report.Grid:
    names = [
        ("louver", "point", "Louver, point"),
        ("louver", "point, sorted", "point, sorted keys"),
        ("louver", "comparison", "comparison"),
        ("louver", "comparison, sorted", "comparison, sorted keys"),
        ("louver, three", "point, one-way", "three parties, one-way"),
        ("louver, three", "interval, Paillier", "three parties, Paillier interval"),
        ("fss-rs", "point", "fss-rs, point"),
        ("fss-rs", "comparison", "fss-rs, comparison"),
    ]
    bits = sorted({item[2] for item in rates})
    rows = [
        [str(width), *(_rate(rates.get((who, what, width))) for who, what, _ in names)]
        for width in bits
    ]
    known = [f"{paper.POINTS_24_PER_S:,}", "", "", "", "", f"{paper.PAILLIER_PER_S:,}", "", ""]
    rows.append(["paper, 24 bits", *known])
    header = ["bits", *(title for _, _, title in names)]
    return report.Grid("Figure 12: evaluations a second on one core", header, rows)


def _rate(item: dict[str, float] | None) -> str:
    return "" if item is None else f"{item['per_s']:,.0f}"


def _figure_13(rates: Rates) -> report.Grid:
    rows = []
    for bits, known in paper.GENERATION_S.items():
        results = [
            rates.get(("louver, three", f"make {what}", bits))
            for what in ("point, one-way", "interval, Paillier")
        ]
        two = rates.get(("louver", "make point", bits))
        rows.append(
            [
                str(bits),
                *(_ms(item) for item in (two, *results)),
                *(number(item * 1000) for item in known),
            ]
        )
    header = [
        *("bits", "two parties ms", "three, one-way ms", "three, Paillier ms"),
        *("paper: one-way ms", "paper: Paillier ms"),
    ]
    return report.Grid("Figure 13: time to make the shares of a question", header, rows)


def _ms(item: dict[str, float] | None) -> str:
    return "" if item is None else number(1000 / item["per_s"])


def _whole(rates: Rates) -> report.Grid:
    rows = [
        [
            str(bits),
            *(
                number(rates[key]["seconds"] * 1000) if (key := (who, what, bits)) in rates else ""
                for who in ("louver", "fss-rs")
                for what in ("point, all", "comparison, all")
            ),
        ]
        for bits in (8, 16, 24)
    ]
    header = ["bits", "Louver, point ms", "comparison ms", "fss-rs, point ms", "comparison ms"]
    return report.Grid("Whole domains", header, rows)


def _series(rates: Rates, who: str, what: str, *, inverse: bool) -> list[tuple[float, float]]:
    results = [
        (float(bits), 1000 / item["per_s"] if inverse else item["per_s"])
        for (by, name, bits), item in rates.items()
        if by == who and name == what
    ]
    return sorted(results)


def _plot_12(rates: Rates) -> report.Plot:
    shown = {
        "point": ("louver", "point"),
        "comparison": ("louver", "comparison"),
        "three parties, one-way": ("louver, three", "point, one-way"),
        "three parties, Paillier": ("louver, three", "interval, Paillier"),
        "fss-rs, point": ("fss-rs", "point"),
        "fss-rs, comparison": ("fss-rs", "comparison"),
    }
    series = {name: _series(rates, *key, inverse=False) for name, key in shown.items()}
    series["paper, point"] = [(24.0, float(paper.POINTS_24_PER_S))]
    series["paper, Paillier"] = [(24.0, float(paper.PAILLIER_PER_S))]
    title = "Figure 12: evaluations a second on one core"
    return report.Plot("splinter-rates", title, "bits of the domain", "a second", series)


def _plot_13(rates: Rates) -> report.Plot:
    many = "louver, three"
    series = {
        "one-way functions": _series(rates, many, "make point, one-way", inverse=True),
        "Paillier": _series(rates, many, "make interval, Paillier", inverse=True),
        "two parties": _series(rates, "louver", "make point", inverse=True),
        "paper, one-way functions": [(b, s[0] * 1000) for b, s in paper.GENERATION_S.items()],
        "paper, Paillier": [(b, s[1] * 1000) for b, s in paper.GENERATION_S.items()],
    }
    title = "Figure 13: milliseconds to make shares"
    return report.Plot("splinter-generation", title, "bits of the domain", "ms", series)


def _notes() -> list[str]:
    return [
        "Louver and fss-rs take turns in one process bound to one core; each figure is the best of "
        "several runs in processor time of its thread. fss-rs uses its default generator (Matyas, "
        "Meyer and Oseas over AES-128 with AES instructions), payloads of 16 bytes, one thread; "
        "it evaluates points one by one, without support for sorted keys.",
        "Louver's points have a payload of 16 bytes that authenticates the answer. `make` is both "
        "shares, randomness of the operating system included for Louver, fixed seeds for fss-rs.",
        "The paper's rates are those in its text (one core of a Haswell Xeon); its figure of the "
        "share of an interval over Paillier's group is for points. Figure 13 in the paper says "
        "`< 1 ms` at 8 and 16 bits with one-way functions, drawn here as 1 ms.",
    ]
