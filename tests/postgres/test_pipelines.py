"""Statements that go in one round trip: how many there are, and whose a failure is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.client.connect import open_session
from louver.trusted.client.dbapi import Connection
from louver.untrusted.engines.engine import Engine
from louver.untrusted.engines.postgres import PostgresEngine
from louver.wire.messages import Statement
from tests.postgres import servers

ROW = pa.table({"k": pa.array([1], pa.int64())})
_WARM = 3


class Counted:
    """A session of which the round trips are counted."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.trips: list[list[str]] = []

    def run(self, steps: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        self.trips.append([sql for sql, _ in steps])
        return self.session.run(steps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)


def counted(engine: Any) -> Counted:
    """From now on, the round trips of an engine."""
    session = engine._session = Counted(engine._session)
    return session


def write(engine: Engine, sql: str) -> int:
    return engine.run(Statement(sql, kind="write"))


def other() -> errors.Error:
    return errors.make("catalog.conflict")


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    engine = servers.new_engine()
    write(engine, "CREATE TABLE t (k BIGINT UNIQUE)")
    yield engine
    engine.close()


def test_what_is_expected_goes_with_the_next_statement(engine: PostgresEngine) -> None:
    assert isinstance(engine, Engine)
    write(engine, "INSERT INTO t VALUES (1), (2)")
    trips = counted(engine).trips
    engine.begin()
    engine.expect(Statement("DELETE FROM t WHERE k = $1", (2,), kind="write"), 1, other)
    engine.append("t", pa.table({"k": [7]}))
    assert trips == []
    assert engine.query(Statement("SELECT k FROM t ORDER BY k")).to_pydict() == {"k": [1, 7]}
    engine.expect(Statement("SELECT max(k) FROM t"), 7, other)
    engine.commit()
    assert [len(trip) for trip in trips] == [5, 2]
    engine.expect(Statement("SELECT count(*) FROM t"), 2, other)
    engine.catch_up()
    assert engine.value(Statement("SELECT count(*) FROM t")) == 2


@pytest.mark.parametrize(
    "statement",
    [
        Statement("DELETE FROM t WHERE k = $1", (5,), kind="write"),
        Statement("SELECT k FROM t WHERE k = $1", (5,)),
        Statement("SELECT max(k) FROM t"),
    ],
)
def test_another_outcome_ends_the_transaction(engine: PostgresEngine, statement: Statement) -> None:
    write(engine, "INSERT INTO t VALUES (1)")
    engine.begin()
    engine.append("t", pa.table({"k": [8]}))
    engine.expect(statement, 2, other)
    with pytest.raises(errors.OperationalError) as caught:
        engine.commit()
    assert caught.value.code == "catalog.conflict"
    assert not engine.in_transaction
    assert engine.query(Statement("SELECT k FROM t")).to_pydict() == {"k": [1]}


def test_a_failure_is_that_of_its_statement(engine: PostgresEngine) -> None:
    """A division by zero of the query's own is not taken for another outcome."""
    write(engine, "INSERT INTO t VALUES (0)")
    engine.begin()
    engine.expect(Statement("UPDATE t SET k = 1", kind="write"), 1, other)
    with pytest.raises(errors.DataError) as caught:
        engine.query(Statement("SELECT 1 / (k - 1) FROM t"))
    assert caught.value.code == "server.value"
    engine.rollback()
    engine.begin()
    engine.append("t", pa.table({"k": [0]}))
    engine.expect(Statement("DELETE FROM t WHERE k = 9", kind="write"), 1, other)
    with pytest.raises(errors.IntegrityError):
        engine.commit()
    assert engine.value(Statement("SELECT max(k) FROM t")) == 0


def test_what_waits_is_undone_with_its_transaction(engine: PostgresEngine) -> None:
    trips = counted(engine).trips
    engine.begin()
    engine.append("t", ROW)
    engine.rollback()
    assert trips == []
    engine.begin()
    engine.append("t", ROW)
    assert next(iter(engine.stream(Statement("SELECT k FROM t")))).to_pydict() == {"k": [1]}
    engine.append("t", pa.table({"k": pa.array(range(10, 5010), pa.int64())}))
    engine.commit()
    assert engine.value(Statement("SELECT count(*) FROM t")) == 5001


def test_a_commit_without_an_answer_is_unsure(engine: PostgresEngine) -> None:
    engine.value(Statement("SELECT max(k) FROM t"))
    other_engine = engine.side()
    backend = engine.value(Statement("SELECT pg_backend_pid()"))
    assert isinstance(backend, int)
    engine.begin()
    engine.append("t", ROW)
    engine.expect(Statement(f"SELECT pg_terminate_backend({backend})::integer"), 1, other)
    with pytest.raises(errors.OperationalError) as caught:
        engine.commit()
    assert caught.value.code == "server.unsure"
    assert other_engine.value(Statement("SELECT count(*) FROM t")) == 0
    assert engine.value(Statement("SELECT count(*) FROM t")) == 0


@pytest.fixture
def connection(key_file: Path, tmp_path: Path) -> Iterator[Connection]:
    url = servers.database_url(f"trips_{abs(hash(str(tmp_path)))}")
    connection = Connection(open_session(url, key_file, "cryptdb", language="duckdb"))
    connection.execute("CREATE TABLE t (id BIGINT ENC PRIMARY KEY, v BIGINT ENC, s VARCHAR ENC)")
    connection.execute("INSERT INTO t SELECT i, i, 'v' || i FROM range(100) AS r(i)")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("sql", "values", "expected"),
    [
        ("SELECT v, s FROM t WHERE id = ?", lambda i: [i], 1),
        ("INSERT INTO t VALUES (?, ?, 'new')", lambda i: [200 + i, i], 1),
        ("UPDATE t SET v = ? WHERE id = ?", lambda i: [-i - 1, i], 2),
        ("DELETE FROM t WHERE id = ?", lambda i: [50 + i], 2),
        (
            "INSERT INTO t VALUES (?, ?, 'x') ON CONFLICT (id) DO UPDATE SET v = excluded.v",
            lambda i: [i, 7], 2,
        ),
    ],
)  # fmt: skip
def test_repeated_statements_need_few_round_trips(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, sql: str, values: Any, expected: int
) -> None:
    monkeypatch.setattr("louver.trusted.vault.writers.RECENT_S", 60.0)
    for number in range(_WARM):
        connection.execute(sql, values(number))
    session = counted(connection._session.context.engine)
    connection.execute(sql, values(_WARM))
    assert len(session.trips) == expected
    connection.execute("BEGIN")
    session.trips.clear()
    connection.execute(sql, values(_WARM + 1))
    assert len(session.trips) == expected
    connection.execute("ROLLBACK")


def test_an_idle_session_looks_at_the_version_first(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another client has forbidden meanwhile is not sent."""
    sql = "SELECT v FROM t WHERE id = ?"
    for number in range(_WARM):
        connection.execute(sql, [number]).fetchall()
    session = counted(connection._session.context.engine)
    monkeypatch.setattr("louver.trusted.vault.writers.RECENT_S", 0.0)
    assert connection.execute(sql, [7]).fetchall() == [(7,)]
    assert len(session.trips) == 2
    assert not any('"t"' in sql for sql in session.trips[0])
