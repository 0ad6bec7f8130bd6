"""Decrypt everything into a plain database: tables, constraints, views and rows.

FILE.duckdb must not exist yet. With --to the target is a database of a PostgreSQL server, in which
no table of these names exists yet: all is written in one transaction, and what has no equal there
is refused or named. What is written is not encrypted.
"""

from __future__ import annotations

import argparse
import time

from louver import errors
from louver.trusted.apps.cli_connection import opened
from louver.trusted.apps.commands.encrypt import report
from louver.trusted.client.inside import context_of


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE.duckdb", nargs="?", help="the database to create")
    parser.add_argument("--to", metavar="URL", default="", help="a database: postgresql://…")
    parser.add_argument(
        "--as-text", action="store_true",
        help="with --to: write values of types that the server does not have as text",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted import backends
    from louver.trusted.executor import export_file, server_target
    from louver.trusted.executor.progress import bar
    from louver.trusted.vault.catalog import DUCKDB

    errors.refuse_keys(options.to)
    if bool(options.file) == bool(options.to) or (options.as_text and not options.to):
        raise errors.make("usage", detail="give either FILE.duckdb or --to URL, with --as-text")
    scheme = options.to.partition("://")[0]
    if options.to and scheme not in backends.PLAIN:
        raise errors.make("url.scheme", scheme=scheme)
    start, notices = time.perf_counter(), list[str]()
    with opened(options) as connection, bar() as progress:
        context = context_of(connection)
        if options.file and context.catalog.language != DUCKDB:
            detail = "a database of PostgreSQL's language is exported with --to postgresql://…"
            raise errors.make("usage", detail=detail)
        if options.to and context.catalog.language != DUCKDB:
            from louver.trusted.executor.postgres import exporting

            counts, notices = exporting.export(context, options.to, progress=progress)
        elif options.to:
            counts, notices = server_target.export(
                context, options.to, progress=progress, as_text=options.as_text
            )
        else:
            counts = export_file.export(context, options.file, progress=progress)
    report(options, counts, time.perf_counter() - start, "exported", notices)
    return 0
