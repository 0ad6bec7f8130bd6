"""A section of results: lines against a peer, free tables, plots; as text, Markdown and JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"
COLUMNS = ("measurement", "Louver", "peer", "peer's figure", "ratio", "target", "peak MiB")


@dataclass(slots=True)
class Line:
    """One figure and its peer's, both of this run.

    ``target`` is a bound on our own value, ``target_ratio`` one on the ratio, which is told such
    that above 1 Louver is the better one. ``peer_peak_mib`` belongs to the peer.
    """

    what: str
    ours: float
    unit: str
    peer: str
    theirs: float
    more_is_better: bool = False
    target: float | None = None
    target_ratio: float | None = None
    peak_mib: float | None = None
    peer_peak_mib: float | None = None

    @property
    def ratio(self) -> float:
        """How many times better Louver is; below 1 it is worse."""
        high, low = (self.ours, self.theirs) if self.more_is_better else (self.theirs, self.ours)
        return high / low if low else float("inf")

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target_ratio is not None:
            return self.ratio >= self.target_ratio
        if self.target is None:
            return None
        return self.ours >= self.target if self.more_is_better else self.ours <= self.target

    def cells(self) -> list[str]:
        """The line as it is printed."""
        aim = ""
        if self.target_ratio is not None:
            aim = f"≥ {self.target_ratio:g}×"
        elif self.target is not None:
            aim = f"{'≥' if self.more_is_better else '≤'} {number(self.target)} {self.unit}"
        if aim:
            aim += " met" if self.met else " MISSED"
        peaks = [f"{p:.0f}" for p in (self.peak_mib, self.peer_peak_mib) if p is not None]
        return [
            self.what,
            f"{number(self.ours)} {self.unit}",
            self.peer,
            f"{number(self.theirs)} {self.unit}",
            times(self.ratio),
            aim,
            " / ".join(peaks),
        ]


@dataclass(slots=True)
class Grid:
    """A table of its own: a figure of a paper, the steps of a query."""

    title: str
    header: list[str]
    rows: list[list[str]]


@dataclass(slots=True)
class Plot:
    """Points per series, drawn to `results/<file>.png`."""

    file: str
    title: str
    x: str
    y: str
    series: dict[str, list[tuple[float, float]]]
    log: bool = True


@dataclass(slots=True)
class Report:
    """Everything that one `python -m bench NAME` found."""

    name: str
    title: str
    lines: list[Line] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """For a terminal."""
        parts = [self.title, "=" * len(self.title), ""]
        if self.lines:
            parts.append(aligned(list(COLUMNS), [line.cells() for line in self.lines]))
        for grid in self.grids:
            parts += [grid.title, aligned(grid.header, grid.rows)]
        parts += [textwrap.fill(f"* {n}", 100, subsequent_indent="  ") for n in self.notes]
        return "\n".join(parts)

    def markdown(self, level: int = 1) -> str:
        """For a page; the title at the given level."""
        parts = [f"{'#' * level} {self.title}\n"]
        if self.lines:
            parts.append(piped(list(COLUMNS), [line.cells() for line in self.lines]))
        for grid in self.grids:
            parts += [f"{'#' * (level + 1)} {grid.title}\n", piped(grid.header, grid.rows)]
        if self.notes:
            parts.append("\n".join(wrapped(f"* {note}") for note in self.notes) + "\n")
        return "\n".join(parts)

    def save(self) -> None:
        """Write JSON, Markdown and plots into the results folder."""
        from bench import plots

        # A first look does not take the place of what was measured properly.
        folder = FOLDER / "quick" if self.run.get("quick") else FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        drawn = [plots.draw(plot, folder) for plot in self.plots]
        page = self.markdown() + "".join(f"\n![{file}]({file})\n" for file in drawn)
        (folder / f"{self.name}.md").write_text(page, encoding="utf-8")
        figures = asdict(self)
        for line, mask in zip(self.lines, figures["lines"], strict=True):
            mask |= {"ratio": line.ratio, "met": line.met}
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Report:
    """A report from its JSON."""
    content = json.loads(path.read_text(encoding="utf-8"))
    result = {k: v for k, v in content.items() if k not in ("lines", "grids", "plots")}
    derived = {"ratio", "met"}
    lines = [Line(**{k: v for k, v in li.items() if k not in derived}) for li in content["lines"]]
    grids = [Grid(**grid) for grid in content["grids"]]
    return Report(lines=lines, grids=grids, plots=[Plot(**p) for p in content["plots"]], **result)


def number(value: float) -> str:
    """A number as people read it: three significant digits, thousands apart."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in digits else digits


def times(ratio: float) -> str:
    """A ratio in words: better or worse."""
    if ratio >= 1:
        return f"{number(ratio)}× better"
    return f"{number(1 / ratio)}× worse" if ratio else "without end worse"


def aligned(header: list[str], rows: list[list[str]]) -> str:
    """Columns side by side for a terminal."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, ["-" * width for width in widths], *rows]
    ]
    return "\n".join(lines) + "\n"


def piped(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def wrapped(text: str) -> str:
    """A paragraph in lines that fit, or the item of a list; words are not cut."""
    indent = "  " if text.startswith("* ") else ""
    return textwrap.fill(
        text, 98, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
