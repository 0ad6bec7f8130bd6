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


def test_many_clients_read_and_write(clients: Any, tmp_path: Path, key_file: Path) -> None:
    wrong: list[Exception] = []

    def work(number: int) -> None:
        with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as client:
            for step in range(6):
                try:
                    if number % 2:
                        client.execute(f"INSERT INTO t VALUES ({step})")
                    else:
                        client.execute("BEGIN; SELECT sum(a) FROM t; COMMIT")
                except louver.OperationalError as error:
                    if error.code != "catalog.conflict":
                        wrong.append(error)
                except louver.Error as error:
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
