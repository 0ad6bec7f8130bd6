"""TEMP sequences in PostgreSQL's language: they go with the session, and it alone draws."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin, difference


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (a int ENC, n int)")
    opened.run("CREATE SEQUENCE stored")
    yield opened
    opened.close()


_STATEMENTS = (
    "CREATE TEMP SEQUENCE ts", "CREATE TEMP SEQUENCE IF NOT EXISTS ts", "DROP SEQUENCE ts",
    "CREATE TEMP SEQUENCE \"T 2\" START 10 INCREMENT BY -5 MINVALUE -7 CYCLE",
    "SELECT nextval('ts')", "SELECT nextval('\"T 2\"'), nextval('pg_temp.ts')", "SELECT lastval()",
    "SELECT currval('ts')", "SELECT nextval('stored')", "ALTER SEQUENCE ts RESTART WITH 100",
    "ALTER SEQUENCE ts INCREMENT BY 3", "ALTER SEQUENCE ts RENAME TO tr",
    "ALTER SEQUENCE tr RENAME TO ts", "DROP SEQUENCE IF EXISTS tr", "DROP SEQUENCE ts CASCADE",
    "CREATE TEMP TABLE tt (a int DEFAULT nextval('ts'), id serial)",
    "INSERT INTO tt SELECT FROM generate_series(1, 3) RETURNING *", "DROP TABLE tt",
    "INSERT INTO tt VALUES (nextval('ts')) RETURNING *", "SELECT * FROM tt ORDER BY id",
    "INSERT INTO t VALUES (nextval('stored'), 1)", "CREATE TABLE other (a int ENC)",
    "DROP TABLE other", "BEGIN", "ROLLBACK", "COMMIT", "SAVEPOINT s", "ROLLBACK TO s",
    "SELECT last_value, is_called FROM ts", "DISCARD SEQUENCES", "DISCARD TEMP",
    "SELECT sequencename, start_value, increment_by, last_value FROM pg_sequences ORDER BY 1",
    "SELECT relname, relkind, relpersistence FROM pg_class WHERE relname ~ '^t[sr]$' ORDER BY 1",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_they_are_drawn_from_by_chance(twin: PostgresTwin, seed: int) -> None:
    chance = random.Random(seed)
    for sql in [*_STATEMENTS[:1], *chance.choices(_STATEMENTS, k=80), "ROLLBACK"]:
        if sql.startswith("ALTER") and twin.within:
            continue  # which is refused
        plain, own = twin.both(sql)
        # Which of two errors comes first is not said.
        if plain.error is None or own.error is None:
            assert not difference(plain, own, ordered="ORDER BY" in sql), (sql, plain, own)


def test_stored_tables_do_not_draw_from_them(twin: PostgresTwin) -> None:
    for sql in ("CREATE TEMP SEQUENCE ts", "CREATE TEMP TABLE tt (id serial)",
                "INSERT INTO tt DEFAULT VALUES", "SELECT nextval('ts')"):  # fmt: skip
        twin.run(sql)
    for sql in (
        "INSERT INTO t VALUES (nextval('ts'))", "INSERT INTO t VALUES (1, nextval('pg_temp.ts'))",
        "INSERT INTO t VALUES (nextval('tt_id_seq'))", "INSERT INTO t VALUES (currval('TS'))",
        "INSERT INTO t VALUES (nextval('t' || 's'))", "INSERT INTO t VALUES (lastval())",
        "UPDATE t SET a = nextval('ts')", "CREATE TABLE u (a int ENC DEFAULT nextval('ts'))",
        "CREATE TABLE u AS SELECT nextval('ts') AS a", "SELECT nextval('ts') FROM pg_class",
        "CREATE TEMP SEQUENCE stored", "DROP SEQUENCE ts, stored", "DROP SEQUENCE stored, ts",
    ):  # fmt: skip
        own = twin.on_louver(sql)
        assert getattr(own.error, "code", "") in (
            "postgres.refused", "leak.flow", "table.temporary", "sql.unsupported"
        ), sql  # fmt: skip
    for sql in ("SELECT * FROM t", "SELECT nextval('ts')", "SELECT nextval('stored')",
                "SELECT * FROM u", "INSERT INTO tt DEFAULT VALUES RETURNING id"):  # fmt: skip
        twin.run(sql)
    twin.reopen()
    assert twin.on_louver("SELECT nextval('ts')").state == "42P01"


def test_what_comes_back_goes_on(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TEMP SEQUENCE ts", "CREATE TEMP TABLE tt (id serial)", "SELECT nextval('ts')",
        "INSERT INTO tt DEFAULT VALUES", "BEGIN", "SELECT nextval('ts')", "DROP SEQUENCE ts",
        "DROP TABLE tt", "ROLLBACK", "SELECT nextval('ts')", "INSERT INTO tt DEFAULT VALUES",
        "BEGIN", "CREATE TEMP TABLE other (a int)", "SELECT nextval('ts')", "SAVEPOINT s",
        "INSERT INTO tt DEFAULT VALUES", "DROP SEQUENCE ts", "DROP TABLE tt", "ROLLBACK TO s",
        "SELECT nextval('ts')", "INSERT INTO tt DEFAULT VALUES RETURNING id", "DISCARD TEMP",
        "ROLLBACK", "SELECT nextval('ts')", "SELECT * FROM tt ORDER BY id",
        "INSERT INTO tt DEFAULT VALUES RETURNING id",
    ):  # fmt: skip
        twin.run(sql)
    twin.run("BEGIN")
    assert twin.on_louver("ALTER SEQUENCE ts RESTART WITH 100").error is not None
