"""The experiments of the SDB report (its chapter 4 and appendix 7.2), repeated on DuckDB."""

from bench.sdb.experiment import run

__all__ = ["run"]
