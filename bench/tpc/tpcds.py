"""The 99 queries of TPC-DS."""

from bench import report
from bench.tpc import experiment


def run(*, quick: bool) -> report.Report:
    """All of it; the section `tpcds`."""
    return experiment.run("tpcds", "TPC-DS with every column encrypted", quick=quick)
