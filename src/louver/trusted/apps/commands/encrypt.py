"""Encrypt an existing DuckDB or PostgreSQL database: tables, views, constraints and other objects.

The source is only read. The policy (--policy) selects the encrypted columns and their schemes;
without a policy every column of every table is encrypted. --table encrypts some tables with their
types, sequences and indexes, and the views, macros and comments that need no other table; what is
left is named. Objects that the target has already must be equal; a table there is an error. COLLATE
stays, and is reported for each column. A lake, a table with generated columns, and a plain column
with a collation of an extension store none: --drop-collations stores these columns without.
--dry-run encrypts some rows of each table, stores nothing that stays, and estimates the time and
the bytes of the whole.

Of a PostgreSQL database (postgresql://…) all tables are read in one state, and stored one after the
other, each whole or not at all: --resume goes on after an interruption. Into a database of
PostgreSQL's language everything comes along as it is declared; what Louver does not have is listed
before anything is stored, and --leave-out leaves it. Types of extensions are refused unless
--as-text stores their values as text. Into one of DuckDB's language types that DuckDB does not have
are refused in the same way, rules and objects that it does not have are named, and --into stores
all tables in one schema, which may be in the source itself.

--in-place encrypts a PostgreSQL database within itself: it is tried as a whole first, which changes
nothing, and with --yes done, table by table; the plaintext of each goes in the transaction that
stores it encrypted. After an interruption --resume goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict

from louver import errors
from louver.trusted.apps import formats, startup, terminal
from louver.trusted.apps.cli_connection import opened
from louver.trusted.client.inside import context_of, session_of

if TYPE_CHECKING:
    from typing import Unpack

    from louver.trusted.client.dbapi import Connection
    from louver.trusted.executor.progress import Progress
    from louver.trusted.executor.transfer import Encrypted, Filled

#: Rows of each table that a dry run encrypts.
SAMPLE_ROWS = 20_000
#: A server that ends with this process.
_SERVER = "louver.untrusted.servers.private_postgres"
_COLUMNS = [
    ("table", "VARCHAR"),
    ("rows", "BIGINT"),
    ("bytes sent", "BIGINT"),
    ("seconds", "DOUBLE"),
]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "source", metavar="SOURCE", help="the database to encrypt: FILE.duckdb or postgresql://…"
    )
    parser.add_argument(
        "--to", metavar="URL", default="", help="the encrypted database (the same as --url)"
    )
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
    server = parser.add_argument_group("for a PostgreSQL database")
    server.add_argument(
        "--leave-out", action="store_true",
        help="leave out, and name, what PostgreSQL's language here does not have",
    )  # fmt: skip
    server.add_argument("--into", metavar="SCHEMA", default="", help="store all tables there")
    server.add_argument(
        "--as-text", action="store_true", help="store values of unknown types as text"
    )
    server.add_argument(
        "--resume", action="store_true",
        help="leave out tables that are there already, with the same rows; go on in place",
    )  # fmt: skip
    server.add_argument(
        "--in-place", action="store_true",
        help="encrypt the database within itself: the plaintext tables are dropped",
    )  # fmt: skip
    server.add_argument("--yes", action="store_true", help="do it, with --in-place")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    errors.refuse_keys(options.source)
    if options.in_place:
        _require_in_place(options)
    options.url = options.to or options.url
    from louver.trusted.vault.catalog import DUCKDB

    if "://" not in options.source:
        # Its objects are texts of DuckDB's.
        options.language = options.language or DUCKDB
    if options.dry_run:
        return _estimate(options)
    from louver.trusted.executor.progress import bar

    start = time.perf_counter()
    with opened(options) as connection, bar() as progress:
        done = _encrypted(connection, options, progress=progress)
        stored = context_of(connection).catalog.tables.values()
        plain = [table.label for table in stored if not table.has_encrypted]
    notices = [*done.notices, *(_plain_notice(table) for table in plain if table in done.counts)]
    report(options, done.counts, time.perf_counter() - start, "encrypted", notices)
    return 0


def _require_in_place(options: argparse.Namespace) -> None:
    """Raise for what does not go with --in-place; the source is the target."""
    others = {
        "--to": options.to, "--table": options.tables, "--into": options.into,
        "--leave-out": options.leave_out, "--dry-run": options.dry_run,
    }  # fmt: skip
    unfit = [name for name, value in others.items() if value]
    if unfit or "://" not in options.source:
        detail = f"--in-place does not go with {unfit[0]}" if unfit else "--in-place needs a URL"
        raise errors.make("usage", detail=detail)
    if options.language not in (None, "", "postgres"):
        raise errors.make("usage", detail="--in-place is for PostgreSQL's language")
    options.url = options.source


def _encrypted(
    connection: Connection, options: argparse.Namespace, **how: Unpack[How]
) -> Encrypted:
    """Encrypt the source, a file or the database of a URL."""
    from louver.trusted import backends
    from louver.trusted.executor import server_source, transfer
    from louver.trusted.vault.catalog import DUCKDB

    context, names = context_of(connection), options.tables
    scheme, separator, _ = options.source.partition("://")
    if not separator:
        if options.into or options.as_text or options.resume or options.leave_out:
            detail = "--into, --as-text, --resume and --leave-out are for a PostgreSQL database"
            raise errors.make("usage", detail=detail)
        return transfer.encrypt(
            context, options.source, names=names, drop_collations=options.drop_collations, **how
        )
    if scheme not in backends.PLAIN:
        raise errors.make("url.scheme", scheme=scheme)

    def count(path: str) -> int:
        (row,) = connection.execute(f"SELECT count(*) FROM {path}").fetchall()
        return int(row[0])

    if context.catalog.language != DUCKDB:
        return _as_it_is(connection, options, count, **how)
    return server_source.encrypt(
        context, options.source, count=count, names=names, into=options.into,
        as_text=options.as_text, resume=options.resume, **how,
    )  # fmt: skip


def _as_it_is(
    connection: Connection,
    options: argparse.Namespace,
    count: Callable[[str], int],
    **how: Unpack[How],
) -> Encrypted:
    """Encrypt the database of a URL in the language of its own statements."""
    from louver.trusted.executor.postgres import encrypting

    if options.into:
        detail = "--into needs --language duckdb: objects keep their schemas in PostgreSQL's"
        raise errors.make("usage", detail=detail)
    choices = encrypting.Choices(
        options.tables, as_text=options.as_text, leaves=options.leave_out,
        drops_collations=options.drop_collations, resumes=options.resume,
        most_rows=how.get("most_rows"),
    )  # fmt: skip
    if options.in_place:
        from louver.trusted.executor.postgres import in_place

        return in_place.encrypt(
            context_of(connection), choices, count, how.get("progress"), how.get("filled"),
            confirmed=options.yes,
        )  # fmt: skip
    return encrypting.encrypt_url(
        context_of(connection), options.source, choices, count, how.get("progress"),
        how.get("filled"),
    )  # fmt: skip


class How(TypedDict, total=False):
    """How rows are moved: what is called meanwhile, and the most rows of each table."""

    progress: Progress | None
    most_rows: int | None
    filled: Filled | None


def _estimate(options: argparse.Namespace) -> int:
    """Encrypt some rows of each table into a database that goes, and scale what that took."""
    from louver.trusted import backends
    from louver.trusted.vault.catalog import DUCKDB

    target = options.url.partition("://")[0] if "://" in (options.url or "") else ""
    source, separator, _ = options.source.partition("://")
    # Without a target it is as for one of the source's kind.
    scheme = target or (source if separator else "")
    known = backends.named(scheme).languages[0] if scheme in backends.PLAIN else DUCKDB
    if not separator or (options.language or known) == DUCKDB:
        return _estimated(options, "duckdb:///:memory:")
    from louver.trusted.apps.demo_console import services

    with services([sys.executable, "-m", _SERVER]) as (server,):
        return _estimated(options, str(server.announcement["url"]))


def _estimated(options: argparse.Namespace, url: str) -> int:
    with startup.without_collection():
        from louver.trusted.client.connect import connect
        from louver.trusted.planner.sql.dialect import speaking

    estimates: list[tuple[str, int, int, float]] = []
    connection = connect(url, options.keys, profile=options.profile, policy=options.policy)
    traffic = context_of(connection).engine.traffic
    before = traffic.bytes_out

    def filled(table: str, rows: int, seconds: float) -> None:
        nonlocal before
        sent, before = traffic.bytes_out - before, traffic.bytes_out
        factor = max(rows / min(rows, SAMPLE_ROWS), 1) if rows else 1
        estimates.append((table, rows, round(sent * factor), seconds * factor))

    with connection, speaking(session_of(connection).dialect):
        after_each: Filled = filled
        done = _encrypted(connection, options, most_rows=SAMPLE_ROWS, filled=after_each)
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
