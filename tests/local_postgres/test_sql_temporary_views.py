"""Temporary views of stored and temporary tables in PostgreSQL's language: nothing is stored."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    for sql in (
        "CREATE TABLE t (a int ENC, b text ENC, c int)",
        "INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20), (3, 'z', 30)",
        "CREATE TEMP VIEW v AS SELECT a, b FROM t WHERE a > 1",
        "CREATE TEMP VIEW w (d, n) AS SELECT a + 1, count(*) FROM v GROUP BY a",
    ):
        opened.run(sql)
    yield opened
    opened.close()


def _refused(twin: PostgresTwin, sql: str, code: str) -> None:
    own = twin.on_louver(sql)
    assert getattr(own.error, "code", "") == code, sql


def test_they_are_read_replaced_and_dropped(twin: PostgresTwin) -> None:
    for sql in (
        "SELECT * FROM v ORDER BY a", "SELECT * FROM pg_temp.v ORDER BY a",
        "SELECT * FROM public.v",
        "SELECT * FROM w JOIN t ON d = a + 1 ORDER BY d",
        "SELECT relname, relkind FROM pg_class WHERE relname IN ('v', 'w') ORDER BY 1",
        "SELECT pg_get_viewdef('w'::regclass)",
        "SELECT schemaname ~ '^pg_temp' FROM pg_views WHERE viewname = 'v'",
        "CREATE TEMP VIEW v AS SELECT 1 AS a", "CREATE OR REPLACE TEMP VIEW v AS SELECT 1 AS z",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT a, b, c FROM t WHERE c < 30",
        "SELECT * FROM v ORDER BY a", "SELECT * FROM w ORDER BY d",
        "ALTER TABLE t RENAME COLUMN b TO bb", "SELECT * FROM v ORDER BY a",
        "ALTER TABLE t DROP COLUMN bb", "ALTER TABLE t RENAME TO renamed",
        "SELECT * FROM w ORDER BY d", "ALTER VIEW w RENAME TO w2", "SELECT * FROM w2 ORDER BY d",
        "CREATE TEMP TABLE tt AS SELECT * FROM w2", "SELECT * FROM tt JOIN w2 USING (d) ORDER BY d",
        "CREATE TEMP RECURSIVE VIEW r (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 4",
        "SELECT * FROM r", "DROP VIEW v", "DROP TABLE renamed", "DROP TABLE renamed CASCADE",
        "SELECT * FROM v", "SELECT * FROM w2",
    ):  # fmt: skip
        twin.run(sql)


def test_they_go_with_transactions_and_sessions(twin: PostgresTwin) -> None:
    for sql in (
        "BEGIN", "CREATE TEMP VIEW x AS SELECT b FROM v", "SELECT * FROM x ORDER BY b",
        "DROP VIEW w", "SELECT * FROM x ORDER BY b", "ROLLBACK",
        "SELECT * FROM x", "SELECT * FROM w ORDER BY d",
        "BEGIN", "SAVEPOINT s", "CREATE OR REPLACE TEMP VIEW v AS SELECT a, b FROM t",
        "SELECT * FROM v ORDER BY a", "ROLLBACK TO s", "SELECT * FROM v ORDER BY a", "COMMIT",
        "BEGIN", "DISCARD TEMP", "SELECT * FROM v", "ROLLBACK", "SELECT * FROM v ORDER BY a",
        "BEGIN READ ONLY", "CREATE TEMP VIEW x AS SELECT 1 AS one", "ROLLBACK",
        "DISCARD TEMP", "SELECT * FROM v", "CREATE TEMP VIEW v AS SELECT 1 AS one",
        "SELECT * FROM v", "DISCARD ALL", "SELECT * FROM v",
    ):  # fmt: skip
        twin.run(sql)
    assert not [o for o in twin.louver._session.context.catalog.objects if o.temporary]


def test_nothing_of_them_is_stored(twin: PostgresTwin) -> None:
    other = PostgresTwin(beside=twin)
    try:
        # Plaintext's other session has temporary views of its own.
        other.run("SELECT * FROM v")
        other.run("CREATE TABLE u (k int ENC)")
        other.run("INSERT INTO t VALUES (4, 'k', 40)")
        twin.run("SELECT * FROM v ORDER BY a")
        twin.run("SELECT * FROM w, u")
    finally:
        other.close()
    twin.reopen()
    assert twin.on_louver("SELECT * FROM v").state == "42P01"


def test_the_flow_rule_looks_through_them(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE plain (n int)")
    for sql in ("INSERT INTO plain SELECT a FROM v",
                "INSERT INTO plain SELECT c FROM t WHERE b IN (SELECT b FROM v)",
                "INSERT INTO plain SELECT n FROM w"):  # fmt: skip
        _refused(twin, sql, "leak.flow")
    twin.run("CREATE TABLE made AS SELECT * FROM v")
    assert twin.louver._session.context.catalog.table("public", "made").columns[1].encrypted
    twin.run("SELECT * FROM made ORDER BY a")


def test_what_is_refused_changes_nothing(twin: PostgresTwin) -> None:
    twin.run("CREATE TEMP TABLE tt (d int)")
    for sql, code in (
        ("CREATE VIEW pg_temp.x AS SELECT 1 AS a", "sql.unsupported"),
        ("INSERT INTO v VALUES (5, 'q')", "sql.unsupported"),
        ("DELETE FROM v", "sql.unsupported"),
        ("COMMENT ON VIEW v IS 'x'", "sql.unsupported"),
        ("CREATE TABLE v (a int)", "table.temporary"),
        ("CREATE TEMP VIEW t AS SELECT 1 AS a", "table.temporary"),
    ):
        _refused(twin, sql, code)
        for query in ("SELECT * FROM v ORDER BY a", "SELECT * FROM x", "SELECT * FROM t ORDER BY a",
                      "SELECT count(*) FROM pg_class WHERE relname = 'x'"):  # fmt: skip
            twin.run(query)


_OF_TABLES = (
    "CREATE TEMP TABLE tt (a int, b text)", "DROP TABLE tt", "DROP TABLE tt CASCADE",
    "INSERT INTO tt VALUES (1, 'p'), (3, 'q')", "INSERT INTO tv (a) VALUES (7) RETURNING *",
    "CREATE TEMP VIEW tv AS SELECT * FROM tt", "CREATE VIEW tv AS SELECT a, b FROM tt WHERE a > 1",
    "CREATE OR REPLACE VIEW tw AS SELECT tv.a, t.b FROM tv JOIN t USING (a)",
    "CREATE VIEW tw (n) AS SELECT count(*) FROM tv", "CREATE VIEW public.tx AS SELECT * FROM tt",
    "UPDATE tv SET a = a + 1 WHERE a = 3", "DELETE FROM tv WHERE a = 1", "DELETE FROM tw",
    "ALTER TABLE tt RENAME COLUMN b TO bb", "ALTER TABLE tt RENAME COLUMN bb TO b",
    "ALTER TABLE tt DROP COLUMN b", "ALTER TABLE tt ALTER a TYPE bigint", "TRUNCATE tt",
    "ALTER TABLE tt ADD CONSTRAINT low CHECK (a < 6)", "ALTER TABLE tt DROP CONSTRAINT low",
    "DROP VIEW tv", "DROP VIEW tw, tv", "DROP VIEW tv CASCADE", "DISCARD TEMP", "BEGIN", "ROLLBACK",
    "BEGIN", "COMMIT", "SAVEPOINT s", "ROLLBACK TO s",
    "CREATE TEMP TABLE tt ON COMMIT DROP AS SELECT 5 AS a, 'k'::text AS b",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_views_of_temporary_tables_by_chance(twin: PostgresTwin, seed: int) -> None:
    chance = random.Random(seed)
    statements = [*_OF_TABLES[:1], *chance.choices(_OF_TABLES, k=90), "ROLLBACK"]
    for sql in statements:
        twin.run(sql)
        for query in chance.sample((
            "SELECT * FROM tv ORDER BY 1", "SELECT * FROM tw ORDER BY 1",
            "SELECT * FROM tt ORDER BY 1, 2", "SELECT pg_get_viewdef('tw'::regclass)",
            "SELECT relname, relkind, relpersistence FROM pg_class WHERE relname IN ('tt', 'tv',"
            " 'tw', 'tx') ORDER BY 1",
        ), 1):  # fmt: skip
            twin.run(query)


def test_the_flow_rule_looks_through_views_of_temporary_tables(twin: PostgresTwin) -> None:
    for sql in ("CREATE TEMP TABLE tt AS SELECT a, c FROM t", "CREATE VIEW tv AS SELECT * FROM tt",
                "CREATE TABLE plain (n int)", "SELECT * FROM tv ORDER BY a"):  # fmt: skip
        twin.run(sql)
    _refused(twin, "INSERT INTO plain SELECT a FROM tv", "leak.flow")
    # What a view writes to is known as well.
    for sql in ("CREATE TEMP TABLE empty (a int)", "CREATE TEMP VIEW ev AS SELECT * FROM empty",
                "INSERT INTO ev SELECT a FROM t", "SELECT * FROM empty ORDER BY a"):  # fmt: skip
        twin.run(sql)
    _refused(twin, "INSERT INTO plain SELECT a FROM empty", "leak.flow")
    _refused(twin, "INSERT INTO plain SELECT count(*) FROM ev WHERE a > 1", "leak.flow")


def test_changes_of_stored_tables_read_views_of_temporary_ones() -> None:
    opened = PostgresTwin()
    for sql in (
        "CREATE TABLE t (a int, b text, c int)",
        "INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20), (3, 'z', 30)",
        "CREATE TEMP TABLE tt (k int, val text)", "INSERT INTO tt VALUES (1, 'n1'), (2, 'n2')",
        "CREATE TEMP VIEW tv AS SELECT k, val FROM tt WHERE k > 1",
        "CREATE VIEW tw AS SELECT t.a, tv.val FROM t JOIN tv ON k = a", "CREATE TABLE u (k int)",
        "UPDATE t SET b = 'q' WHERE c IN (SELECT k * 10 FROM tv)", "SELECT * FROM t ORDER BY a",
        "UPDATE t SET b = val FROM tv WHERE k = a", "INSERT INTO u VALUES (1)",
        "SELECT * FROM t ORDER BY a", "DELETE FROM t USING tv WHERE c = k * 10",
        "SELECT * FROM t ORDER BY a", "INSERT INTO tt SELECT a, b FROM t", "SELECT * FROM tw, u",
        "CREATE FUNCTION ff(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'",
        "CREATE TEMP VIEW tf AS SELECT ff(k) AS f FROM tt", "SELECT * FROM tf ORDER BY f",
        "DROP FUNCTION ff(int)", "DROP FUNCTION ff(int) CASCADE", "SELECT * FROM tf",
        "SELECT * FROM tv ORDER BY k, val", "CREATE INDEX ON tt (k)", "SELECT count(*) FROM tv",
    ):  # fmt: skip
        opened.run(sql)
    opened.close()
