"""Encrypt an existing DuckDB database: tables, views, constraints and all other objects.

The file is only read. The policy (--policy) selects the encrypted columns and their schemes;
without a policy every column of every table is encrypted. --table encrypts some tables with their
types, sequences and indexes, and the views, macros and comments that need no other table; what is
left is named. Objects that the target has already must be equal; a table there is an error. COLLATE
stays, and is reported for each column. A lake, a table with generated columns, and a plain column
with a collation of an extension store none: --drop-collations stores these columns without.
--dry-run encrypts some rows of each table in memory and estimates the time and the bytes of the
whole.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from louver.trusted.apps import formats, startup, terminal
from louver.trusted.apps.cli_connection import opened
from louver.trusted.client.inside import context_of

if TYPE_CHECKING:
    from louver.trusted.executor.transfer import Filled

#: Rows of each table that a dry run encrypts.
SAMPLE_ROWS = 20_000
_COLUMNS = [
    ("table", "VARCHAR"),
    ("rows", "BIGINT"),
    ("bytes sent", "BIGINT"),
    ("seconds", "DOUBLE"),
]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE.duckdb", help="the database to encrypt")
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME", dest="tables",
        help="this table only; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--drop-collations", action="store_true",
        help="store columns without COLLATE where it cannot be stored",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="estimate time and bytes; nothing is stored"
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.dry_run:
        return _estimate(options)
    from louver.trusted.executor import transfer
    from louver.trusted.executor.progress import bar

    start = time.perf_counter()
    with opened(options) as connection, bar() as progress:
        done = transfer.encrypt(
            context_of(connection), options.file, progress=progress, names=options.tables,
            drop_collations=options.drop_collations,
        )  # fmt: skip
        stored = context_of(connection).catalog.tables.values()
        plain = [table.label for table in stored if not table.has_encrypted]
    notices = [*done.notices, *(_plain_notice(table) for table in plain if table in done.counts)]
    report(options, done.counts, time.perf_counter() - start, "encrypted", notices)
    return 0


def _estimate(options: argparse.Namespace) -> int:
    """Encrypt some rows of each table into a database in memory, and scale what that took."""
    with startup.without_collection():
        from louver.trusted.client.connect import connect
        from louver.trusted.executor import transfer

    estimates: list[tuple[str, int, int, float]] = []
    connection = connect(
        "duckdb:///:memory:", options.keys, profile=options.profile, policy=options.policy
    )
    traffic = context_of(connection).engine.traffic
    before = traffic.bytes_out

    def filled(table: str, rows: int, seconds: float) -> None:
        nonlocal before
        sent, before = traffic.bytes_out - before, traffic.bytes_out
        factor = max(rows / min(rows, SAMPLE_ROWS), 1) if rows else 1
        estimates.append((table, rows, round(sent * factor), seconds * factor))

    with connection:
        after_each: Filled = filled
        done = transfer.encrypt(
            context_of(connection), options.file, names=options.tables, most_rows=SAMPLE_ROWS,
            filled=after_each, drop_collations=options.drop_collations,
        )  # fmt: skip
    if options.json:
        tables = [
            {"table": table, "rows": rows, "bytes": sent, "seconds": round(seconds, 3)}
            for table, rows, sent, seconds in estimates
        ]
        terminal.out_json({"ok": True, "estimates": tables, "notices": list(done.notices)})
        return 0
    texts = [(table, str(rows), str(sent), f"{s:.1f}") for table, rows, sent, s in estimates]
    formats.write_texts(options.form or "box", _COLUMNS, texts)
    _say(done.notices)
    seconds = sum(estimate[3] for estimate in estimates)
    terminal.say(f"nothing was stored; about {seconds:.0f} s in all, estimated from a sample")
    return 0


def _plain_notice(table: str) -> str:
    return f"The policy encrypts no column of {table}: the server stores every value in plain text."


def report(
    options: argparse.Namespace,
    counts: dict[str, int],
    seconds: float,
    verb: str,
    notices: Sequence[str] = (),
) -> None:
    """Print the number of rows of each table, and what else the user is to know."""
    if options.json:
        body = {"ok": True, "tables": counts, "seconds": round(seconds, 3)}
        terminal.out_json({**body, "notices": list(notices)} if notices else body)
        return
    for table, rows in counts.items():
        terminal.out(f"{table:<30}{rows:>12,} rows")
    _say(notices)
    total = sum(counts.values())
    terminal.say(f"{verb} {total:,} rows of {len(counts)} tables in {seconds:.1f} s")


def _say(notices: Sequence[str]) -> None:
    for notice in notices:
        terminal.note(notice)
