"""Transactions against plaintext DuckDB: the time in them, and those that only read."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
from louver import errors
from tests.twin import Twin

_TIMES = (
    "now()", "current_timestamp", "get_current_timestamp()", "transaction_timestamp()",
    "current_localtimestamp()", "localtimestamp", "current_localtime()", "localtime",
    "current_time", "get_current_time()", "current_date", "today()", "age(TIMESTAMP '2000-01-01')",
    "ago(INTERVAL 1 DAY)", "told()", "(SELECT max(n) FROM moment)",
)  # fmt: skip
_WRITES = (
    "INSERT INTO t VALUES (2, 2)", "INSERT INTO t SELECT a, b FROM t WHERE false",
    "INSERT INTO t VALUES (1, 2) ON CONFLICT DO NOTHING", "UPDATE t SET b = 3 WHERE false",
    "DELETE FROM t WHERE a = 77", "DELETE FROM t", "TRUNCATE t", "CREATE TABLE u (a INT ENC)",
    "CREATE TABLE u AS FROM t", "CREATE VIEW v AS FROM t", "DROP TABLE t", "DROP VIEW moment",
    "ALTER TABLE t ADD COLUMN c INT ENC", "COMMENT ON TABLE t IS 'x'", "CREATE SCHEMA s",
    "SELECT nextval('q')", "CREATE INDEX i ON t (b)", "CREATE SEQUENCE other",
    "MERGE INTO t USING (SELECT 1 AS n) ON a = n WHEN MATCHED THEN DELETE",
)  # fmt: skip


def test_the_time_stands_still(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (k INT ENC, n TIMESTAMPTZ ENC DEFAULT now(), d TIMESTAMPTZ DEFAULT now())",
        "CREATE MACRO told() AS now()", "CREATE VIEW moment AS SELECT now() AS n",
    )  # fmt: skip
    query = f"SELECT {', '.join(_TIMES)}"
    for ending in ("COMMIT", "ROLLBACK"):
        twin.both("BEGIN")
        first = twin.rows(query)
        twin.both("INSERT INTO t (k) VALUES (1), (2)", "INSERT INTO t (k, n) SELECT 3, now()")
        twin.both("CREATE TABLE u (n TIMESTAMPTZ ENC)")
        assert twin.rows(query) == first
        twin.run("SELECT k, n = now(), d = now(), n = current_timestamp FROM t")
        twin.run("SELECT count(*) FROM t WHERE d = now() AND n >= transaction_timestamp()")
        twin.run("SELECT typeof(now()), typeof(current_time), typeof(localtime), typeof(today())")
        twin.both(ending, "DROP TABLE IF EXISTS u", "DELETE FROM t")
        assert twin.rows(query) != first
        twin.run("SELECT function_name FROM duckdb_functions() WHERE NOT internal")
    assert twin.rows("SELECT now()") != twin.rows("SELECT now()")


def test_read_only(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (a INT ENC PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1)",
        "CREATE VIEW moment AS SELECT now() AS n", "CREATE SEQUENCE q",
    )  # fmt: skip
    for sql in _WRITES:
        twin.both("BEGIN TRANSACTION READ ONLY")
        twin.run("FROM t")
        assert twin.duckdb_fails(sql.replace(" ENC", ""))
        with pytest.raises(errors.OperationalError) as caught:
            twin.session.execute(sql)
        assert caught.value.code == "transaction.read_only", sql
        with pytest.raises(errors.OperationalError):
            twin.session.execute("FROM t")
        twin.plain.execute("ROLLBACK")
        twin.session.execute("ROLLBACK")
    twin.both("BEGIN READ ONLY", "DROP TABLE IF EXISTS nothing", "SELECT 1", "COMMIT")
    twin.both("BEGIN TRANSACTION READ WRITE", "INSERT INTO t VALUES (5, 5)", "COMMIT")
    twin.both("START TRANSACTION READ ONLY", "ROLLBACK WORK", "BEGIN WORK", "END TRANSACTION")
    for sql in ("BEGIN READ", "COMMIT READ ONLY", "BEGIN ONLY", "COMMIT AND nothing"):
        assert twin.duckdb_fails(sql)
        with pytest.raises(errors.Error):
            twin.session.execute(sql)
    twin.run("FROM t")


_DRAWING = ("SELECT nextval('s')", "SELECT nextval('s') FROM t WHERE false", "SELECT nextval('v')",
            "SELECT n() + a FROM t", "FROM drawn", "EXECUTE p")  # fmt: skip


def test_one_that_only_reads_draws_no_numbers(twin: Twin) -> None:
    """Not even the refused statement does: the next number is the one that it would have been."""
    twin.both("CREATE TABLE t (a INT ENC, nextval INT)", "INSERT INTO t VALUES (1, 1)",
              "CREATE SEQUENCE s", "CREATE TEMP SEQUENCE v", "CREATE MACRO n() AS nextval('s')",
              "CREATE VIEW drawn AS SELECT nextval('s') AS n FROM t",
              "PREPARE p AS SELECT nextval('s')")  # fmt: skip
    for sql in _DRAWING:
        twin.run("SELECT nextval('s'), nextval('v')")
        twin.both("BEGIN READ ONLY")
        assert twin.fails(sql).code == "transaction.read_only", sql
        twin.both("ROLLBACK")
        twin.run("SELECT currval('s'), currval('v')")
    twin.both("BEGIN READ ONLY")
    twin.run("SELECT nextval, t.nextval + 1, currval('s') FROM t WHERE nextval IN (1, 2)")
    twin.both("COMMIT")


_FAILING = ("BEGIN", "SELECT b::INT FROM t", "INSERT INTO t VALUES (1, 'again')",
            "INSERT INTO t VALUES (2, 'fits'), (3, NULL)", "UPDATE t SET a = b::INT",
            "SELECT error('on purpose')")  # fmt: skip


def test_commit_of_a_failed_transaction_is_a_rollback(twin: Twin) -> None:
    twin.both("CREATE TABLE t (a INT ENC PRIMARY KEY, b VARCHAR ENC NOT NULL)",
              "INSERT INTO t VALUES (1, 'x')")  # fmt: skip
    for sql in _FAILING:
        for ending in ("COMMIT", "END TRANSACTION", "ROLLBACK", "COMMIT"):
            twin.both("BEGIN", "INSERT INTO t VALUES (9, 'undone')")
            twin.fails(sql)
            assert twin.fails("FROM t").code == "transaction.aborted"
            twin.both(ending)
            assert twin.run("FROM t") == [(1, "x")]
            assert twin.fails("COMMIT").code == "transaction.none"
    twin.both("BEGIN", "INSERT INTO t VALUES (9, 'kept')", "SELECT nothing FROM t", "COMMIT")
    assert twin.run("SELECT count(*) FROM t") == [(2,)]


def test_a_key_that_another_transaction_wrote_is_told_at_commit(
    tmp_path: Path, key_file: Path
) -> None:
    """The server names what it stores in place of the key, which says nothing to a user."""
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with louver.connect(url, keys=key_file) as first, louver.connect(url, keys=key_file) as other:
        first.execute("CREATE TABLE t (a VARCHAR ENC PRIMARY KEY)")
        other.execute("BEGIN")
        other.execute("INSERT INTO t VALUES ('x'), ('y')")
        first.execute("INSERT INTO t VALUES ('x')")
        with pytest.raises(louver.IntegrityError, match="COMMIT failed") as raised:
            other.execute("COMMIT")
        assert "-" not in str(raised.value).partition("fix:")[0]
        assert first.execute("FROM t").fetchall() == other.execute("FROM t").fetchall() == [("x",)]
