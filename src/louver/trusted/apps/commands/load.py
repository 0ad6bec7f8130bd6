"""Append a Parquet or CSV file to a table.

Columns are matched by name. A load is all or nothing: a bad row is reported and nothing is loaded.
"""

from __future__ import annotations

import argparse
import time

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", metavar="TABLE", help="the table, which must exist")
    parser.add_argument("file", metavar="FILE", help="a Parquet or CSV file")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    with opened(options) as connection:
        start = time.perf_counter()
        try:
            rows = connection.load(options.table, options.file)
        except KeyboardInterrupt:
            raise errors.make("load.interrupted", table=options.table) from None
        spent = time.perf_counter() - start
    if options.json:
        terminal.out_json({"ok": True, "table": options.table, "rows": rows, "seconds": spent})
    else:
        terminal.say(f"{rows:,} rows in {spent:.1f} s")
    return 0
