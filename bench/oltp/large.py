"""The section `oltp-large`: the statements of `oltp` with more rows, which take long to fill."""

from __future__ import annotations

from bench import report
from bench.oltp import section

ROWS, QUICK_ROWS = 2_000_000, 50_000


def run(*, quick: bool) -> report.Report:
    """Statements alone."""
    extent, rows = (section.QUICK, QUICK_ROWS) if quick else (section.FULL, ROWS)
    grids = section.statement_grids(extent, (rows,))
    notes = [section.statement_note(extent)]
    return report.Report("oltp-large", f"Short statements, {rows:,} rows", grids=grids, notes=notes)
