"""Line plots of a report."""

from __future__ import annotations

from pathlib import Path

from bench.report import Plot

STYLES = ("o-", "s-", "^-", "D-", "v-", "P-", "X-", "*-")


def draw(plot: Plot, folder: Path) -> str:
    """Draw one plot; the name of the file. A series that tells of a paper is dashed."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), dpi=110)
    for position, (name, points) in enumerate(plot.series.items()):
        style = STYLES[position % len(STYLES)]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            style.replace("-", "--") if "paper" in name else style,
            label=name,
            markersize=4,
            linewidth=1.2,
        )
    if plot.log:
        axes.set_yscale("log")
    axes.set_title(plot.title, fontsize=10)
    axes.set_xlabel(plot.x)
    axes.set_ylabel(plot.y)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    file = f"{plot.file}.png"
    # Without the version of the library in it, the same numbers give the same file.
    figure.savefig(folder / file, metadata={"Software": None})
    pyplot.close(figure)
    return file
