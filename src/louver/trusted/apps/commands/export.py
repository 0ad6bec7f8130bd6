"""Decrypt everything into a plain DuckDB database: tables, constraints, views and rows.

The file must not exist yet. Its content is not encrypted.
"""

from __future__ import annotations

import argparse
import time

from louver.trusted.apps.cli_connection import opened
from louver.trusted.apps.commands.encrypt import report
from louver.trusted.client.inside import context_of


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE.duckdb", help="the database to create")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.executor import export_file
    from louver.trusted.executor.progress import bar

    start = time.perf_counter()
    with opened(options) as connection, bar() as progress:
        counts = export_file.export(context_of(connection), options.file, progress=progress)
    report(options, counts, time.perf_counter() - start, "exported")
    return 0
