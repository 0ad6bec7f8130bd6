"""Blocks of numbers: most draws save no version of the catalog, and no number comes twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import louver
from louver.trusted.executor.schema import blocks
from tests.executor.test_clients_at_once import at_once
from tests.inside import context_of
from tests.twin import Twin

_TABLE = "CREATE TABLE t (n BIGINT DEFAULT nextval('q') PRIMARY KEY, a INT ENC CHECK (a > 0))"
_DRAWS = (
    "INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (1), (2), (3)",
    "INSERT INTO t (a) SELECT 1 FROM range(9)", "INSERT INTO t (a) VALUES (1) RETURNING n",
    "SELECT nextval('q')", "CREATE OR REPLACE TABLE u (n BIGINT)",
    "CREATE SEQUENCE IF NOT EXISTS q", "SELECT last_value FROM duckdb_sequences()",
    "UPDATE t SET n = nextval('q') WHERE n = 3",
)  # fmt: skip
_FAILING = (
    "INSERT INTO t (a) VALUES (-1)", "SELECT nextval('q'), error('no')", "SELECT currval('q')",
)  # fmt: skip


@pytest.fixture
def clients(tmp_path: Path, key_file: Path) -> Any:
    connections = [
        louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) for _ in range(3)
    ]
    connections[0].execute("CREATE SEQUENCE q")
    connections[0].execute(_TABLE)
    yield connections
    for client in connections:
        client.close()


def drawn(client: Any, count: int = 1) -> list[int]:
    return [int(client.execute("SELECT nextval('q')").fetchall()[0][0]) for _ in range(count)]


@pytest.mark.parametrize("seed", range(3))
def test_one_client_gets_the_numbers_of_duckdb(twin: Twin, seed: int) -> None:
    draw = random.Random(seed)
    step = draw.choice((1, 2, -3))
    twin.both(f"CREATE SEQUENCE q INCREMENT BY {step} {'START -1' if step < 0 else ''}", _TABLE)
    open_ = False
    for number in range(120):
        if number % 40 == 39 and not open_:
            twin.reopen()
            twin.both("SELECT nextval('q')")  # before it nothing was drawn here: no currval
        elif number % 11 == 7:
            twin.both("BEGIN" if not open_ else draw.choice(("COMMIT", "ROLLBACK")))
            open_ = not open_
        else:
            # COMMIT after an error is one for Louver alone.
            twin.both(draw.choice(_DRAWS if open_ else _DRAWS + _FAILING), ordered=True)
    twin.both("ROLLBACK" if open_ else "SELECT 1")
    twin.run("FROM t")


def test_most_draws_save_nothing(twin: Twin) -> None:
    twin.both("CREATE SEQUENCE q", _TABLE)
    before = twin.session.context.catalog.version
    for _ in range(200):
        twin.both("INSERT INTO t (a) VALUES (1)")
    assert twin.session.context.catalog.version - before < 30
    twin.both("BEGIN", *["INSERT INTO t (a) VALUES (1)"] * 20, "COMMIT")
    assert twin.session.context.catalog.version - before < 33
    twin.reopen()
    assert twin.run("SELECT nextval('q')") == [(221,)]


def test_numbers_of_clients_in_turn_are_unique_and_in_order(clients: Any) -> None:
    draw, numbers = random.Random(1), [[0] for _ in clients]
    for number in range(150):
        who = draw.randrange(3)
        numbers[who] += drawn(clients[who])
        if number % 10 == 9:
            clients[who].execute("INSERT INTO t (a) VALUES (1), (2)")
        if number % 50 == 49:
            clients[draw.randrange(3)].execute(f"CREATE TABLE u{number} (b INT)")
    assert all(held == sorted(held) for held in numbers)
    (inserted,) = clients[0].execute("SELECT list(n) FROM t").fetchall()[0]
    every = [n for held in numbers for n in held[1:]] + inserted
    assert len(set(every)) == len(every) == 180


def test_numbers_of_clients_at_once_are_unique(clients: Any) -> None:
    def work(who: int) -> None:
        for _ in range(25):
            clients[who].execute("INSERT INTO t (a) VALUES (1)")

    assert at_once(3, work) == []
    assert clients[0].execute("SELECT count(DISTINCT n) FROM t").fetchall() == [(75,)]


def test_a_client_that_is_killed_leaves_a_gap(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drawn(clients[0], 10) == list(range(1, 11))
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "release", lambda context: None)
        clients[0].close()
    (following,) = drawn(clients[1])
    assert 11 < following <= 11 + blocks.MOST
    clients[1].close()
    assert drawn(clients[2]) == [following + 1]


def test_a_sequence_that_another_client_makes_anew_is_another_one(clients: Any) -> None:
    assert drawn(clients[0], 10) == list(range(1, 11))
    for sql in ("DROP TABLE t", "DROP SEQUENCE q", "CREATE SEQUENCE q"):
        clients[1].execute(sql)
    assert drawn(clients[1], 20) == list(range(1, 21))
    first = drawn(clients[0])[0]
    assert first > 20
    clients[1].execute("CREATE OR REPLACE SEQUENCE q")
    assert drawn(clients[0], 2) == [1, 2]


def test_a_transaction_that_draws_beyond_its_block_and_is_undone(twin: Twin) -> None:
    twin.both("CREATE SEQUENCE q", _TABLE, "INSERT INTO t (a) VALUES (1), (2)")
    twin.both("BEGIN", "INSERT INTO t (a) SELECT 1 FROM range(300)", "CREATE TABLE u (a INT)")
    twin.both("SELECT nextval('q')", "ROLLBACK", "SELECT nextval('q')")
    twin.both("BEGIN", "INSERT INTO t (a) SELECT 1 FROM range(300)", "DROP SEQUENCE IF EXISTS r")
    twin.both("COMMIT", "SELECT nextval('q')", "INSERT INTO t (a) VALUES (1)", "FROM t")
    twin.reopen()
    twin.both("SELECT nextval('q')")


def test_numbers_that_a_load_draws_are_kept(twin: Twin) -> None:
    twin.both("CREATE SEQUENCE q", "CREATE SEQUENCE r MAXVALUE 5 CYCLE", _TABLE)
    twin.both("CREATE TABLE u (n INT DEFAULT nextval('r'), a INT ENC)")
    rows = pa.table({"a": [1, 2, 3]})
    for begins in (False, True):
        for name in ("t", "u"):
            twin.both("BEGIN" if begins else "SELECT 1")
            twin.louver.load(name, rows)
            twin.plain.execute(f"INSERT INTO {name} BY NAME SELECT * FROM rows")
            twin.both("COMMIT" if begins else "SELECT 1", f"FROM {name}")
            twin.reopen()
        twin.both("SELECT nextval('q')", "SELECT nextval('r')")


def test_numbers_of_a_transaction_that_changes_the_schema_are_kept(clients: Any) -> None:
    assert drawn(clients[0], 12) == list(range(1, 13))
    clients[0].execute("BEGIN; CREATE TABLE u (a INT); SELECT nextval('q'); COMMIT")
    clients[1].execute("CREATE TABLE v (a INT)")
    assert drawn(clients[0], 3) == [14, 15, 16]
    assert set(drawn(clients[1], 3)).isdisjoint(range(17))


def test_a_read_only_transaction_draws_nothing(twin: Twin) -> None:
    twin.both("CREATE SEQUENCE q", *["SELECT nextval('q')"] * 4)
    twin.both("BEGIN READ ONLY")
    twin.fails("SELECT nextval('q')")
    twin.both("ROLLBACK")


def test_a_sequence_ends_and_goes_round_as_in_duckdb(twin: Twin) -> None:
    twin.both("CREATE SEQUENCE q MAXVALUE 7", "CREATE SEQUENCE r MAXVALUE 3 CYCLE")
    for _ in range(9):
        twin.both("SELECT nextval('q')", "SELECT nextval('r')")
    assert context_of(twin.louver).state.cache(blocks.Claims).keys() == {("main", "q")}
