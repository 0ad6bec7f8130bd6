"""Queries within statements that lock rows: queues of jobs, beside plaintext PostgreSQL."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import louver
from louver import errors
from louver.wire.messages import Statement
from tests import shared
from tests.inside import context_of
from tests.local_postgres.twin import PostgresTwin

NEXT = "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT {} FOR UPDATE SKIP LOCKED"
STATEMENTS = (
    f"UPDATE jobs SET state = 'run' WHERE id = ({NEXT.format(1)}) RETURNING id, state",
    f"UPDATE jobs SET state = 'run' WHERE id IN ({NEXT.format(3)}) RETURNING id",
    f"DELETE FROM jobs USING ({NEXT.format(2)}) AS q WHERE q.id = jobs.id RETURNING jobs.*",
    f"WITH c AS ({NEXT.format(2)}) UPDATE jobs SET state = 'x' FROM c WHERE c.id = jobs.id"
    " RETURNING jobs.id",
    f"INSERT INTO taken(id) SELECT id FROM ({NEXT.format(2)}) AS q",
    "UPDATE jobs SET state = 'none' WHERE id IN (SELECT id FROM jobs WHERE state = '?' FOR UPDATE)",
    "UPDATE jobs SET state = 'none' WHERE id = (SELECT id FROM jobs WHERE state = '?' FOR UPDATE)",
    "DELETE FROM jobs WHERE id NOT IN (SELECT id FROM jobs WHERE id > 3 FOR SHARE) RETURNING id",
    "DELETE FROM jobs WHERE id NOT IN (SELECT id FROM jobs WHERE id > 99 FOR SHARE)"
    " AND id > 10 RETURNING id",
    "UPDATE jobs SET state = 'two' WHERE id = (SELECT id FROM jobs ORDER BY id FOR UPDATE)",
    "UPDATE jobs SET state = nothing WHERE id IN (SELECT id FROM jobs FOR UPDATE)",
    "UPDATE jobs SET state = 'a' WHERE id IN (SELECT nothing FROM jobs FOR UPDATE)",
    "UPDATE jobs SET state = 'a' WHERE id IN (SELECT at FROM jobs FOR UPDATE)",
    "DELETE FROM jobs WHERE id = (SELECT 1.5 FROM jobs WHERE id = 11 FOR UPDATE)",
    "DELETE FROM jobs WHERE (id, at) IN (SELECT id, at FROM jobs WHERE state = 'x' FOR UPDATE)",
)


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.both("CREATE TABLE jobs(id integer ENC PRIMARY KEY, state text ENC, at timestamptz ENC)")
    twin.both("CREATE TABLE taken(id integer ENC)")
    twin.both(
        "INSERT INTO jobs SELECT i, 'new', timestamptz '2026-01-01' + i * interval '1 hour'"
        " FROM generate_series(1, 30) AS i"
    )
    yield twin
    twin.close()


@pytest.mark.parametrize("within", [False, True])
def test_as_in_plaintext(twin: PostgresTwin, within: bool) -> None:
    for sql in STATEMENTS:
        if within:
            twin.both("BEGIN")
        assert not twin.differs(sql), sql
        if within:
            twin.both("COMMIT")
        for table in ("jobs", "taken"):
            assert not twin.differs(f"SELECT * FROM {table}"), sql


def test_values_are_bound(twin: PostgresTwin) -> None:
    sql = (
        "UPDATE jobs SET state = $1 WHERE id IN (SELECT id FROM jobs WHERE state = $2 AND id > $3"
        " ORDER BY id LIMIT $4 FOR UPDATE) AND state = $2 RETURNING id, state, $1"
    )
    for values in (["run", "new", 4, 3], ["new", "run", 5, 9], ["?", "absent", 0, 1]):
        assert not twin.differs(sql, values), values


def test_a_job_is_taken_once(twin: PostgresTwin) -> None:
    """Clients that take jobs at once share them, and none waits for another."""
    taken, lock = Counter[int](), threading.Lock()

    def work(number: int) -> None:
        sql = STATEMENTS[number % 2]
        keys = str(shared.key_file())
        with louver.connect(twin.url, keys=keys, language="postgres") as connection:
            while True:
                rows = connection.execute(sql).fetchall()
                with lock:
                    taken.update(row[0] for row in rows)
                if not rows:
                    return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == Counter(range(1, 31))
    rows = twin.on_louver("SELECT DISTINCT state FROM jobs").rows
    assert rows == [("run",)]


def test_what_a_plain_column_would_get_is_refused(twin: PostgresTwin) -> None:
    """The rows that stand in the query's place come from ENC columns."""
    twin.louver.execute("CREATE TABLE open(id integer, note text)")
    twin.louver.execute("INSERT INTO open VALUES (1, 'a')")
    for sql in (
        f"INSERT INTO open(id) SELECT id FROM ({NEXT.format(2)}) AS q",
        f"INSERT INTO open(id) VALUES (({NEXT.format(1)}))",
        f"UPDATE open SET id = ({NEXT.format(1)})",
        f"UPDATE open SET note = 'b' WHERE id = ({NEXT.format(1)})",
        f"DELETE FROM open WHERE id IN ({NEXT.format(1)})",
    ):
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code in ("leak.flow", "postgres.refused"), sql
    assert twin.louver.execute("SELECT * FROM open").fetchall() == [(1, "a")]


def test_what_a_query_around_it_could_send_is_refused(twin: PostgresTwin) -> None:
    """A server would be sent the value of an ENC column to compare a plain one with."""
    twin.louver.execute("CREATE TABLE u(id integer, p integer, e integer ENC)")
    inner = "SELECT id FROM jobs WHERE id = 1 FOR UPDATE"
    for sql in (
        f"SELECT id FROM u WHERE p = ({inner})", f"SELECT id FROM u WHERE p IN ({inner})",
        f"WITH c AS ({inner}) SELECT u.id FROM u, c WHERE p = c.id",
        f"UPDATE u SET e = (SELECT count(*) FROM u AS v WHERE v.p = ({inner}))",
        f"UPDATE u SET e = 3 WHERE id = 1 RETURNING (SELECT v.id FROM u v WHERE v.p = ({inner}))",
        f"UPDATE u SET e = 3 WHERE id = 1 RETURNING ({inner})",
        "WITH jobs AS (SELECT 1 AS id) UPDATE taken SET id = 9 WHERE id IN"
        " (SELECT id FROM jobs FOR UPDATE)",
        "UPDATE taken SET id = 9 WHERE EXISTS (SELECT FROM jobs WHERE id = 3 FOR UPDATE)",
    ):  # fmt: skip
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code in ("postgres.refused", "leak.flow"), sql


def test_a_query_that_depends_on_the_statement_is_refused(twin: PostgresTwin) -> None:
    for sql in (
        "UPDATE jobs j SET state = 'c' WHERE id = (SELECT id FROM jobs k WHERE k.id = j.id"
        " FOR UPDATE)",
        "WITH a AS (SELECT 1 AS i), c AS (SELECT id FROM jobs, a WHERE id = i FOR UPDATE OF jobs)"
        " SELECT * FROM c",
    ):
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code == "postgres.refused", sql


@pytest.mark.parametrize(("where", "looks_up"), [
    ("a IN (SELECT a FROM t WHERE p = 2 FOR UPDATE)", True),
    ("t.a = (SELECT u.a FROM t AS u WHERE p = 2 FOR UPDATE) AND x <> 'q'", True),
    ("p IN (SELECT p FROM t WHERE b = 6 FOR UPDATE)", True),
    # Of b the server must not tell which are equal.
    ("a IN (SELECT b FROM t WHERE p = 2 FOR UPDATE)", False),
    ("a = (SELECT b FROM t WHERE p = 1 FOR UPDATE)", False),
    ("a = (SELECT b AS a FROM t WHERE p = 1 FOR UPDATE)", False),
    ("a IN (SELECT a + 1 FROM t WHERE p = 2 FOR UPDATE)", False),
    ("b + a IN (SELECT a FROM t WHERE p = 2 FOR UPDATE)", False),
    ("a = (SELECT a FROM t WHERE p = 2 FOR UPDATE) + 1", False),
    ("a IN (SELECT u.b FROM t JOIN t AS u ON t.p = u.p WHERE u.p = 2 FOR UPDATE OF t)", False),
])  # fmt: skip
def test_rows_are_looked_up_by_what_the_server_has_of_them(
    monkeypatch: pytest.MonkeyPatch, where: str, looks_up: bool
) -> None:
    """A code that is sent again shows that the values are equal."""
    twin = PostgresTwin()
    twin.both(
        "CREATE TABLE t (p integer PRIMARY KEY, a integer ENC MAY REVEAL equality,"
        " b integer ENC MAY REVEAL access, x text ENC)"
    )
    twin.both("INSERT INTO t VALUES (1, 5, 6, 'a'), (2, 6, 6, 'b'), (3, 6, 7, 'c')")
    # A transaction that has locked rows opens no layer.
    twin.both("SELECT p FROM t WHERE a = 5")
    engine, sent = context_of(twin.louver).engine, list[str]()
    run = engine.query

    def noted(statement: Statement) -> pa.Table:
        sent.append(statement.sql)
        return run(statement)

    monkeypatch.setattr(engine, "query", noted)
    assert not twin.differs(f"UPDATE t SET x = x || 'y' WHERE {where} RETURNING p")
    assert (
        any(re.search(r"k_[0-9a-f]{12} IN|q_[0-9a-f]{12} (IN|=) ", sql) for sql in sent) == looks_up
    )
    twin.close()
