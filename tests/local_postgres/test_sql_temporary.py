"""Temporary tables in PostgreSQL's language: on the machine alone, with ENC and without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    yield opened
    opened.close()


def test_enc_is_read_and_nothing_is_sent(twin: PostgresTwin) -> None:
    facts = twin.louver._session.context.ledger.length
    twin.run("CREATE TEMP TABLE t (a int ENC MAY REVEAL order DEFAULT 42, b text ENC)")
    twin.run("ALTER TABLE t ADD c numeric(4,1) ENC DEFAULT 1.5, ADD COLUMN d date ENC")
    twin.run("INSERT INTO t (b) VALUES ('x'), ('y') RETURNING *")
    twin.run("CREATE TEMP TABLE u (n ENC) AS SELECT a FROM t")
    twin.run("SELECT * FROM t, u ORDER BY b")
    twin.run("TRUNCATE t")
    assert twin.louver._session.context.ledger.length == facts


def test_what_is_wrong_with_enc_is_said_of_temporary_tables_too(twin: PostgresTwin) -> None:
    for sql, code in (
        ("CREATE TEMP TABLE t (a int NOT NULL ENC)", "sql.enc_misplaced"),
        ("CREATE TEMP TABLE t (a int ENC MAY REVEAL nothing)", "enc.level"),
    ):
        own = twin.on_louver(sql)
        assert own.error is not None
        assert own.error.code == code


def test_serial_identity_and_generated_columns(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TEMP TABLE s (id serial, b text ENC)",
        "CREATE TEMP TABLE i (id int GENERATED ALWAYS AS IDENTITY (START 5), b int ENC,"
        " c int GENERATED ALWAYS AS (b + 1) STORED)",
        "INSERT INTO s (b) VALUES ('x'), ('y') RETURNING *",
        "INSERT INTO i (b) VALUES (1), (2) RETURNING *",
        "CREATE TABLE stored (a int ENC)",
        "INSERT INTO stored SELECT id FROM i",
        "INSERT INTO i (b) SELECT a FROM stored ORDER BY a RETURNING *",
        # Numbers that were drawn are not drawn again, though their rows are gone.
        "BEGIN", "INSERT INTO s (b) VALUES ('z')", "INSERT INTO i (b) VALUES (9)",
        "CREATE TEMP TABLE more (id serial)", "ROLLBACK",
        "INSERT INTO s (b) VALUES ('z') RETURNING id", "SELECT currval('s_id_seq')",
        "INSERT INTO i (b) VALUES (7) RETURNING id",
        "SELECT * FROM s ORDER BY id", "SELECT * FROM i ORDER BY id",
        "TRUNCATE s", "DROP TABLE s", "CREATE TEMP TABLE s (id serial)",
        "INSERT INTO s DEFAULT VALUES RETURNING id",
    ):  # fmt: skip
        twin.run(sql)


def test_on_commit_is_the_commit_of_the_user(twin: PostgresTwin) -> None:
    for clause in ("DELETE ROWS", "DROP", "PRESERVE ROWS"):
        for sql in (
            "BEGIN", f"CREATE TEMP TABLE t (a int ENC) ON COMMIT {clause}",
            "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)", "SELECT * FROM t", "COMMIT",
            "SELECT * FROM t", "INSERT INTO t VALUES (3)", "SELECT * FROM t",
            "BEGIN", "INSERT INTO t VALUES (4)", "SELECT * FROM t", "ROLLBACK", "SELECT * FROM t",
            "DROP TABLE IF EXISTS t",
            f"CREATE TEMP TABLE t (a) ON COMMIT {clause} AS SELECT 1", "SELECT * FROM t",
            "DROP TABLE IF EXISTS t", "CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (5)",
            "SELECT * FROM t", "DROP TABLE t",
        ):  # fmt: skip
            twin.run(sql)


def test_what_would_not_come_along_is_refused(twin: PostgresTwin) -> None:
    twin.run("CREATE TEMP TABLE t (a int)")
    twin.run("CREATE TEMP TABLE u (a int)")
    for sql in ("ALTER TABLE u INHERIT t",
                "ALTER TABLE IF EXISTS u ENABLE ROW LEVEL SECURITY"):  # fmt: skip
        own = twin.on_louver(sql)
        assert own.error is not None
        assert own.error.code == "sql.unsupported"
    twin.run("INSERT INTO u VALUES (1)")


def test_indexes(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TEMP TABLE t (a int)", "CREATE INDEX i ON t (a)", "DROP INDEX i",
        "CREATE UNIQUE INDEX i ON t (a)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)",
        "DROP INDEX i", "INSERT INTO t VALUES (1)", "DROP INDEX i", "DROP INDEX IF EXISTS i",
    ):  # fmt: skip
        twin.run(sql)


def test_on_commit_beside_references_is_refused(twin: PostgresTwin) -> None:
    twin.run("CREATE TEMP TABLE p (a int PRIMARY KEY) ON COMMIT DELETE ROWS")
    own = twin.on_louver("CREATE TEMP TABLE c (a int REFERENCES p)")
    assert own.error is not None
    assert own.error.code == "sql.unsupported"


def test_a_view_of_a_temporary_table_is_temporary(twin: PostgresTwin) -> None:
    for sql in ("CREATE TABLE t (a int ENC)", "CREATE TEMP TABLE tt (a int ENC)",
                "CREATE VIEW v AS SELECT * FROM t", "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
                "CREATE SCHEMA s", "CREATE VIEW s.v AS SELECT * FROM tt"):  # fmt: skip
        twin.run(sql)
    for sql in (
        "INSERT INTO t VALUES (1)", "INSERT INTO tt VALUES (2)",
        "CREATE OR REPLACE VIEW v AS TABLE tt", "SELECT * FROM v", "SELECT * FROM public.v",
        "CREATE VIEW w AS SELECT * FROM tt", "DROP VIEW v", "SELECT * FROM v",
        "SELECT relname FROM pg_class WHERE relname IN ('v', 'w')", "SELECT * FROM w",
        "SELECT * FROM v, tt",
    ):  # fmt: skip
        twin.run(sql)


def test_tables_of_both_sorts_are_not_dropped_at_once(twin: PostgresTwin) -> None:
    for sql in ("CREATE TABLE t (a int ENC)", "CREATE TEMP TABLE tt (a int)",
                "CREATE TEMP TABLE tt2 (a int)"):  # fmt: skip
        twin.run(sql)
    for sql in ("DROP TABLE t, tt", "DROP TABLE tt, t CASCADE", "DROP TABLE IF EXISTS tt, tt2, t"):
        own = twin.on_louver(sql)
        assert getattr(own.error, "code", "") == "sql.unsupported", sql
    for sql in ("SELECT * FROM t, tt, tt2", "DROP TABLE tt, nope", "DROP TABLE tt, tt2",
                "SELECT * FROM tt", "CREATE TEMP TABLE tt (b int)", "DROP TABLE t"):  # fmt: skip
        twin.run(sql)


def test_types_of_rows_beside_temporary_tables(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE t (a int ENC)")
    twin.run("CREATE TABLE u (b int ENC)")
    twin.run("SELECT (NULL::t).a")
    assert getattr(twin.on_louver("SELECT b, (NULL::t).a FROM u").error, "code", "") in (
        "", "sql.unsupported",
    )  # fmt: skip
    twin.run("CREATE TEMP TABLE tt (a int ENC)")
    twin.run("SELECT (NULL::tt).a, NULL::tt IS NULL FROM tt")
    for sql in ("SELECT (NULL::t).a", "SELECT (NULL::public.t).a FROM tt"):
        own = twin.on_louver(sql)
        assert getattr(own.error, "code", "") == "sql.unsupported", sql
    for sql in ("SELECT (NULL::missing).a", "SELECT 'missing'::regtype", "SELECT 't'::regtype"):
        twin.run(sql)


def test_parts_of_a_query_change_temporary_tables(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TEMP TABLE y (a int PRIMARY KEY, b text)", "CREATE TEMP TABLE gone (a int)",
        "CREATE TABLE s (a int ENC, n int)", "INSERT INTO s VALUES (1, 1), (2, 2), (30, 3)",
        "INSERT INTO y SELECT g, 'r' || g FROM generate_series(1, 10) g",
        "WITH t AS (INSERT INTO y VALUES (11), (12) RETURNING *) SELECT * FROM t ORDER BY a",
        "WITH t AS (UPDATE y SET a = a + 100 WHERE a < 4 RETURNING a) SELECT sum(a) FROM t",
        "WITH t AS (DELETE FROM y WHERE a < 7 RETURNING *) INSERT INTO gone SELECT a FROM t",
        "WITH t AS (DELETE FROM gone RETURNING a) INSERT INTO y SELECT -a, 'back' FROM t"
        " RETURNING a", "WITH t AS (INSERT INTO gone VALUES (0)) VALUES (false)",
        "WITH t AS (INSERT INTO gone VALUES (1)) SELECT * FROM t",
        "WITH t AS (INSERT INTO y VALUES (7, 'k') ON CONFLICT (a) DO UPDATE SET b = 'met'"
        " RETURNING *) SELECT * FROM t", "WITH t AS (INSERT INTO y VALUES (7)) SELECT 1",
        "WITH t AS (DELETE FROM gone RETURNING a), u AS MATERIALIZED (INSERT INTO gone SELECT a + 5"
        " FROM t RETURNING a) SELECT s.a, u.a FROM s, u ORDER BY 1, 2",
        "WITH t AS (INSERT INTO gone SELECT a FROM s RETURNING a) SELECT count(*) FROM t, s",
        "BEGIN", "WITH t AS (DELETE FROM y RETURNING a) SELECT count(*) FROM t",
        "DECLARE c CURSOR FOR WITH t AS (DELETE FROM gone RETURNING a) SELECT a FROM t",
        "ROLLBACK", "SELECT * FROM y ORDER BY a", "SELECT a FROM gone ORDER BY a",
    ):  # fmt: skip
        twin.run(sql)
    # What is in the table depends on columns of another, and stored tables are changed elsewhere.
    for sql, code in (
        ("INSERT INTO s (n) SELECT a FROM gone", "leak.flow"),
        ("WITH t AS (DELETE FROM s RETURNING a) SELECT * FROM t, gone", "postgres.refused"),
        ("WITH t AS (DELETE FROM gone RETURNING a) DELETE FROM s", "postgres.refused"),
        ("WITH t AS (DELETE FROM gone RETURNING a), u AS (DELETE FROM s RETURNING a)"
         " SELECT * FROM t", "postgres.refused"),
        ("WITH t AS (DELETE FROM gone RETURNING a) INSERT INTO s SELECT a FROM t",
         "postgres.refused"),
        ("PREPARE q AS WITH t AS (DELETE FROM gone RETURNING a) SELECT a FROM t",
         "postgres.refused"),
    ):  # fmt: skip
        own = twin.on_louver(sql)
        assert own.error is not None
        assert own.error.code == code, sql
    twin.run("SELECT * FROM s, gone ORDER BY s.a, gone.a")


def test_a_table_that_was_altered_behind_a_savepoint_is_read_as_it_was(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TEMP TABLE t (a int)",
        "INSERT INTO t VALUES (1)",
        "BEGIN",
        "SELECT * FROM t",
        "SAVEPOINT s",
        "ALTER TABLE t ADD COLUMN b int DEFAULT 3",
        "SELECT * FROM t",
        "ROLLBACK TO s",
        "SELECT * FROM t",
        "ALTER TABLE t ALTER COLUMN a TYPE text",
        "SELECT * FROM t",
        "ROLLBACK",
        "SELECT * FROM t",
    ):
        twin.run(sql)


def test_a_table_made_of_a_query_keeps_lengths(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE s (v varchar(3) ENC, w varchar(4), c char(2) ENC, x varchar)")
    twin.run("INSERT INTO s VALUES ('abc', 'd', 'e', 'f')")
    twin.run("CREATE VIEW sv AS SELECT v, w FROM s")
    twin.run("CREATE TEMP TABLE t AS SELECT *, v || w AS both FROM s")
    twin.run("CREATE TEMP TABLE u AS SELECT * FROM sv")
    twin.run("INSERT INTO t (v) VALUES ('abcd')")
    twin.run("INSERT INTO u (w) VALUES ('abcde')")
    twin.run("SELECT * FROM t, u")


def test_deferrable_rules_are_checked_at_the_end_of_a_statement(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TEMP TABLE p (a int PRIMARY KEY DEFERRABLE, b int UNIQUE DEFERRABLE INITIALLY"
        " DEFERRED)",
        "CREATE TEMP TABLE q (a int PRIMARY KEY)",
        "CREATE TEMP TABLE c (a int REFERENCES q ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,"
        " d int)",
        "ALTER TABLE c ADD CONSTRAINT cd FOREIGN KEY (d) REFERENCES q NOT DEFERRABLE",
        "INSERT INTO p VALUES (1, 1), (2, 2)",
        "UPDATE p SET a = a + 1, b = b + 1",
        "INSERT INTO p VALUES (3, 7)",
        "INSERT INTO p VALUES (7, 3)",
        "INSERT INTO q VALUES (1), (2)",
        "INSERT INTO c VALUES (1, 2), (2, 2)",
        "INSERT INTO c VALUES (3, NULL)",
        "DELETE FROM q WHERE a = 1",
        "SELECT * FROM c, p",
        "SELECT conname, condeferrable, condeferred FROM pg_constraint"
        " WHERE connamespace = pg_my_temp_schema() AND contype <> 'n'",
    ):
        twin.run(sql)
    twin.run("BEGIN")
    twin.run("INSERT INTO c VALUES (2, 2), (NULL, 2)")
    for sql in ("INSERT INTO c VALUES (9, 2)", "SET CONSTRAINTS ALL DEFERRED"):
        twin.run("SAVEPOINT s")
        own = twin.on_louver(sql)
        assert own.state == "0A000"
        twin.louver.execute("ROLLBACK TO s")
    twin.run("COMMIT")
    twin.run("SELECT * FROM c, p")
