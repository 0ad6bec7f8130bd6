"""Append Parquet, CSV or JSON files to a table.

Columns are matched by name. A load is all or nothing: a bad row is reported and nothing is loaded.
A table that does not exist is an error without --create.
FILE can be a pattern such as 'data/*.csv', or - for CSV from stdin. --create creates the table
first, with the columns and types of the files, every column ENC unless the policy says otherwise.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.trusted.executor.csv_files import CsvForm


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", metavar="TABLE", help="the table")
    parser.add_argument("file", metavar="FILE", help="a file, a pattern of files, or - for stdin")
    parser.add_argument("--create", action="store_true", help="create the table, encrypted")
    parser.add_argument("--delimiter", default="", metavar="CHARACTER", help="between CSV fields")
    parser.add_argument(
        "--null", action="append", default=[], metavar="TEXT",
        help="a CSV field that means NULL, such as NA; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--date-format", default="", metavar="FORMAT", help="of CSV dates, such as %%d.%%m.%%Y"
    )
    parser.add_argument(
        "--timestamp-format", default="", metavar="FORMAT", help="of CSV timestamps"
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.executor.csv_files import CsvForm

    form = CsvForm(
        options.delimiter.replace("\\t", "\t"), tuple(options.null), options.date_format,
        options.timestamp_format,
    )  # fmt: skip
    with opened(options) as connection:
        start = time.perf_counter()
        try:
            # `opened` silences these for the commands that print the notices of an answer.
            with warnings.catch_warnings(record=True) as issued:
                warnings.simplefilter("always", errors.LeakageWarning)
                rows = _load(connection, options, form)
        except KeyboardInterrupt:
            raise errors.make("load.interrupted", table=options.table) from None
        spent = time.perf_counter() - start
    notices = [str(warning.message) for warning in issued]
    if options.json:
        body = {"ok": True, "table": options.table, "rows": rows, "seconds": spent}
        terminal.out_json(body | ({"notices": notices} if notices else {}))
    else:
        terminal.say(f"{rows:,} rows in {spent:.1f} s")
        for notice in notices:
            terminal.note(notice)
    return 0


def _load(connection: Connection, options: argparse.Namespace, form: CsvForm) -> int:
    if not options.create:
        return connection.load(options.table, options.file, form=form, create=False)
    if options.file == "-":
        raise errors.make("usage", detail="--create reads the types first, which stdin cannot give")
    # ENC without a scheme: profile and policy say what it means.
    encrypt = True if options.policy is None else None
    return connection.load(
        options.table, options.file, encrypt=encrypt, form=form, policy=options.policy
    )
