"""ALTER … SET SCHEMA: tables, views and sequences move with all that is theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_READ = "SELECT id, a, b, c FROM {} ORDER BY id"


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    for sql in (
        "CREATE SCHEMA s", "CREATE SCHEMA s2",
        "CREATE TABLE t (id serial PRIMARY KEY, a integer ENC MAY REVEAL order,"
        " b text ENC UNIQUE, c int CHECK (c > 0))",
        "CREATE INDEX ti ON t (a)", "CREATE TABLE k (id int ENC, t_id int REFERENCES t)",
        "CREATE VIEW v AS SELECT * FROM t", "COMMENT ON TABLE t IS 'it'",
        "INSERT INTO t (a, b, c) VALUES (1, 'x', 1), (2, 'y', 2)", "INSERT INTO k VALUES (1, 1)",
    ):  # fmt: skip
        opened.run(sql)
    yield opened
    opened.close()


def _all(twin: PostgresTwin, *texts: str) -> None:
    for sql in texts:
        twin.run(sql)


def test_a_table_moves_with_what_is_its_own(twin: PostgresTwin) -> None:
    _all(twin, "ALTER TABLE t SET SCHEMA s")
    for _ in range(2):
        _all(
            twin, "SELECT * FROM t", _READ.format("s.t"), _READ.format("v"),
            "INSERT INTO s.t (a, b, c) VALUES (3, 'z', 3) RETURNING *",
            "INSERT INTO s.t (a, b, c) VALUES (3, 'z', 3)",
            "INSERT INTO s.t (a, b, c) VALUES (3, 'q', -3)",
            "INSERT INTO k VALUES (1, 777)", "DELETE FROM s.t WHERE id = 1",
            "UPDATE s.t SET a = 9 WHERE b = 'y'", "SELECT nextval('t_id_seq')",
            "SELECT schemaname, tablename, indexname FROM pg_indexes"
            " WHERE schemaname IN ('s', 'public') ORDER BY 1, 2, 3",
            "SELECT schemaname, sequencename FROM pg_sequences",
            "SELECT obj_description('s.t'::regclass)",
        )  # fmt: skip
        # Another session has it from the catalog.
        twin.reopen()
    _all(
        twin, "ALTER TABLE s.t SET SCHEMA public", _READ.format("t"), "DROP SCHEMA s", "DROP VIEW v"
    )


def test_views_and_sequences_move(twin: PostgresTwin) -> None:
    _all(
        twin, "ALTER TABLE v SET SCHEMA s", _READ.format("s.v"), "ALTER VIEW s.v SET SCHEMA s2",
        "SELECT a FROM s2.v WHERE b = 'y'", "CREATE SEQUENCE q", "SELECT nextval('q')",
        "ALTER SEQUENCE q SET SCHEMA s2", "SELECT nextval('s2.q')", "SELECT nextval('q')",
        "ALTER SEQUENCE t_id_seq SET SCHEMA s2", "DROP SCHEMA s2 CASCADE", _READ.format("t"),
    )  # fmt: skip


def test_errors_are_those_of_plaintext(twin: PostgresTwin) -> None:
    _all(
        twin, "ALTER TABLE t SET SCHEMA s", "CREATE TABLE t (x int ENC)",
        "ALTER TABLE t SET SCHEMA s", "ALTER TABLE s.t SET SCHEMA s", "DROP TABLE s.t",
        "ALTER TABLE IF EXISTS missing SET SCHEMA s", "ALTER TABLE missing SET SCHEMA s",
        "ALTER TABLE t SET SCHEMA missing", "ALTER TABLE t SET SCHEMA pg_temp",
        "ALTER VIEW t SET SCHEMA s", "SELECT * FROM t",
    )  # fmt: skip


def test_other_tables_had_the_name_before(twin: PostgresTwin) -> None:
    """Indexes of the server's are named for the table that they were made with."""
    _all(
        twin, "CREATE TABLE s.t (id int PRIMARY KEY, b text ENC UNIQUE)",
        "INSERT INTO s.t VALUES (1, 'x')", "ALTER TABLE s.t RENAME TO u",
        "ALTER INDEX s.t_pkey RENAME TO u_pkey", "ALTER INDEX s.t_b_key RENAME TO u_b_key",
        "ALTER TABLE t SET SCHEMA s", _READ.format("s.t"), "SELECT * FROM s.u",
        "INSERT INTO s.u VALUES (2, 'x')", "INSERT INTO s.u VALUES (1, 'y')",
        "CREATE INDEX ON s.t (a)", "DROP INDEX s.ti", "ALTER TABLE s.u SET SCHEMA public",
        "ALTER TABLE u SET SCHEMA s2", "DROP TABLE s.t CASCADE", "SELECT * FROM s2.u",
    )  # fmt: skip


def test_a_move_is_undone(twin: PostgresTwin) -> None:
    moved = ("ALTER TABLE t SET SCHEMA s", "INSERT INTO s.t VALUES (50, 5, 'w', 3)",
             "ALTER TABLE s.t RENAME TO tt", "ALTER TABLE s.tt SET SCHEMA s2",
             _READ.format("s2.tt"))  # fmt: skip
    _all(twin, "BEGIN", *moved, "ROLLBACK", _READ.format("t"), "BEGIN", "SAVEPOINT x", *moved)
    _all(twin, "ROLLBACK TO x", _READ.format("t"), "COMMIT", _READ.format("v"))
    _all(twin, "BEGIN", *moved, "COMMIT", _READ.format("s2.tt"))


def test_what_was_shown_is_still_told(twin: PostgresTwin) -> None:
    _all(twin, "SELECT id FROM t WHERE a > 1")
    before = twin.on_louver("SHOW LEAKAGE FOR t").rows
    _all(twin, "ALTER TABLE t SET SCHEMA s")
    after = twin.on_louver("SHOW LEAKAGE FOR s.t").rows
    assert before
    assert after is not None
    assert len(after) >= len(before)


@pytest.mark.parametrize("sql", [
    "ALTER TABLE t SET SCHEMA pg_catalog", "ALTER TYPE e SET SCHEMA s",
    "ALTER FUNCTION f() SET SCHEMA s", "ALTER TABLE t SET SCHEMA information_schema",
    "ALTER VIEW pg_stats SET SCHEMA s", "ALTER TABLE information_schema.sql_sizing SET SCHEMA s",
])  # fmt: skip
def test_other_moves_are_refused(twin: PostgresTwin, sql: str) -> None:
    _all(twin, "CREATE TYPE e AS ENUM ('a')", "CREATE FUNCTION f() RETURNS int RETURN 1")
    outcome = twin.on_louver(sql)
    assert isinstance(outcome.error, errors.NotSupportedError), outcome
    _all(twin, _READ.format("t"))
