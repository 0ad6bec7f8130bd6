"""Show what the server stores: its tables and the bytes of its rows, read without a key.

This is the database as the operator of the server sees it. Columns e_… contain sealed values, s_…
secret shares, h_… helper columns, w_… materialized terms of key updates; names have no further
meaning. For a lake it shows tables, indexes and the first files. With --share it shows what one
provider of `providers://` received: the public shape of a question, or shares, which reveal only
their length.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, TypeVar

from louver import errors
from louver.names import fold
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import database, stored_at

if TYPE_CHECKING:
    from louver.untrusted.engines.stored import FileTable, StoredFiles, StoredRows, StoredTable

_Table = TypeVar("_Table", "StoredTable", "FileTable")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="this table only")
    parser.add_argument(
        "--share", nargs="+", metavar="FILE",
        help="requests recorded by `louver serve provider --record DIR`, DIR itself, or shares",
    )  # fmt: skip
    parser.add_argument(
        "--rows", type=int, default=2, metavar="N", help="rows of each table (default: 2)"
    )
    parser.add_argument(
        "--bytes", type=int, default=32, metavar="N", help="bytes of each value (default: 32)"
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.share:
        return _shares(options)
    from louver.untrusted.engines.stored import StoredRows

    with stored_at(database(options)) as stored:
        if not isinstance(stored, StoredRows):
            return _files(stored, options)
        tables = chosen(stored.tables(), options.table)
        if options.json:
            listed = [as_json(stored, table, options.rows) for table in tables]
            terminal.out_json({"ok": True, "tables": listed})
            return 0
        for table in tables:
            for line in view(stored, table, options.rows, options.bytes):
                terminal.out(line)
            terminal.out("")
    return 0


def _shares(options: argparse.Namespace) -> int:
    from louver.trusted.apps import share_inspection

    contents = [share_inspection.inspected(path) for path in share_inspection.files(options.share)]
    if options.json:
        terminal.out_json({"ok": True, "files": contents})
        return 0
    for line in share_inspection.lines(contents):
        terminal.out(line)
    return 0


def _files(stored: StoredFiles, options: argparse.Namespace) -> int:
    from louver.trusted.apps import file_inspection

    tables = chosen(list(stored.tables()), options.table)
    if options.json:
        listed = file_inspection.as_json(stored, tables, options.rows)
        terminal.out_json({"ok": True, "tables": listed})
        return 0
    for line in file_inspection.lines(stored, tables, options.rows, options.bytes):
        terminal.out(line)
    return 0


def chosen(tables: list[_Table], name: str | None) -> list[_Table]:
    """The table of this name, or all tables."""
    if name is None:
        return tables
    matches = [table for table in tables if fold(table.label) == fold(name)]
    if not matches:
        raise errors.make("table.missing", table=name)
    return matches


def view(stored: StoredRows, table: StoredTable, rows: int, most_bytes: int) -> list[str]:
    """The header of a table and a hex dump of its first rows."""
    label = terminal.styled(terminal.clean(table.label), "bold")
    lines = [f"{label}: about {table.row_count:,} rows, {len(table.columns)} columns"]
    for number, row in enumerate(stored.rows(table, rows), 1):
        lines.append(f"  row {number}")
        for name, type_ in table.columns:
            lines += cell(name, type_, row[name], most_bytes)
    return lines


def cell(name: str, type_: str, value: Any, most_bytes: int) -> list[str]:
    """One value: bytes as a hex dump, other types as text."""
    head = f"    {terminal.clean(name):<14} {fold(type_):<7}"
    if isinstance(value, bytes):
        first, *rest = terminal.hex_lines(value, most_bytes) or ["(empty)"]
        indent = " " * 27
        return [f"{head} {first}", *(indent + line for line in rest)]
    return [f"{head} {'NULL' if value is None else terminal.clean(str(value))[:100]}"]


def as_json(stored: StoredRows, table: StoredTable, rows: int) -> dict[str, Any]:
    """The same as plain data, bytes as hexadecimal digits."""
    return {
        "table": table.label,
        "row_count": table.row_count,
        "columns": [{"name": name, "type": type_} for name, type_ in table.columns],
        "rows": [
            {k: v.hex() if isinstance(v, bytes) else terminal.jsonable(v) for k, v in row.items()}
            for row in stored.rows(table, rows)
        ],
    }
