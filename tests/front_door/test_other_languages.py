"""JDBC, pgx and node-postgres see through a door what they see of PostgreSQL: their programs do the
same work on ENC columns and on plaintext, and print the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import pytest

from louver.untrusted.servers import private_postgres
from tests.front_door.door import Door, at_server
from tests.front_door.drivers import Target, transcript
from tests.postgres import servers

#: Parts of each program, all of which must have been done.
PARTS = {
    "java": ("types", "types by text", "types, simple", "again and again", "transactions", "errors",
             "batches", "batches, rewritten", "cursors", "updatable", "generated keys", "copy",
             "metadata", "notifications", "cancel"),
    "go": ("types", "types, described", "types, exec", "types, simple", "transactions", "errors",
           "batches", "pipelines", "cursors", "copy", "notifications", "cancel", "pool"),
    "node": ("types", "types, binary", "named statements", "transactions", "errors", "queued",
             "cursors", "copy", "notifications", "cancel", "pool"),
}  # fmt: skip
_SETTINGS = private_postgres.SETTINGS | {"listen_addresses": "127.0.0.1"}


@pytest.fixture(scope="module")
def plain() -> Iterator[int]:
    """The port of a PostgreSQL server that listens on TCP, which drivers need."""
    binaries, port = servers.binaries()["wheel"], servers.free_port()
    with private_postgres.started(binaries, _SETTINGS, port=port):
        yield port


@pytest.mark.parametrize("language", PARTS)
def test_a_driver_sees_what_it_sees_of_postgresql(language: str, plain: int, door: Door) -> None:
    with door.connect() as con:
        con.execute("DROP TABLE IF EXISTS work, child, counted")
    sealed = transcript(language, Target(door.port, door.database, servers.USER, "ENC"))
    with at_server(door) as con:
        (row,) = con.execute("SELECT count(*) FROM pg_attribute WHERE attname = 'yes'")
        assert row == (0,), "the columns are not ENC"
    _make_anew(plain, language)
    wanted = transcript(language, Target(plain, language, servers.USER, ""))
    difference = [line[:200] for line in difflib.unified_diff(wanted, sealed, "plain", "door", n=1)]
    assert not difference, "\n".join(difference[:60])
    assert [line[3:] for line in wanted if line.startswith("-- ")] == list(PARTS[language])


def _make_anew(port: int, database: str) -> None:
    import psycopg

    words = {"host": "127.0.0.1", "port": port, "user": servers.USER, "dbname": "postgres"}
    with psycopg.connect(**words, autocommit=True) as con:  # type: ignore[arg-type]
        con.execute(f"CREATE DATABASE {database} TEMPLATE template0")
