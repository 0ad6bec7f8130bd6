"""Print the leakage ledger: everything that the server has been shown so far, in sentences."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection

_COLOURS = {"plaintext": "red", "order": "red", "equality": "yellow"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="of this table only")


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
    """The facts of the ledger with number and time."""
    if table is not None:
        of = {row[0] for row in _asked(connection, table)} or {table}
    found = connection.leakage().to_pylist()
    return [fact for fact in found if table is None or fact["table_name"] in of]


def sentences(connection: Connection, table: str | None = None, *, width: int = 0) -> list[str]:
    """The ledger table by table; with a ``width`` in lines of no more characters."""
    lines: list[str] = []
    rows = _asked(connection, table)
    for name in dict.fromkeys(row[0] for row in rows):
        lines.append(terminal.styled(name, "bold"))
        for _, _, level, text in (row for row in rows if row[0] == name):
            mark = terminal.styled(f"{level:<10}", _COLOURS.get(level, "dim"))
            first, *rest = textwrap.wrap(text, max(width - 12, 40)) if width else [text]
            lines += [f"  {mark}{first}", *(" " * 12 + line for line in rest)]
    if not lines and not connection.session.transactional:
        return ["No provider was asked anything on this connection; the ledger ends with it."]
    return lines or ["The server has been shown nothing of an encrypted column."]


def _asked(connection: Connection, table: str | None) -> list[tuple[str, str, str, str]]:
    from louver.trusted.executor.show import leakage_answer

    answer = leakage_answer(connection.context, table)
    return [] if answer.rows is None else [tuple(row.values()) for row in answer.rows.to_pylist()]
