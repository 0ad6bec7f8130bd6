"""The database and the user are the server's, not those of the private PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import louver
from louver._rust import postgres
from tests import shared
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.both("CREATE TABLE t(a integer ENC, b text ENC)")
    twin.both("INSERT INTO t VALUES (1, 'x')")
    yield twin
    twin.close()


def test_the_database(twin: PostgresTwin) -> None:
    """It has its name, in queries, in the catalog, and beside rows."""
    name = twin.url.partition("?")[0].rpartition("/")[2]
    for sql in (
        "SELECT current_database()",
        "SELECT table_catalog FROM information_schema.tables WHERE table_name = 't'",
        "SELECT table_catalog FROM information_schema.columns"
        " WHERE table_catalog = current_database() AND column_name = 'a'",
        "SELECT current_database() FROM t",
        "SELECT CURRENT_CATALOG",
        "SELECT current_catalog AS name FROM t",
        "SELECT (SELECT current_catalog) FROM t",
        "SELECT current_database() FROM t WHERE b = 'x' AND current_database() <> b",
    ):
        assert twin.on_louver(sql).rows == [(name,)], sql
    cursor = twin.louver.execute("SELECT current_catalog, 'current_catalog'")
    assert [column[0] for column in cursor.description] == ["current_catalog", "?column?"]
    assert cursor.fetchall() == [(name, "current_catalog")]


def test_the_user_is_that_of_the_url(twin: PostgresTwin) -> None:
    admin = postgres.Session(str(servers.shared().folder), servers.PORT, servers.USER, "postgres")
    name = 'Ann "the" app'
    admin.run([('CREATE ROLE "Ann ""the"" app" SUPERUSER LOGIN', [])])
    url = twin.url.replace(f"user={servers.USER}", "user=Ann%20%22the%22%20app")
    try:
        for _ in range(2):
            with louver.connect(url, keys=str(shared.key_file()), language="postgres") as other:
                rows = other.execute("SELECT current_user, session_user, a FROM t").fetchall()
                assert rows == [(name, name, 1)]
    finally:
        admin.run([('DROP ROLE "Ann ""the"" app"', [])])
        admin.close()


def test_rows_of_tables_are_types(twin: PostgresTwin) -> None:
    for sql in (
        "SELECT (NULL::t).a",
        "SELECT NULL::public.t, (NULL::t[])[1], NULL::t[] IS NULL",
        """SELECT * FROM jsonb_populate_record(NULL::t, '{"a": 1, "b": "y"}')""",
        "SELECT 1::absent",
    ):
        assert not twin.differs(sql), sql


def test_a_parameter_of_no_type_yet(twin: PostgresTwin) -> None:
    for sql in ("PREPARE q(unknown) AS SELECT b FROM t WHERE a = $1", "EXECUTE q('1')"):
        assert not twin.differs(sql), sql
