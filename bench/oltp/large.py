"""The section `oltp-large`: what of `oltp` grows with very many rows, which take long to fill."""

from __future__ import annotations

from bench import report
from bench.oltp import growth, section

ROWS, QUICK_ROWS = 2_000_000, 50_000


def run(*, quick: bool) -> report.Report:
    """Every form with few rows and with very many."""
    extent, rows = (section.QUICK, QUICK_ROWS) if quick else (section.FULL, ROWS)
    grids = section.growth_grids(extent, (extent.rows[0], rows), 1)
    notes = [growth.note(extent.runs)]
    return report.Report("oltp-large", f"Short statements, {rows:,} rows", grids=grids, notes=notes)
