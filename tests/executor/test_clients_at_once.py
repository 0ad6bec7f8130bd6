"""Clients of one machine that work at once: what one of them has seen is no alarm for another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import louver
from louver.wire import control
from louver.wire.messages import Statement
from tests.inside import context_of


@pytest.fixture
def clients(tmp_path: Path, key_file: Path) -> Any:
    connections = [
        louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) for _ in range(2)
    ]
    connections[0].execute("CREATE TABLE t (a INT ENC)")
    yield connections
    for client in connections:
        client.close()


def between(engine: Any, name: str, sql: str, other: Callable[[], object], *, first: bool) -> None:
    """Let another client in before or after the next statement of this text."""
    run = getattr(engine, name)

    def raced(statement: Statement) -> Any:
        if statement.sql != sql:
            return run(statement)
        setattr(engine, name, run)
        if first:
            other()
        rows = run(statement)
        if not first:
            other()
        return rows

    setattr(engine, name, raced)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("begins", [False, True])
def test_a_change_while_the_catalog_is_read(clients: Any, first: bool, begins: bool) -> None:
    writer, other = clients
    other.execute("INSERT INTO t VALUES (1)")
    engine = context_of(writer).engine
    for name, sql in (("query", control.CATALOG_READ.sql), ("value", control.CATALOG_VERSION.sql)):
        other.execute("CREATE TABLE u (b INT ENC)")
        between(engine, name, sql, lambda: other.execute("DROP TABLE u"), first=first)
        if begins:
            writer.execute("BEGIN")
        assert writer.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
        if begins:
            writer.execute("COMMIT")
        assert writer.execute("SHOW TABLES").fetchall() == [("t",)]


def test_an_older_catalog_is_still_found(clients: Any) -> None:
    writer, other = clients
    engine = context_of(writer).engine
    (old,) = engine.query(control.CATALOG_READ).to_pylist()
    other.execute("CREATE TABLE u (b INT ENC)")
    writer.execute("FROM t")
    sql = "UPDATE louver_catalog SET version = $1, body = $2"
    engine.run(Statement(sql, (old["version"], old["body"]), kind="write"))
    for statement in ("FROM t", "BEGIN"):
        with pytest.raises(louver.VerificationError) as caught:
            writer.execute(statement)
        assert caught.value.code == "catalog.rollback"


def at_once(count: int, work: Callable[[int], None]) -> list[Exception]:
    """Do work in as many threads; what went wrong."""
    wrong: list[Exception] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except louver.Error as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_many_clients_read_and_write(clients: Any, tmp_path: Path, key_file: Path) -> None:
    def work(number: int) -> None:
        with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as client:
            for step in range(6):
                if number % 2:
                    client.execute(f"INSERT INTO t VALUES ({step})")
                else:
                    client.execute("BEGIN; SELECT sum(a) FROM t; COMMIT")

    assert at_once(6, work) == []
    expected = [(3 * sum(range(6)), 18)]
    assert clients[0].execute("SELECT sum(a), count(*) FROM t").fetchall() == expected


def test_sixteen_clients_change_rows_of_their_own(
    clients: Any, tmp_path: Path, key_file: Path
) -> None:
    """Whoever is outrun runs its change again: no client sees `catalog.conflict`."""
    clients[0].execute("CREATE TABLE w (k INT, a INT ENC)")

    def work(number: int) -> None:
        with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as client:
            client.execute("INSERT INTO w VALUES (?, 1), (?, 2)", (number, 100 + number))
            client.execute("UPDATE w SET a = a + 10 WHERE k = ?", (number,))
            client.execute("DELETE FROM w WHERE k = ?", (100 + number,))

    assert at_once(16, work) == []
    rows = clients[1].execute("SELECT k, a FROM w ORDER BY k").fetchall()
    assert rows == [(number, 11) for number in range(16)]


def outrun_once(writer: Any, other: Any) -> None:
    """Let another client commit just before the writer's next catalog is written."""
    engine = context_of(writer).engine
    sql = control.CATALOG_UPDATE
    between(engine, "run", sql, lambda: other.execute("INSERT INTO t VALUES (7)"), first=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("INSERT INTO t VALUES (1)", [(1,), (1,), (7,)]),
        ("UPDATE t SET a = a + 2", [(3,), (9,)]),
        ("DELETE FROM t WHERE a = 1", [(7,)]),
        ("CREATE TABLE v (b INT ENC)", [(1,), (7,)]),
    ],
)
def test_a_change_that_was_outrun_runs_again(
    clients: Any, change: str, expected: list[tuple[int]]
) -> None:
    writer, other = clients
    writer.execute("INSERT INTO t VALUES (1)")
    outrun_once(writer, other)
    writer.execute(change)
    rows = other.execute("FROM t ORDER BY a").fetchall()
    assert rows == expected
    assert other.execute("SHOW TABLES").fetchall() == [("t",), ("v",)][: 1 + change.count("v (")]


def test_what_may_not_run_again_says_that_it_was_outrun(clients: Any, tmp_path: Path) -> None:
    writer, other = clients
    (tmp_path / "rows.csv").write_text("1\n")
    for change in (
        f"INSERT INTO t FROM '{tmp_path}/rows.csv'",
        "INSERT INTO t SELECT 1",
        "BEGIN; INSERT INTO t VALUES (1); COMMIT",
    ):
        outrun_once(writer, other)
        with pytest.raises(louver.OperationalError) as caught:
            writer.execute(change)
        assert caught.value.code == "catalog.conflict"
        if context_of(writer).in_transaction:
            writer.execute("ROLLBACK")
    assert other.execute("SELECT DISTINCT a FROM t").fetchall() == [(7,)]


def test_rows_of_others_do_not_rebuild_the_local_engine(clients: Any) -> None:
    writer, other = clients
    writer.execute("FROM t")
    binder = context_of(writer).local.binder
    other.execute("INSERT INTO t VALUES (1)")
    assert writer.execute("FROM t").fetchall() == [(1,)]
    assert context_of(writer).local.binder is binder
    other.execute("ALTER TABLE t ADD COLUMN b INT")
    assert writer.execute("FROM t").fetchall() == [(1, None)]
    assert context_of(writer).local.binder is not binder
