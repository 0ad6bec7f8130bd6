"""Bring an existing DuckDB database over: every table, encrypted, with views and the rest.

The file is only read. Which columns are encrypted, and how, the policy says (--policy); without
one, every column of every table is.
"""

from __future__ import annotations

import argparse
import time

from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE.duckdb", help="the database to bring over")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.executor import transfer
    from louver.trusted.executor.progress import bar

    start = time.perf_counter()
    with opened(options) as connection, bar() as progress:
        counts = transfer.encrypt(connection.context, options.file, progress=progress)
    report(options, counts, time.perf_counter() - start, "encrypted")
    return 0


def report(options: argparse.Namespace, counts: dict[str, int], seconds: float, verb: str) -> None:
    """Say how many rows of which table."""
    if options.json:
        terminal.out_json({"ok": True, "tables": counts, "seconds": round(seconds, 3)})
        return
    for table, rows in counts.items():
        terminal.out(f"{table:<30}{rows:>12,} rows")
    total = sum(counts.values())
    terminal.say(f"{verb} {total:,} rows of {len(counts)} tables in {seconds:.1f} s")
