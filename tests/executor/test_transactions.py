"""Transactions against plaintext DuckDB: the time in them, and those that only read."""

from __future__ import annotations

import pytest

from louver import errors
from tests.executor.pairs import Pair, open_pair, pair

__all__ = ["open_pair", "pair"]  # pytest finds fixtures by their names here

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


def test_the_time_stands_still(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (k INT ENC, n TIMESTAMPTZ ENC DEFAULT now(), d TIMESTAMPTZ DEFAULT now())",
        "CREATE MACRO told() AS now()", "CREATE VIEW moment AS SELECT now() AS n",
    )  # fmt: skip
    asked = f"SELECT {', '.join(_TIMES)}"
    for ending in ("COMMIT", "ROLLBACK"):
        pair.both("BEGIN")
        first = pair.rows(asked)
        pair.both("INSERT INTO t (k) VALUES (1), (2)", "INSERT INTO t (k, n) SELECT 3, now()")
        pair.both("CREATE TABLE u (n TIMESTAMPTZ ENC)")
        assert pair.rows(asked) == first
        pair.same("SELECT k, n = now(), d = now(), n = current_timestamp FROM t")
        pair.same("SELECT count(*) FROM t WHERE d = now() AND n >= transaction_timestamp()")
        pair.same("SELECT typeof(now()), typeof(current_time), typeof(localtime), typeof(today())")
        pair.both(ending, "DROP TABLE IF EXISTS u", "DELETE FROM t")
        assert pair.rows(asked) != first
        pair.same("SELECT function_name FROM duckdb_functions() WHERE NOT internal")
    assert pair.rows("SELECT now()") != pair.rows("SELECT now()")


def test_read_only(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (a INT ENC PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1)",
        "CREATE VIEW moment AS SELECT now() AS n", "CREATE SEQUENCE q",
    )  # fmt: skip
    for sql in _WRITES:
        pair.both("BEGIN TRANSACTION READ ONLY")
        pair.same("FROM t")
        assert pair._failure(sql.replace(" ENC", "")) is not None
        with pytest.raises(errors.OperationalError) as found:
            pair.session.execute(sql)
        assert found.value.code == "transaction.read_only", sql
        with pytest.raises(errors.OperationalError):
            pair.session.execute("FROM t")
        pair.plain.execute("ROLLBACK")
        pair.session.execute("ROLLBACK")
    pair.both("BEGIN READ ONLY", "DROP TABLE IF EXISTS nothing", "SELECT 1", "COMMIT")
    pair.both("BEGIN TRANSACTION READ WRITE", "INSERT INTO t VALUES (5, 5)", "COMMIT")
    pair.both("START TRANSACTION READ ONLY", "ROLLBACK WORK", "BEGIN WORK", "END TRANSACTION")
    for sql in ("BEGIN READ", "COMMIT READ ONLY", "BEGIN ONLY", "COMMIT AND nothing"):
        assert pair._failure(sql) is not None
        with pytest.raises(errors.Error):
            pair.session.execute(sql)
    pair.same("FROM t")
