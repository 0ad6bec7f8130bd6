"""Run SQL statements from the command line, a file or stdin, or open a shell.

Prints the rows of every statement and stops at the first error. Without SQL or --file, statements
are read from stdin; if stdin is a terminal, a shell opens.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from louver import errors
from louver.trusted.apps.answers import shown, statements
from louver.trusted.apps.cli_connection import opened


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("text", nargs="*", metavar="SQL", help="one or more statements")
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
    if options.text and options.file:
        raise errors.make("usage", detail="louver sql takes SQL or --file, not both")
    text = " ".join(options.text) if options.text else None
    if options.file:
        text = read(options.file)
    elif text is None and not sys.stdin.isatty():
        text = sys.stdin.read()
    with opened(options, providers=True) as connection:
        if text is None:
            from louver.trusted.apps.shell import Shell

            return Shell(connection, options).run()
        for statement in statements(text):
            shown(connection, statement, options)
    return 0


def read(name: str) -> str:
    """The text of a file of statements; `-` is stdin."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise errors.make("usage", detail=f"{name} cannot be read: {reason}") from None
