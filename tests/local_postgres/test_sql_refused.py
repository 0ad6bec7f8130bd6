"""What would act on the private PostgreSQL alone is refused: nothing runs, and nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from tests.local_postgres.twin import PostgresTwin

ROWS = [(1, "x", 1), (2, "y", 2), (3, None, 3)]


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, n integer)")
    opened.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2), (3, NULL, 3)")
    opened.run("CREATE SEQUENCE numbers")
    opened.run(
        "CREATE FUNCTION adds(n integer) RETURNS integer LANGUAGE sql BEGIN ATOMIC"
        " SELECT n + 1; END"
    )
    yield opened
    opened.close()


@pytest.mark.parametrize("sql", [
    # changes within a query
    "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "WITH a AS (SELECT 1), x AS (UPDATE t SET a = 'h' RETURNING *) SELECT count(*) FROM a, x",
    "WITH x AS (INSERT INTO t VALUES (9) RETURNING *) TABLE x",
    "WITH x AS MATERIALIZED (WITH y AS (SELECT 1) DELETE FROM t RETURNING *) SELECT 1 FROM x",
    "CREATE TABLE copied AS WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x WITH NO DATA",
    "CREATE TEMP TABLE copied AS WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "EXPLAIN ANALYZE WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "PREPARE q AS WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "CREATE FUNCTION removes() RETURNS void LANGUAGE sql BEGIN ATOMIC DELETE FROM t; SELECT 1; END",
    "CREATE FUNCTION hidden() RETURNS integer LANGUAGE sql AS 'DELETE FROM t; SELECT 1'",
    "SELECT 1 FROM (SELECT 1 AS a INTO other) AS s",
    # what another session, or the server, would have to see
    "SELECT pg_advisory_lock(1) FROM t", "SELECT pg_try_advisory_xact_lock(1, 2) FROM t",
    "SELECT pg_notify('channel', a) FROM t", "SELECT lo_create(0)", "SELECT lo_unlink(1)",
    "SELECT pg_read_file('/etc/hostname')", "SELECT query_to_xml('DELETE FROM t', true, true, '')",
    "SELECT table_to_xml('t', true, true, '')", "SELECT pg_terminate_backend(1)",
    "SELECT pg_relation_size('t', 'main')", "SELECT txid_current()", "SELECT pg_current_snapshot()",
    "UPDATE t SET a = pg_notify('channel', 'payload')::text", "SELECT pg_reload_conf()",
    "SELECT set_config('search_path', 'x', n = 1) FROM t",
    # columns of the local table, not of the server's
    "SELECT ctid FROM t", "SELECT * FROM t ORDER BY xmin::text", "SELECT tableoid::regclass FROM t",
    "DELETE FROM t WHERE ctid = '(0,1)'", "UPDATE t SET a = 'k' WHERE xmin::text = '1'",
    "INSERT INTO t VALUES (77) RETURNING ctid", "SELECT (SELECT max(cmin::text) FROM t)",
    # the private database's name
    "SELECT 1, CURRENT_CATALOG", "SELECT a FROM t WHERE a > current_catalog",
    "UPDATE t SET a = CURRENT_CATALOG", "ALTER TABLE t ALTER a SET DEFAULT CURRENT_CATALOG",
    "CREATE TABLE other (a text ENC DEFAULT Current_Catalog)",
    "CREATE TEMP TABLE other (a text DEFAULT CURRENT_CATALOG)",
    "CREATE VIEW other AS SELECT CURRENT_CATALOG AS a",
    # locks of rows
    "SELECT * FROM (SELECT x.* FROM (SELECT * FROM t) AS x FOR SHARE) AS s",
    "DELETE FROM t WHERE CURRENT OF c",
    # statements
    "COPY t TO STDOUT", "COPY t FROM STDIN", "COPY t FROM '/etc/hostname'",
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "REINDEX DATABASE", "REINDEX (FOO) SCHEMA public", "CLUSTER t", "GRANT SELECT ON t TO public",
    "REVOKE ALL ON t FROM public", "DO $$ BEGIN DELETE FROM t; END $$", "CALL adds(1)",
    "PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'", "ROLLBACK PREPARED 'x'",
    "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM t; DELETE FROM t)",
    "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION adds()",
    "ALTER SYSTEM SET work_mem = '1GB'", "ALTER ROLE postgres SET work_mem = '1GB'",
    "DECLARE c CURSOR WITH HOLD FOR SELECT FROM t",
    "EXPLAIN (ANALYZE, COSTS OFF) SELECT 1", "SELECT * FROM pg_cursors", "TABLE pg_stats",
    "SELECT c FROM pg_cursors AS c", "SELECT custom_plans FROM pg_prepared_statements",
    "TABLE pg_cursors",
    "INSERT INTO t (a) SELECT name FROM pg_prepared_statements",
    "SELECT count(*) FROM pg_stat_activity", "SELECT * FROM pg_lock_status()",
    "EXPLAIN (COSTS OFF) SELECT 1", "EXPLAIN VERBOSE SELECT 1",
    # settings
    "SET standard_conforming_strings = off", "SET client_encoding = 'LATIN1'", "SET ROLE other",
    "SET array_nulls = off", "SET session_replication_role = replica",
    "SET SESSION AUTHORIZATION other", "SET SEED TO 0.5", "SET plpgsql.extra_errors = 'all'",
    "SET default_transaction_isolation = 'serializable'", "SET check_function_bodies = on",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET TRANSACTION SNAPSHOT '1'",
])  # fmt: skip
def test_a_statement_is_refused_and_changes_nothing(twin: PostgresTwin, sql: str) -> None:
    context = twin.louver._session.context
    facts, version = context.ledger.length, context.catalog.version
    own = twin.on_louver(sql)
    assert isinstance(own.error, errors.NotSupportedError), own
    assert own.error.code in ("postgres.refused", "sql.unsupported")
    assert own.error.sqlstate == "0A000"
    assert (context.ledger.length, context.catalog.version) == (facts, version)
    assert not context.in_transaction
    assert not context.engine.in_transaction
    assert twin.on_louver("SELECT * FROM t ORDER BY id").rows == ROWS


def test_what_only_reads_is_not_refused(twin: PostgresTwin) -> None:
    for sql in (
        "WITH x AS (SELECT * FROM t) SELECT count(*) FROM x",
        "SELECT random() < 2, clock_timestamp() > '2000-01-01', pg_sleep(0) IS NULL",
        "SELECT pg_advisory_unlock(1), gen_random_uuid() IS NULL, now() IS NULL",
        "SELECT adds(n) FROM t ORDER BY 1",
        "SELECT nextval('numbers'), currval('numbers')",
        "SELECT tableoid::regclass::text FROM pg_class WHERE relname = 'pg_class'",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 't'",
        "SELECT 'ctid, FOR UPDATE', a AS xmax FROM t WHERE id = 1",
    ):
        twin.run(sql)


def test_only_whole_words_of_duckdb_s_are_postgresql_s_errors(twin: PostgresTwin) -> None:
    for sql in ("FROM t", "SUMMARIZE t", "PRAGMA version", "ATTACH 'x'", "DESCRIBE t", "USE x",
                "SELEC 1", "FORCE CHECKPOINT", "BEGIN FOO", "FETCH SIDEWAYS FROM c",
                "DECLARE c CURSOR", "RELEASE", "SAVEPOINT 1", "SET x", "PREPARE q",
                "DISCARD SOMETHING", "COMMIT AND"):  # fmt: skip
        twin.run(sql)
        assert twin.on_louver(sql).state == "42601"


def test_bodies_with_semicolons_are_one_statement() -> None:
    function = (
        "CREATE OR REPLACE FUNCTION f(a integer) RETURNS integer BEGIN ATOMIC"
        " SELECT 1; SELECT CASE WHEN a > 1 THEN 2 END; END"
    )
    rule = "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM t; DELETE FROM t)"
    quoted = "CREATE FUNCTION g() RETURNS integer LANGUAGE sql AS $f$ SELECT (1; SELECT 2 $f$"
    with speaking(DIALECT):
        for text in (function, rule, quoted, "SELECT ';('", "SELECT 1 /* ( ; */"):
            assert [part.home for part in lexer.split(f"{text}; SELECT 3")] == [text, "SELECT 3"]
        assert len(lexer.split("BEGIN; SELECT 1; END; SELECT $1); SELECT 2")) == 5
