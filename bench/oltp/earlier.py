"""What short statements cost before rows changed without the catalog, beside what they cost now."""

from __future__ import annotations

from typing import Any

from bench import report
from bench.timing import median

#: Medians in milliseconds of a point read, INSERT, UPDATE and DELETE by key, on the machine of the
#: other figures, before docs/decisions/0020; by profile, rows, and whether the table had a key. The
#: tables had other columns than those of today's figures.
EARLIER: dict[tuple[str, int, bool], tuple[float, float, float, float]] = {
    ("cryptdb", 2_000, False): (4.5, 7.5, 27, 33),
    ("cryptdb", 200_000, False): (4.7, 7.1, 387, 561),
    ("sealed", 2_000, False): (5.7, 15, 27, 22),
    ("sealed", 200_000, False): (295, 7.8, 542, 461),
    ("cryptdb", 50_000, True): (5, 39, 109, 96),
}
NAMES = ("point read", "INSERT of one row", "UPDATE by key", "DELETE by key")
#: The size that today's figures of a table with a key are from.
_NOW_ROWS = 200_000


def grid(now: dict[tuple[str, int, bool], dict[str, Any]]) -> report.Grid:
    """Earlier figures beside those of this run, and plaintext DuckDB's of this run."""
    lines = []
    for (profile, rows, key), before in EARLIER.items():
        results = now.get((profile, rows, key)) or now.get((profile, _NOW_ROWS, key))
        if results is None:
            continue
        declared = ", PRIMARY KEY" if key else ""
        cells = [f"`{profile}`, {rows:,}{declared}"]
        for name, earlier in zip(NAMES, before, strict=True):
            ours, plain = (report.number(median(results[name][side])) for side in ("ours", "plain"))
            cells.append(f"{earlier:g} → {ours} ({plain})")
        lines.append(cells)
    return report.Grid("Earlier and now, ms (plaintext DuckDB now)", ["table", *NAMES], lines)


NOTE = (
    "Earlier and now: medians before rows changed without the catalog (docs/decisions/0020), "
    "measured on this machine with tables of five columns, then those of this run. A table of "
    f"50,000 rows with a PRIMARY KEY stands beside one of {_NOW_ROWS:,} rows now."
)
