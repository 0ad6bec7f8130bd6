"""Run SQL: the text given, a file, what comes in on stdin, or a shell.

Every statement's rows are printed. The first error stops the run. Without text or file, statements
are read from stdin; where that is a terminal, a shell asks for them.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.trusted.client.relation import Relation


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("text", nargs="*", metavar="SQL", help="one or more statements")
    parser.add_argument("-f", "--file", metavar="FILE", help="read statements from a file")
    parser.add_argument(
        "--rows",
        type=int,
        default=40,
        metavar="N",
        help="how many rows of an answer to show (default: 40; 0: all)",
    )
    parser.add_argument("--csv", action="store_true", help="rows as CSV with a header, all of them")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.text and options.file:
        raise errors.make("usage", detail="louver sql takes a text or --file, not both")
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
    """A file of statements; `-` is stdin."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise errors.make("usage", detail=f"{name} cannot be read: {reason}") from None


def statements(text: str) -> list[str]:
    """The statements of a text, as they are written."""
    from louver.trusted.planner.sql import lexer

    return [part.home for part in lexer.split(text)]


def shown(
    connection: Connection, statement: str, options: argparse.Namespace
) -> tuple[Relation, dict[str, float]]:
    """Run one statement and print what it gives; it, and the milliseconds of its steps."""
    start = time.perf_counter()
    relation = connection.sql(statement).execute()
    answer = relation.answer
    spent = (time.perf_counter() - start) * 1000
    columns = list(zip(relation.columns, relation.types, strict=True))
    if options.json:
        told: dict[str, object] = {"ok": True}
        if answer.rows is not None:
            told["columns"] = [{"name": name, "type": type_} for name, type_ in columns]
            told["rows"] = terminal.rows_json(relation.fetchall())
        else:
            told["affected"] = max(answer.affected, 0)
        if answer.notices:
            told["notices"] = answer.notices
        terminal.out_json(told)
    elif answer.rows is None:
        if answer.affected >= 0:
            terminal.say(f"{answer.affected:,} row{'' if answer.affected == 1 else 's'}")
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(relation.columns)
        writer.writerows(relation.texts())
    elif relation.columns[:1] == ["explain_key"]:
        for _, value in relation.fetchall():
            terminal.out(value)
    else:
        relation.show(max_rows=options.rows or max(1, len(relation)))
    for notice in () if options.json else answer.notices:
        terminal.say(f"{terminal.styled('note:', 'yellow', sys.stderr)} {notice}")
    return relation, {**answer.times_ms, "all": spent}
