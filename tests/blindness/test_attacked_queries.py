"""What an attacker once found in queries, and what it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.executor import seen_state
from louver.wire.messages import Statement
from tests.inside import session_of
from tests.recorded import RecordedSession, needles
from tests.twin import Twin

SETUP = (
    "CREATE TABLE t (a INTEGER{0}, b BIGINT{0}, p INTEGER, s VARCHAR{0})",
    "INSERT INTO t VALUES (1, 10, 1, 'delete'), (5, 20, 2, 'x'), (-7, 30, 2, NULL), (5, 0, 1, 'y')",
    "CREATE MACRO most() AS (SELECT max(p) FROM t)",
    "CREATE MACRO twice(x) AS x * 2",
)
# Statements that share shapes stand one after the other.
QUERIES = (
    "SELECT sum(a+2) AS x, sum(a+2) AS y FROM t",
    "SELECT sum(a+3) AS x, sum(a+2) AS y FROM t",
    "SELECT p*1 AS x, p*1 AS y, sum(a) FROM t GROUP BY p*1, p*1",
    "SELECT p*2 AS x, p*1 AS y, sum(a) FROM t GROUP BY p*2, p*1",
    "SELECT a+1 AS z, count(*) FROM t GROUP BY a+1",
    "SELECT a+2 AS z, count(*) FROM t GROUP BY a+1",
    "SELECT most(), p FROM t WHERE p < 2",
    "SELECT most() FROM t WHERE a = 1",
    "SELECT twice(a) FROM t WHERE a < 100",
    "SELECT a FROM query_table('t') WHERE a > 1",
    "SELECT a FROM query_table(['t', 't'])",
    "SELECT * FROM query('SELECT a, p FROM t WHERE p = 1')",
    "SELECT a FROM 't' WHERE p = 2",
    "SELECT a, count(*) FROM t GROUP BY a HAVING a > 2",
    "SELECT a, count(*) FROM t GROUP BY a HAVING a IS NULL OR a IN (1, 5)",
    "SELECT p, sum(a) FROM t GROUP BY p HAVING sum(a) > p",
    "WITH x AS (SELECT 1 AS y) SELECT 'delete' FROM x",
    'WITH x AS (SELECT 1 AS y) SELECT y AS "insert" FROM x',
    "SELECT a FROM t WHERE p = TRY_CAST('1' AS INTEGER)",
    "SELECT a, 'pivot' AS z FROM t",
    "SELECT a FROM t WHERE a = 1 AND p = TRY_CAST('x' AS INTEGER)",
    "SELECT a + -2147483648 AS z FROM t WHERE a > 0",
    "SELECT a + -2147483649 AS z FROM t WHERE a > 0",
)


@pytest.mark.parametrize("profile", ["sdb", "sealed"])
def test_queries(profile: str, open_connection) -> None:
    twin = Twin.beside(open_connection(profile))
    twin.fill(*(sql.format(" ENC") for sql in SETUP))
    for sql in QUERIES:
        twin.either(sql)
        twin.either(sql)


@pytest.mark.parametrize("profile", ["sdb", "sealed"])
@pytest.mark.parametrize("name", ["t0", "r0", "h", "row_id", "rowid2"])
def test_names_like_ours(profile: str, name: str, open_connection) -> None:
    twin = Twin.beside(open_connection(profile))
    twin.fill(
        f"CREATE TABLE t ({name} INTEGER ENC, g INTEGER)",
        "INSERT INTO t VALUES (1, 1), (2, 1), (NULL, 2)",
        f"UPDATE t SET {name} = {name} + 1 WHERE g = 1",
    )
    for sql in (
        "SELECT * FROM t",
        f"SELECT {name} + 1 FROM t WHERE {name} > 2",
        f"SELECT g, sum({name}) FROM t GROUP BY g HAVING sum({name}) > 0",
    ):
        twin.either(sql)


def test_a_number_beside_a_sum_is_blinded(tmp_path: Path, key_file: Path) -> None:
    secret = 8_317_401_000_777
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sdb")
    run = watched.session.execute
    run("CREATE TABLE t (a BIGINT ENC, p INTEGER)")
    run("INSERT INTO t VALUES (9000000000000, 1), (5, 2)")
    rows = run(f"SELECT p FROM t GROUP BY p HAVING sum(a) > {secret}").rows
    assert rows is not None
    assert rows["p"].to_pylist() == [1]
    run("SELECT p FROM t GROUP BY p HAVING sum(a) > ?", [secret])
    run(f"SELECT x FROM (SELECT p, sum(a) AS x FROM t GROUP BY p) AS q WHERE x > {secret}")
    bare = secret.to_bytes(6, "big")
    assert not watched.holds(*needles(secret), bare, bare[::-1])
    watched.session.close()


def test_a_dropped_row_is_missed_by_a_count(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    watched.session.execute("SET default_counted = on; CREATE TABLE t (a INTEGER ENC)")
    watched.session.execute("INSERT INTO t SELECT i FROM range(10) r(i)")
    gone = "DELETE FROM t WHERE row_id = (SELECT max(row_id) FROM t)"
    watched.engine.run(Statement(gone, kind="write"))
    with pytest.raises(errors.VerificationError, match="9 distinct rows, but 10"):
        watched.session.execute("SELECT count(*) FROM t")
    watched.session.close()


def test_labels_do_not_collide(open_connection) -> None:
    connection = open_connection("sealed")
    connection.execute("CREATE SCHEMA s2")
    connection.execute('CREATE TABLE "s2.t" (x INT ENC MAY REVEAL plaintext, p INT)')
    connection.execute("CREATE TABLE s2.t (x INT ENC MAY REVEAL size, p INT)")
    sent = session_of(connection).execute("SELECT x FROM s2.t WHERE p = 1").remote_sql
    assert "WHERE" not in sent[0]


def test_another_client_writes_between_catalog_and_data(open_connection) -> None:
    first, second = open_connection("sdb"), open_connection("sdb")
    first.execute("CREATE TABLE t (a INTEGER ENC)")
    first.execute("INSERT INTO t VALUES (1), (2)")
    second.execute("BEGIN")
    first.execute("INSERT INTO t VALUES (3)")
    assert second.execute("SELECT a + 1 FROM t ORDER BY 1").fetchall() == [(2,), (3,)]
    assert second.execute("SELECT count(*), sum(a) FROM t").fetchall() == [(2, 3)]
    second.execute("COMMIT")
    assert second.execute("SELECT count(*), sum(a) FROM t").fetchall() == [(3, 6)]


def test_reading_while_another_client_writes(open_connection, monkeypatch: Any) -> None:
    reader, writer = open_connection("sealed"), open_connection("sealed")
    writer.execute("CREATE TABLE t (a INTEGER ENC)")
    writer.execute("INSERT INTO t VALUES (1)")
    reader.execute("SELECT a FROM t").fetchall()
    refresh = seen_state.refresh

    def late(*given: Any, **named: Any) -> None:
        refresh(*given, **named)
        monkeypatch.setattr(seen_state, "refresh", refresh)
        writer.execute("INSERT INTO t VALUES (2)")

    monkeypatch.setattr(seen_state, "refresh", late)
    assert reader.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]
    assert reader.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
    reader.execute("INSERT INTO t VALUES (3)")
    assert writer.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
