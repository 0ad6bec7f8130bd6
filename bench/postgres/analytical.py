"""The section `postgres-tpch`: TPC-H with every column ENC, beside plaintext PostgreSQL."""

from __future__ import annotations

from bench import report
from bench.postgres import tpch

SCALE, QUICK_SCALE = 1.0, 0.01
LIMIT_S, QUICK_LIMIT_S = 120.0, 5.0
RUNS, QUICK_RUNS = 3, 1


def run(*, quick: bool) -> report.Report:
    """All 22 queries at the scale, or at those that the environment names."""
    scale, limit_s, runs = (
        (QUICK_SCALE, QUICK_LIMIT_S, QUICK_RUNS) if quick else (SCALE, LIMIT_S, RUNS)
    )
    return measured(tpch.scales((scale,)), limit_s, runs)


def measured(scales: tuple[float, ...], limit_s: float, runs: int) -> report.Report:
    """All queries at some scales, each in a process of its own."""
    section = report.Report("postgres-tpch", "TPC-H on a PostgreSQL server")
    for scale in scales:
        tpch.grids(section, scale, limit_s, runs)
    section.notes.append(
        f"Policy `{tpch.POLICY}` of tests/tpc, every column ENC; data of DuckDB's generator as a "
        "stream of Arrow, loaded by con.load and by the driver's binary COPY; the same "
        f"{len(tpch.INDEXES)} indexes on both sides ({'; '.join(tpch.INDEXES)}). Answers are "
        "compared in the first run, which opens layers; both sides are vacuumed then, and ms are "
        f"medians of {runs} later runs. A query of either side ends after {limit_s:g} s "
        f"(statement_timeout; a first run of Louver's after {tpch.OPENING_TIMES} times that), and "
        "is then shown so and not part of the median."
    )
    return section
