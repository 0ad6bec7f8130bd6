"""SELECT … FOR UPDATE and the like: what plaintext PostgreSQL says, and what others have to wait
for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver import errors
from tests import shared
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


_JOBS = (
    "INSERT INTO jobs SELECT i, CASE WHEN i % 3 = 0 THEN 'done' ELSE 'new' END,"
    " date '2020-01-01' + i, '{\"n\": 7}' FROM generate_series(1, 12) AS i"
)


@pytest.fixture(scope="module")
def opened() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run(
        "CREATE TABLE jobs (id integer PRIMARY KEY, state text ENC, day date ENC, data jsonb ENC)"
    )
    twin.run("CREATE TABLE own (id integer ENC PRIMARY KEY, job integer ENC, a text ENC)")
    twin.run("INSERT INTO own SELECT i, 1 + i % 4, 'a' || i FROM generate_series(1, 8) AS i")
    twin.run("CREATE VIEW v AS SELECT * FROM own")
    twin.louver.execute("CREATE TEMP TABLE kept AS SELECT 1 AS a")
    twin.run("CREATE TABLE hidden (id integer ENC MAY REVEAL size)")
    yield twin
    twin.close()


@pytest.fixture
def twin(opened: PostgresTwin) -> PostgresTwin:
    for execute in (opened.louver.execute, opened.plain.execute):
        execute("ROLLBACK")
        execute("DELETE FROM jobs")
        execute(_JOBS)
    return opened


def another(twin: PostgresTwin) -> Any:
    """Another session of Louver's with the same database."""
    return louver.connect(twin.url, str(shared.key_file()), "cryptdb", language="postgres")


@pytest.mark.parametrize("sql", [
    "SELECT * FROM jobs WHERE state = 'new' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED",
    "SELECT id, data->>'n' FROM jobs AS j WHERE state = 'new' AND id > 3 FOR UPDATE OF j NOWAIT",
    "SELECT 'done', data->>'m', 7, '{}'::jsonb->>'k' FROM jobs WHERE state = 'new' FOR UPDATE",
    "SELECT id FROM jobs WHERE id = 5 FOR NO KEY UPDATE",
    "SELECT 1 AS one, 'FOR UPDATE' AS t FROM jobs WHERE id = 5 FOR SHARE",
    "SELECT id IS NOT DISTINCT FROM 5, 1 IS DISTINCT FROM id FROM jobs WHERE id = 5 FOR SHARE",
    "SELECT id FROM jobs ORDER BY 1 OFFSET 2 LIMIT 3 FOR KEY SHARE",
    "SELECT id FROM jobs ORDER BY id FOR UPDATE LIMIT 3", "SELECT 1 FOR UPDATE",
    "SELECT id FROM jobs ORDER BY id FETCH FIRST 2 ROWS ONLY FOR UPDATE",
    "SELECT id FROM jobs ORDER BY id FETCH NEXT ROW ONLY FOR UPDATE",
    "SELECT id FROM jobs ORDER BY id LIMIT ALL FOR UPDATE",
    "SELECT id FROM jobs ORDER BY id LIMIT 0 FOR UPDATE",
    "SELECT * FROM own ORDER BY id OFFSET 1 ROW FOR UPDATE OF own",
    "SELECT * FROM own WHERE a LIKE 'a%' AND job = 2 FOR UPDATE",
    "SELECT o.id, p.a FROM own AS o JOIN own AS p ON o.job = p.id ORDER BY 1 LIMIT 2 FOR UPDATE",
    "SELECT o.id, p.a FROM own AS o, own AS p WHERE o.job = p.id FOR SHARE OF o, p",
    "SELECT o.id, p.a FROM own o LEFT JOIN own p ON p.id = o.job + 7 FOR UPDATE OF o SKIP LOCKED",
    "SELECT id FROM own WHERE job IN (SELECT id FROM own WHERE a > 'a3') ORDER BY id FOR UPDATE",
    "SELECT id FROM public.own ORDER BY id FOR UPDATE",
    'SELECT id AS "FOR UPDATE" FROM own ORDER BY id FOR UPDATE',
    "SELECT substring(a FROM 1 FOR 1) FROM own FOR UPDATE",
    "SELECT own, id FROM own ORDER BY id FOR UPDATE",
    "SELECT o AS whole FROM own AS o WHERE job = 2 FOR SHARE",
    # PostgreSQL's own errors
    "SELECT count(*) FROM jobs FOR UPDATE", "SELECT DISTINCT id FROM jobs FOR UPDATE",
    "SELECT id FROM jobs GROUP BY id FOR UPDATE", "SELECT id FROM jobs FOR UPDATE OF own",
    "SELECT * FROM jobs j LEFT JOIN own o ON o.id = j.id FOR UPDATE",
    "SELECT id FROM jobs FOR UPDATE ORDER BY id", "SELECT id FROM missing FOR UPDATE",
    "SELECT id FROM jobs FOR UPDATE SKIP", "SELECT id FROM jobs LIMIT -1 FOR UPDATE",
    "SELECT id FROM jobs UNION SELECT 1 FOR UPDATE", "SELECT id / 0 FROM own FOR UPDATE",
])  # fmt: skip
def test_answers_are_those_of_plaintext(twin: PostgresTwin, sql: str) -> None:
    twin.run(sql)
    twin.run("BEGIN")
    twin.run(sql)


def test_values_of_placeholders(twin: PostgresTwin) -> None:
    sql = (
        "SELECT id FROM own WHERE ($2 IS NULL OR a = $2) AND id > $1 ORDER BY id LIMIT $3"
        " FOR UPDATE"
    )
    for given in ([2, None, 3], [2, "a5", 3], [0, "a1", None], [9, None, 1]):
        twin.run(sql, given)
    twin.run("PREPARE q AS SELECT id FROM own WHERE job = $1 ORDER BY id LIMIT 1 FOR UPDATE")
    twin.run("EXECUTE q(2)")


@pytest.mark.parametrize("sql", [
    "SELECT * FROM jobs, (SELECT 1) AS s FOR UPDATE OF jobs", "SELECT v FROM v FOR UPDATE",
    "WITH q AS (SELECT 1) SELECT * FROM own FOR UPDATE",
    "SELECT * FROM own WHERE id IN (SELECT id FROM own FOR UPDATE) FOR UPDATE",
    "SELECT id FROM own FOR UPDATE FOR SHARE", "SELECT own.ctid FROM own FOR UPDATE",
    "SELECT * FROM own JOIN pg_class ON true FOR UPDATE OF own", "SELECT * FROM kept FOR UPDATE",
    "SELECT id FROM own LIMIT (SELECT 1) FOR UPDATE",
    "CREATE TABLE copy AS SELECT * FROM own FOR UPDATE", "EXPLAIN SELECT * FROM own FOR UPDATE",
    "INSERT INTO own SELECT * FROM own FOR UPDATE", "EXPLAIN ANALYZE SELECT id FROM own FOR SHARE",
    "SELECT (SELECT max(data->>'n') FROM jobs) FROM own FOR UPDATE",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM own FOR UPDATE",
])  # fmt: skip
def test_other_forms_are_refused(twin: PostgresTwin, sql: str) -> None:
    outcome = twin.on_louver(sql)
    assert outcome.state == "0A000", outcome


def test_rows_that_may_not_show_are_not_locked(twin: PostgresTwin) -> None:
    assert twin.on_louver("SELECT * FROM hidden FOR UPDATE").error is not None
    outcome = twin.on_louver("SELECT id FROM jobs ORDER BY day LIMIT 1 FOR UPDATE")
    assert isinstance(outcome.error, errors.LeakageRefused)


def test_the_ledger_knows_before(twin: PostgresTwin) -> None:
    twin.run("SELECT id FROM own WHERE job = 2 ORDER BY id LIMIT 1 FOR UPDATE")
    rows = twin.on_louver("SHOW LEAKAGE FOR own").rows
    assert rows is not None
    assert any("were locked" in row[3] for row in rows)


def test_locked_rows_are_skipped_and_others_taken(twin: PostgresTwin) -> None:
    sql = "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED"
    other = another(twin)
    try:
        twin.louver.execute("BEGIN")
        assert twin.louver.execute(sql).fetchall() == [(1,), (2,)]
        other.execute("BEGIN")
        assert other.execute(sql).fetchall() == [(4,), (5,)]
        with pytest.raises(errors.Error) as caught:
            other.execute("SELECT id FROM jobs WHERE id = 1 FOR SHARE NOWAIT")
        assert caught.value.sqlstate == "55P03"
        other.execute("ROLLBACK")
        # Those that the transaction has locked itself are not in its way.
        assert twin.louver.execute(sql).fetchall() == [(1,), (2,)]
        twin.louver.execute("COMMIT")
        assert other.execute(sql).fetchall() == [(1,), (2,)]
    finally:
        other.close()


def test_who_waits_sees_what_was_changed_meanwhile(twin: PostgresTwin) -> None:
    other, seen = another(twin), list[Any]()

    def wait() -> None:
        other.execute("BEGIN")
        seen.extend(other.execute("SELECT id, state FROM jobs WHERE id = 1 FOR UPDATE").fetchall())
        other.execute("UPDATE jobs SET state = state || '!' WHERE id = 1")
        other.execute("COMMIT")

    twin.louver.execute("BEGIN")
    twin.louver.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE")
    waiting = threading.Thread(target=wait)
    waiting.start()
    twin.louver.execute("UPDATE jobs SET state = 'other' WHERE id = 1")
    waiting.join(0.3)
    assert waiting.is_alive()
    twin.louver.execute("COMMIT")
    waiting.join(20)
    other.close()
    assert seen == [(1, "other")]
    state = twin.louver.execute("SELECT state FROM jobs WHERE id = 1").fetchall()
    assert state == [("other!",)]


def test_a_later_statement_does_not_see_another_state(twin: PostgresTwin) -> None:
    other = another(twin)
    try:
        twin.louver.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        twin.louver.execute("SELECT count(*) FROM own").fetchall()
        other.execute("UPDATE jobs SET state = 'other' WHERE id = 1")
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE")
        assert caught.value.sqlstate == "40001"
        twin.louver.execute("ROLLBACK")
    finally:
        other.close()


def test_what_was_set_outlives_a_new_beginning(twin: PostgresTwin) -> None:
    other = another(twin)
    try:
        twin.louver.execute("BEGIN")
        twin.louver.execute("SET LOCAL TimeZone = 'Asia/Tokyo'")
        other.execute("UPDATE jobs SET state = 'other' WHERE id = 1")
        rows = twin.louver.execute("SELECT state FROM jobs WHERE id = 1 FOR UPDATE").fetchall()
        assert rows == [("other",)]
        assert twin.louver.execute("SHOW TimeZone").fetchall() == [("Asia/Tokyo",)]
        twin.louver.execute("COMMIT")
        assert twin.louver.execute("SHOW TimeZone").fetchall() == [("UTC",)]
    finally:
        other.close()


def test_every_job_is_taken_once(twin: PostgresTwin) -> None:
    taken, failed = list[int](), list[errors.Error]()

    def take(own: louver.Connection) -> bool:
        own.execute("BEGIN")
        rows = own.execute(
            "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
        ).fetchall()
        if not rows:
            own.execute("ROLLBACK")
            return False
        own.execute("UPDATE jobs SET state = 'done' WHERE id = $1", [rows[0][0]])
        own.execute("COMMIT")
        taken.append(rows[0][0])
        return True

    def work() -> None:
        own, races = another(twin), 0
        try:
            more = True
            while more:
                try:
                    more = take(own)
                except errors.Error as error:
                    # Another worker has made a version of the catalog meanwhile.
                    races += 1
                    if error.code != "catalog.conflict" or races > 5:
                        raise
                    own.rollback()
        except errors.Error as error:
            failed.append(error)
        finally:
            own.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not failed
    assert sorted(taken) == [1, 2, 4, 5, 7, 8, 10, 11]


@pytest.mark.parametrize("within", [False, True])
def test_limits_hold_on_the_server(twin: PostgresTwin, within: bool) -> None:
    other, own = another(twin), twin.louver
    try:
        other.execute("BEGIN")
        other.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE")
        for name, value, state in (
            ("lock_timeout", "150ms", "55P03"), ("statement_timeout", "600ms", "57014"),
        ):  # fmt: skip
            own.execute("SET lock_timeout = '20s'")
            own.execute(f"SET {name} = '{value}'")
            for sql in (
                "UPDATE jobs SET state = 'x' WHERE id = 1", "SELECT id FROM jobs FOR SHARE",
            ):  # fmt: skip
                own.execute("BEGIN" if within else "SELECT 1")
                outcome = twin.on_louver(sql)
                assert outcome.state == state, (sql, outcome)
                own.execute("ROLLBACK")
            own.execute("RESET ALL")
        own.execute("SELECT id FROM jobs WHERE id = 2 FOR UPDATE")
        own.execute("BEGIN")
        own.execute("SET LOCAL lock_timeout = '150ms'")
        assert twin.on_louver("SELECT id FROM jobs WHERE id = 1 FOR UPDATE").state == "55P03"
        own.execute("ROLLBACK")
        assert own.execute("SHOW lock_timeout").fetchall() == [("0",)]
    finally:
        own.execute("ROLLBACK")
        own.execute("RESET ALL")
        other.close()


def test_a_view_of_a_whole_table_is_locked_as_the_table() -> None:
    opened = PostgresTwin()
    try:
        for sql in (
            "CREATE TABLE t (a int PRIMARY KEY, b text ENC)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "CREATE VIEW v AS SELECT * FROM t", "CREATE VIEW w AS SELECT * FROM v",
            "CREATE SCHEMA s", "CREATE VIEW s.hidden AS SELECT * FROM t",
            "CREATE VIEW x AS SELECT b AS a, a AS b FROM t", "CREATE VIEW z AS TABLE t LIMIT 1",
            "SELECT * FROM v ORDER BY a FOR UPDATE", "SELECT * FROM w ORDER BY a FOR UPDATE OF w",
            "SELECT w.a, q.b FROM w JOIN v AS q ON q.a = w.a WHERE w.a > 1 FOR SHARE",
            "SELECT v.* FROM v WHERE b = 'y' FOR NO KEY UPDATE", "SELECT * FROM hidden FOR UPDATE",
            "SELECT count(*) FROM v FOR UPDATE", "BEGIN", "SELECT b FROM w WHERE a = 2 FOR UPDATE",
            "UPDATE t SET b = 'k' WHERE a = 2", "COMMIT", "SELECT * FROM v ORDER BY a FOR UPDATE",
        ):  # fmt: skip
            opened.run(sql)
        for sql in ("SELECT v FROM v FOR UPDATE", "SELECT * FROM x FOR UPDATE",
                    "SELECT * FROM z FOR UPDATE"):  # fmt: skip
            own = opened.on_louver(sql)
            assert getattr(own.error, "code", "") == "postgres.refused", sql
    finally:
        opened.close()


def test_rows_of_a_view_are_held_against_others() -> None:
    first = PostgresTwin(patience_ms=300)
    other = PostgresTwin(beside=first, patience_ms=300)
    try:
        for sql in ("CREATE TABLE t (a int PRIMARY KEY, b text ENC)", "CREATE VIEW v AS TABLE t",
                    "INSERT INTO t VALUES (1, 'x'), (2, 'y')", "BEGIN",
                    "SELECT * FROM v WHERE a = 1 FOR UPDATE"):  # fmt: skip
            first.run(sql)
        assert other.on_louver("SELECT * FROM t WHERE a = 1 FOR UPDATE NOWAIT").state == "55P03"
        assert other.on_louver("SELECT * FROM v WHERE a = 2 FOR UPDATE NOWAIT").rows == [(2, "y")]
        first.run("COMMIT")
        assert other.on_louver("SELECT * FROM v WHERE a = 1 FOR UPDATE NOWAIT").rows == [(1, "x")]
    finally:
        other.close()
        first.close()
