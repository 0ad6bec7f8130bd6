"""The 22 queries of TPC-H."""

from bench import report
from bench.tpc import experiment


def run(*, quick: bool) -> report.Report:
    """All of it; the section `tpch`."""
    return experiment.run("tpch", "TPC-H with every column encrypted", quick=quick)
