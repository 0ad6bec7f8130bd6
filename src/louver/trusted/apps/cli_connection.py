"""A connection from the options of the command line."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.apps import startup

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.untrusted.engines.stored import Stored


@contextmanager
def opened(options: argparse.Namespace, *, providers: bool = False) -> Iterator[Connection]:
    """Connect, and close at the end; ``providers`` allows providers:// URLs too."""
    # Commands print the notices of their statements.
    warnings.simplefilter("ignore", errors.LeakageWarning)
    # Imported here: `louver --help` needs no database.
    with startup.without_collection():
        from louver.trusted.client.connect import connect, is_providers

    if is_providers(database(options)) and not providers:
        detail = "this command needs a database; providers:// URLs work with sql, explain, "
        raise errors.make("usage", detail=detail + "leakage and status")
    connection = connect(
        database(options),
        options.keys,
        profile=options.profile,
        policy=options.policy,
        read_only=bool(getattr(options, "read_only", False)),
        language=getattr(options, "language", None),
    )
    from louver.trusted.client.inside import session_of
    from louver.trusted.planner.sql.dialect import speaking

    try:
        # A command reads its arguments, files and lines as the database's own language.
        with speaking(session_of(connection).dialect):
            yield connection
    finally:
        connection.close()


def stored_at(url: str) -> AbstractContextManager[Stored]:
    """What the storage of a URL contains, read without a key and without a session."""
    from louver.trusted import backends
    from louver.trusted.client.connect import scheme_of

    stored: AbstractContextManager[Stored] = backends.engine(scheme_of(url)).stored_at(url)
    return stored


def database(options: argparse.Namespace) -> str:
    """The URL from the options."""
    if not options.url:
        raise errors.make(
            "usage", detail="no database was given: use --url duckdb:///file or set LOUVER_URL"
        )
    return str(options.url)
