"""PostgreSQL as the untrusted machine: a server as it is, without any extension of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from louver.untrusted.engines.postgres.address import target_of
from louver.untrusted.engines.postgres.connection import PostgresEngine
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.engines.postgres.opening import opened
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver._rust import postgres
    from louver.untrusted.engines.engine import Engine
    from louver.untrusted.engines.stored import StoredRows

__all__ = [
    "PostgresEngine", "open_url", "place_of_url", "require_database", "session_at", "stored_at",
    "stored_of", "translated",
]  # fmt: skip


def open_url(url: str, *, read_only: bool = False) -> PostgresEngine:
    """The engine of a URL."""
    return PostgresEngine(target_of(url), read_only=read_only)


def session_at(url: str) -> postgres.Session:
    """A session of the server at a URL by itself, for what is plaintext on both sides."""
    return opened(target_of(url))


def place_of_url(url: str) -> str:
    """The stable name of the database at a URL."""
    return target_of(url).address


def require_database(url: str) -> None:
    """An error where no server answers, or it has no such database."""
    engine = open_url(url)
    try:
        engine.table_names()
    finally:
        engine.close()


@contextmanager
def stored_at(url: str) -> Iterator[StoredRows]:
    """What the database of a URL stores, read without anything of Louver's."""
    engine = open_url(url, read_only=True)
    try:
        yield stored_of(engine)
    finally:
        engine.close()


def stored_of(engine: Engine) -> StoredRows:
    """What the database of a connection stores, read through a side connection."""
    from louver.untrusted.engines import stored
    from louver.untrusted.engines.postgres import storage

    side = engine.side()
    return stored.StoredRows(lambda sql: side.query(Statement(sql)), storage.tables)
