"""Run SQL statements from the command line, a file or stdin, or open a shell.

Prints the rows of every statement and stops at the first error. Without SQL, --command or --file,
statements are read from stdin; if stdin is a terminal, a shell opens. A transaction that is still
open at the end is rolled back, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.answers import shown, statements
from louver.trusted.apps.cli_connection import opened
from louver.trusted.client.inside import session_of

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("text", nargs="*", metavar="SQL", help="one or more statements")
    parser.add_argument(
        "-c", "--command", dest="texts", action="append", metavar="SQL",
        help="run statements or a command of the shell; may be repeated",
    )  # fmt: skip
    parser.add_argument("-f", "--file", metavar="FILE", help="read statements from a file")
    parser.add_argument(
        "--rows",
        type=int,
        default=40,
        metavar="N",
        help="rows of an answer to show (default: 40; 0: all)",
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    sources = (options.text, options.texts, options.file)
    if sum(map(bool, sources)) > 1:
        raise errors.make("usage", detail="louver sql takes one of SQL, --command and --file")
    texts = [" ".join(options.text)] if options.text else options.texts
    if options.file:
        texts = [read(options.file)]
    elif texts is None and not sys.stdin.isatty():
        texts = [sys.stdin.read()]
    with opened(options, providers=True) as connection:
        if texts is not None and not any(_has_words(text) for text in texts):
            return run_statements(connection, texts, options)
        # Imported here: a statement from the command line needs no shell.
        from louver.trusted.apps.shell.shell import Shell

        shell = Shell(connection, options)
        return shell.run() if texts is None else shell.script(texts)


def run_statements(connection: Connection, texts: list[str], options: argparse.Namespace) -> int:
    """Run statements to the end, or to the first error. Returns the exit code."""
    for text in texts:
        for statement in statements(text):
            shown(connection, statement, options)
    return end_transaction(connection, as_json=options.json)


def end_transaction(connection: Connection, *, as_json: bool) -> int:
    """Roll back a transaction that is still open, and report that as an error."""
    if not session_of(connection).in_transaction:
        return 0
    connection.rollback()
    return terminal.fail(errors.make("transaction.dropped"), as_json)


def _has_words(text: str) -> bool:
    """Whether a line begins with a backslash, as the commands of the shell do."""
    return any(line.lstrip().startswith("\\") for line in text.split("\n"))


def read(name: str) -> str:
    """The text of a file of statements; `-` is stdin."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise errors.make("usage", detail=f"{name} cannot be read: {reason}") from None
