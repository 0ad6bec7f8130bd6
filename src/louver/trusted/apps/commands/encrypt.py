"""Encrypt an existing DuckDB database: tables, views, constraints and all other objects.

The file is only read. The policy (--policy) selects the encrypted columns and their schemes;
without a policy every column of every table is encrypted.
"""

from __future__ import annotations

import argparse
import time

from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE.duckdb", help="the database to encrypt")


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
    """Print the number of rows of each table."""
    if options.json:
        terminal.out_json({"ok": True, "tables": counts, "seconds": round(seconds, 3)})
        return
    for table, rows in counts.items():
        terminal.out(f"{table:<30}{rows:>12,} rows")
    total = sum(counts.values())
    terminal.say(f"{verb} {total:,} rows of {len(counts)} tables in {seconds:.1f} s")
