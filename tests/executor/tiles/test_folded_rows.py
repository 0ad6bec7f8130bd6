"""CHECKPOINT folds rows into tiles: the answers stay those of plaintext, whoever else is there, and
what a server does to folded rows is found.
"""

from __future__ import annotations

import itertools
from contextlib import closing
from typing import Any

import pytest

from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor import folding, row_writer
from louver.trusted.vault import tile_forms
from louver.wire.messages import Statement
from tests.executor.tiles.stored import ATTACKS, TYPES, alone, tiles
from tests.generated import cases, generator
from tests.recorded import RecordedSession
from tests.twin import Twin


@pytest.mark.parametrize("type_", TYPES)
def test_values_of_every_type(twin: Twin, type_: str) -> None:
    twin.fill(f"CREATE TABLE t (id INTEGER ENC, v {type_} ENC, p INTEGER)")
    for first in range(0, 20, 5):
        value = TYPES[type_]
        twin.fill(
            f"INSERT INTO t SELECT i, CASE WHEN i % 5 > 0 THEN {value} END, i"
            f" FROM range({first}, {first} + 5) r(i)"
        )
    twin.fill("CHECKPOINT")
    assert tiles(twin).num_rows == 3
    assert not alone(twin)
    for sql in (
        "SELECT * FROM t ORDER BY id", "SELECT v FROM t WHERE id = 17", "SELECT max(id) FROM t",
        "SELECT p, v FROM t WHERE p BETWEEN 3 AND 11 ORDER BY p",
    ):  # fmt: skip
        twin.run(sql)


def test_what_tiles_show_is_recorded_before_rows_come_into_them(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table whose rows were stored when there were no tiles, its INSERTs did not say it."""
    twin.fill("CREATE TABLE t (a BIGINT ENC, b DOUBLE ENC)")
    with monkeypatch.context() as patched:
        patched.setattr(row_writer, "at_rest", lambda *_: [])
        for start in range(0, 24, 6):
            twin.fill(f"INSERT INTO t SELECT i, i FROM range({start}, {start} + 6) r(i)")
    ledger = twin.session.context.ledger
    assert not [fact for fact in ledger.facts() if "how many bits" in fact.text]
    twin.fill("CHECKPOINT")
    assert tiles(twin).num_rows
    (fact,) = (fact for fact in ledger.facts() if "how many bits" in fact.text)
    assert "numbers of a in t" in fact.text


_CHANGES = (
    "INSERT INTO t SELECT i, i * {a}, 'x' || i FROM range({n}, {n} + {b}) r(i)",
    "INSERT INTO t VALUES ({n} + 1000, {a}, NULL)", "DELETE FROM t WHERE id % {b} = 0",
    "UPDATE t SET a = a + 1 WHERE id % {b} = 1", "UPDATE t SET s = s || 'y' WHERE id < {n}",
    "INSERT INTO t SELECT i, 1099511627776 * {a}, repeat('long', {n}) FROM range({b}) r(i)",
)  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("session", range(cases(12)))
def test_changes_between_checkpoints(twin: Twin, session: int) -> None:
    draw = generator(f"folding {session}")
    twin.fill("CREATE TABLE t (id BIGINT ENC, a BIGINT ENC, s VARCHAR ENC)")
    for _ in range(12):
        for _ in range(draw.randint(1, 5)):
            values = {"n": draw.randint(0, 60), "a": draw.randint(-9, 9), "b": draw.randint(1, 12)}
            twin.either(draw.choice(_CHANGES).format(**values))
        twin.fill("CHECKPOINT")
        left = alone(twin)
        # A single row is left where a run ends behind its last whole tile.
        assert all(second > first + 1 for first, second in itertools.pairwise(left))
        if draw.random() < 0.2:
            twin.reopen()
        twin.either("SELECT * FROM t ORDER BY ALL")
        twin.either(f"SELECT a, s FROM t WHERE id = {draw.randint(0, 60)} ORDER BY ALL")


@pytest.mark.parametrize("what", [what for what in ATTACKS if "a row" not in what])
def test_what_the_server_changes_is_found(twin: Twin, what: str) -> None:
    twin.fill("CREATE TABLE t (a BIGINT ENC, b BIGINT ENC, p INTEGER)")
    for first in range(0, 40, 5):
        twin.fill(f"INSERT INTO t SELECT i, i + 1, i FROM range({first}, {first} + 5) r(i)")
    twin.fill("CHECKPOINT")
    table, held = twin.table("t"), tiles(twin)
    first, second = held.column("first_row").to_pylist()[:2]
    copy, other = table.tile_columns
    sql = ATTACKS[what].format(
        tiles=f'"{table.tile_table}"', copy=copy, other=other, first=first, second=second,
        layout=held.column_names[1],
    )  # fmt: skip
    assert twin.tap.run(Statement(sql, kind="write"))
    with pytest.raises(errors.VerificationError):
        twin.session.execute("SELECT a, b FROM t")


def test_a_row_that_is_gone_is_in_no_tile(twin: Twin) -> None:
    """No tile has a value for it: a server that brings it back is found out."""
    twin.fill("CREATE TABLE t (a BIGINT ENC, p INTEGER)")
    for first in range(0, 12, 4):
        twin.fill(f"INSERT INTO t SELECT i, i FROM range({first}, {first} + 4) r(i)")
    twin.fill("DELETE FROM t WHERE p = 3", "CHECKPOINT", "SELECT * FROM t ORDER BY p")
    (copy,) = twin.table("t").tile_columns
    first = min(tiles(twin).column("first_row").to_pylist())
    sql = f"INSERT INTO t (row_id, {copy}, p) VALUES ({first + 3}, ''::BLOB, 3)"
    assert twin.tap.run(Statement(sql, kind="write"))
    with pytest.raises(errors.VerificationError):
        twin.session.execute("SELECT a FROM t WHERE p = 3")


def test_tables_of_an_earlier_release(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(tile_forms, "columns_of", lambda _: [])
        twin.fill(
            "CREATE TABLE t (id BIGINT ENC PRIMARY KEY, s VARCHAR ENC)",
            "INSERT INTO t SELECT i, 'x' || i FROM range(100) r(i)",
        )
        assert not twin.table("t").tile_table
    twin.fill("CHECKPOINT")
    assert tiles(twin).num_rows == 13
    twin.reopen()
    twin.run("SELECT * FROM t ORDER BY id")
    twin.run("SELECT s FROM t WHERE id = 17")
    twin.both("UPDATE t SET s = 'y' WHERE id = 17", "INSERT INTO t VALUES (17, 'z')")
    twin.run("SELECT * FROM t ORDER BY id")


def _texts(connection: Any) -> list[str]:
    return sorted(text for (text,) in connection.execute("SELECT s FROM t").fetchall())


def test_beside_another_session(twin: Twin) -> None:
    """What it has read stays as it was; what it changes is not folded."""
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    for first in range(0, 40, 4):
        twin.fill(f"INSERT INTO t SELECT i, 'x' || i FROM range({first}, {first} + 4) r(i)")
    names = sorted(f"x{i}" for i in range(40))
    recorded = RecordedSession(twin.path, twin.key_file, "sealed")
    with closing(Connection(recorded.session)) as other:
        other.execute("BEGIN")
        assert _texts(other) == names
        folding.fold(twin.session.context)
        assert not alone(twin)
        assert _texts(other) == names
        other.execute("ROLLBACK")
        assert _texts(other) == names
        twin.fill("INSERT INTO t SELECT i, 'y' FROM range(4) r(i)")
        other.execute("BEGIN")
        other.execute("UPDATE t SET s = 'z' WHERE s = 'y'")
        folding.fold(twin.session.context)
        other.execute("ROLLBACK")
    twin.run("SELECT * FROM t ORDER BY ALL")


def test_what_fails_leaves_all_as_it_was(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    for first in range(0, 40, 4):
        twin.fill(f"INSERT INTO t SELECT i, 'x' || i FROM range({first}, {first} + 4) r(i)")
    engine, own = twin.session.context.engine, type(twin.session.context.engine).append

    def failing(self: Any, table: str, rows: Any) -> None:
        if "tiles" in table:
            raise errors.make("internal", detail="the disk is full")
        own(self, table, rows)

    with monkeypatch.context() as broken:
        broken.setattr(type(engine), "append", failing)
        with pytest.raises(errors.InternalError):
            twin.session.execute("CHECKPOINT")
    assert len(alone(twin)) == 40
    assert tiles(twin).num_rows == 0
    twin.run("SELECT * FROM t ORDER BY id")
    twin.fill("CHECKPOINT")
    assert not alone(twin)
    twin.run("SELECT * FROM t ORDER BY id")
