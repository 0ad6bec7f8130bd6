"""Print the leakage ledger: everything that the server has learned so far."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened
from louver.trusted.client.inside import session_of

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection

#: Levels that are marked with ! and in red.
SEVERE = ("plaintext", "order")
_COLOURS = {**dict.fromkeys(SEVERE, "red"), "equality": "yellow"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="this table only")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    with opened(options, providers=True) as connection:
        if options.json:
            terminal.out_json({"ok": True, "facts": facts(connection, options.table)})
        else:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
            for line in sentences(connection, options.table, width=width):
                terminal.out(line)
    return 0


def facts(connection: Connection, table: str | None) -> list[dict[str, object]]:
    """The facts of the ledger with their numbers and times."""
    if table is not None:
        names = {row[0] for row in _rows(connection, table)} or {table}
    entries = connection.leakage().arrow().to_pylist()
    return [fact for fact in entries if table is None or fact["table_name"] in names]


def sentences(connection: Connection, table: str | None = None, *, width: int = 0) -> list[str]:
    """The ledger by table, wrapped at ``width`` characters (0: not wrapped)."""
    lines: list[str] = []
    rows = _rows(connection, table)
    for name in dict.fromkeys(row[0] for row in rows):
        lines.append(terminal.styled(name, "bold"))
        for _, _, level, text in (row for row in rows if row[0] == name):
            mark = terminal.styled(f"{level:<10}", _COLOURS.get(level, "dim"))
            first, *rest = textwrap.wrap(text, max(width - 12, 40)) if width else [text]
            sign = "!" if level in SEVERE else " "
            lines += [f"{sign} {mark}{first}", *(" " * 12 + line for line in rest)]
    if not lines and not session_of(connection).transactional:
        return ["No question was sent on this connection, and its ledger ends with it."]
    return lines or ["The server has learned nothing about an encrypted column."]


def _rows(connection: Connection, table: str | None) -> list[tuple[str, str, str, str]]:
    from louver.trusted.executor import reported_leakage

    answer = reported_leakage.answer(session_of(connection).context, table)
    return [] if answer.rows is None else [tuple(row.values()) for row in answer.rows.to_pylist()]
