"""Maintain the tables of a lake: files, snapshots, indexes.

`files` lists the files that a query would fetch, `history` the snapshots of a table. `compact`
merges small files, `reindex` rebuilds the index, `expire` removes old snapshots, `clean` deletes
files that crashed writers left behind. `encrypt` copies a plaintext Iceberg table into an encrypted
table.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import opened

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from louver.trusted.apps.cli import common

    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    files = actions.add_parser(
        "files", help="list the files that a query would fetch; reads no data"
    )
    files.add_argument("query", metavar="QUERY", help="a SELECT on tables of the lake")
    history = actions.add_parser("history", help="list the snapshots of a table")
    history.add_argument("table", metavar="TABLE")
    compact = actions.add_parser("compact", help="merge small files, or sort all rows again")
    compact.add_argument("table", metavar="TABLE")
    compact.add_argument("--rows", type=int, metavar="N", help="rows per file")
    compact.add_argument(
        "--order-by", nargs="+", default=[], metavar="COLUMN", help="sort all rows by these columns"
    )
    reindex = actions.add_parser("reindex", help="rebuild the index of all files")
    reindex.add_argument("table", metavar="TABLE")
    expire = actions.add_parser(
        "expire", help="remove old snapshots and the files that only they use"
    )
    expire.add_argument("table", metavar="TABLE")
    expire.add_argument(
        "--keep", type=int, default=1, metavar="N", help="snapshots to keep (default: 1)"
    )
    clean = actions.add_parser("clean", help="delete files that crashed writers left behind")
    clean.add_argument("table", metavar="TABLE")
    clean.add_argument(
        "--grace", type=float, metavar="SECONDS", help="minimum age (default: one day)"
    )
    encrypt = actions.add_parser("encrypt", help="encrypt a plaintext Iceberg table; continues "
                                 "after an interruption")  # fmt: skip
    encrypt.add_argument("source", metavar="SOURCE", help="its metadata file, *.metadata.json")
    encrypt.add_argument("table", metavar="TABLE", help="the name of the encrypted table")
    for action in (files, history, compact, reindex, expire, clean, encrypt):
        common(action)


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.action is None:
        raise errors.make("usage", detail="louver lake: no action given; see louver lake --help")
    with opened(options) as connection:
        body, lines = _done(connection, options)
    if options.json:
        terminal.out_json({"ok": True, **body})
    else:
        for line in lines:
            terminal.out(line)
    return 0


def _done(
    connection: Connection, options: argparse.Namespace
) -> tuple[dict[str, object], list[str]]:
    """The answer as JSON and as lines."""
    lake, action = connection.lake, options.action
    if action == "files":
        pruned = lake.files(options.query)
        tables = [
            {"table": f.table, "total": f.files_total, "kept": f.files_kept, "files": list(f.paths)}
            for f in pruned
        ]
        lines = []
        for files in pruned:
            lines.append(f"{files.table}: {files.files_kept:,} of {files.files_total:,} files")
            lines += [f"  {path}" for path in files.paths]
        return {"tables": tables}, lines
    if action == "history":
        rows = lake.history(options.table).to_pylist()
        lines = [f"{'snapshot':<20}  {'time (UTC)':<19}  {'files':>9}  {'rows':>13}  {'bytes':>15}"]
        lines += [
            f"{row['snapshot_id']:<20}  {row['made']:%Y-%m-%d %H:%M:%S}  {row['files']:>9,}  "
            f"{row['rows']:>13,}  {row['bytes']:>15,}"
            for row in rows
        ]
        return {"snapshots": rows}, lines
    if action == "compact":
        count = lake.compact(options.table, options.rows, options.order_by)
        return {"files": count}, [f"{options.table} has {count:,} files"]
    if action == "reindex":
        count = lake.reindex(options.table)
        return {"files": count}, [f"{count:,} files of {options.table} have an index"]
    if action == "expire":
        count = lake.expire(options.table, options.keep)
        return {"expired": count}, [f"{count:,} snapshots of {options.table} expired"]
    if action == "clean":
        paths = lake.clean(options.table, options.grace)
        return {"deleted": paths}, [*paths, f"{len(paths):,} files deleted"]
    count = lake.encrypt(options.source, options.table)
    return {"rows": count}, [f"{options.table} has {count:,} rows"]
