"""Rows that a client stores one by one are folded into tiles without CHECKPOINT: outside of
transactions, in steps, and so that nobody notices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor import folding, state
from louver.trusted.vault import tile_forms
from louver.wire.messages import Statement
from tests.executor.tiles.stored import alone, tiles
from tests.generated import cases, generator
from tests.recorded import RecordedSession
from tests.twin import Twin

_FOLDED = 20


@pytest.fixture(autouse=True)
def _folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "FOLDED_ROWS", _FOLDED)


@pytest.fixture
def other(twin: Twin) -> Iterator[Twin]:
    """Another client, beside the same plaintext."""
    recorded = RecordedSession(twin.path, twin.key_file, "sealed", modulus_bits=512)
    with closing(Connection(recorded.session)) as connection:
        beside = Twin.beside(connection)
        beside.plain.close()
        beside.plain = twin.plain
        yield beside


def _one_by_one(twin: Twin, first: int, count: int) -> None:
    for i in range(first, first + count):
        twin.fill(f"INSERT INTO t VALUES ({i}, 'x{i}')")


def test_rows_that_come_one_by_one(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, _FOLDED - 1)
    assert tiles(twin).num_rows == 0
    _one_by_one(twin, _FOLDED - 1, 1)
    assert tiles(twin).num_rows == 2
    assert len(alone(twin)) == _FOLDED % 8
    _one_by_one(twin, _FOLDED, 5 * _FOLDED)
    assert tiles(twin).num_rows == 6 * _FOLDED // 8
    twin.run("SELECT * FROM t ORDER BY id")
    twin.reopen()
    twin.run("SELECT s FROM t WHERE id = 17")


def test_rows_of_two_tables_in_turn(twin: Twin) -> None:
    """Those of each have consecutive numbers."""
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    twin.fill("CREATE TABLE u (id BIGINT ENC, s VARCHAR ENC)")
    for i in range(2 * _FOLDED):
        twin.fill(f"INSERT INTO t VALUES ({i}, 'x{i}')", f"INSERT INTO u VALUES ({i}, 'y')")
    for table in "tu":
        assert tiles(twin, table).num_rows == 2 * _FOLDED // 8
        twin.run(f"SELECT * FROM {table} ORDER BY id")


def test_a_statement_folds_a_few_tiles(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "STEP_TILES", 2)
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)", "BEGIN")
    _one_by_one(twin, 0, 44)
    twin.fill("COMMIT")
    for expected in (2, 4, 5, 5):
        assert tiles(twin).num_rows == expected
        twin.run("SELECT count(*) FROM t")
    monkeypatch.setattr(folding, "STEP_COLUMNS", 1)
    _one_by_one(twin, 44, _FOLDED)
    assert tiles(twin).num_rows == 6


def test_never_within_a_transaction(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)", "BEGIN")
    _one_by_one(twin, 0, 2 * _FOLDED)
    assert tiles(twin).num_rows == 0
    twin.fill("ROLLBACK", "SELECT * FROM t")
    assert tiles(twin).num_rows == 0
    twin.louver.begin()
    for i in range(_FOLDED):
        twin.louver.execute(f"INSERT INTO t VALUES ({i}, 'x{i}')")
        twin.plain.execute(f"INSERT INTO t VALUES ({i}, 'x{i}')")
    twin.louver.commit()
    assert tiles(twin).num_rows == 2
    twin.run("SELECT * FROM t ORDER BY id")


_CHANGES = (
    "INSERT INTO t SELECT i, i * {a}, 'x' || i FROM range({n}, {n} + {b}) r(i)",
    "INSERT INTO t VALUES ({n} + 1000, {a}, NULL)", "INSERT INTO t VALUES ({n}, {a}, 'one')",
    "INSERT INTO t VALUES ({n}, 1, 'first'), ({b}, 2, 'second')",
    "INSERT INTO u VALUES ({n})", "INSERT INTO u SELECT * FROM range({b})",
    "DELETE FROM t WHERE id % {b} = 0", "DELETE FROM t WHERE id = {n}",
    "UPDATE t SET a = a + 1 WHERE id % {b} = 1", "UPDATE t SET s = s || 'y' WHERE id < {n}",
    "INSERT INTO t SELECT i, 1099511627776 * {a}, repeat('long', {n}) FROM range({b}) r(i)",
    "DELETE FROM u", "CHECKPOINT", "ALTER TABLE u ADD COLUMN c INTEGER",
    "ALTER TABLE u DROP COLUMN c", "CREATE OR REPLACE TABLE u (i BIGINT ENC PRIMARY KEY)",
)  # fmt: skip
_READS = (
    "SELECT * FROM t ORDER BY ALL", "SELECT a, s FROM t WHERE id = {n} ORDER BY ALL",
    "SELECT sum(a), count(s) FROM t", "SELECT t.a FROM t JOIN u ON t.id = u.i ORDER BY ALL",
)  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("session", range(cases(12)))
def test_changes_of_two_clients(twin: Twin, other: Twin, session: int) -> None:
    draw = generator(f"folding by itself {session}")
    twin.fill("CREATE TABLE t (id BIGINT ENC, a BIGINT ENC, s VARCHAR ENC)")
    twin.fill("CREATE TABLE u (i BIGINT ENC PRIMARY KEY)")
    for _ in range(25):
        client = draw.choice((twin, other))
        within = draw.random() < 0.2
        if within:
            client.fill("BEGIN")
        for _ in range(draw.randint(1, 6)):
            _either(client, draw, _CHANGES[:-4] if within else _CHANGES)
        if within:
            aborted = client.session.context.state.aborted
            client.fill("ROLLBACK" if aborted else draw.choice(("COMMIT", "COMMIT", "ROLLBACK")))
        _either(draw.choice((twin, other)), draw, _READS)
    twin.either(_READS[0])
    other.either(_READS[0])


def _either(twin: Twin, draw: Random, texts: tuple[str, ...]) -> None:
    if not twin.session.context.state.aborted:
        values = {"n": draw.randint(0, 60), "a": draw.randint(-9, 9), "b": draw.randint(1, 12)}
        twin.either(draw.choice(texts).format(**values))


def test_another_client_is_faster(twin: Twin, other: Twin) -> None:
    """The statement is over, and its answer stands; the rows are folded when as many have come."""
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, _FOLDED - 1)
    copy = twin.table("t").tile_columns[0]
    engine = other.session.context.engine
    engine.begin()
    engine.run(Statement(f"UPDATE t SET {copy} = 'x' WHERE row_id % 8 = 0", kind="write"))
    _one_by_one(twin, _FOLDED - 1, 2)
    assert tiles(twin).num_rows == 0
    engine.rollback()
    twin.run("SELECT * FROM t ORDER BY id")
    _one_by_one(twin, _FOLDED + 1, _FOLDED)
    assert tiles(twin).num_rows == 5
    other.run("SELECT * FROM t ORDER BY id")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_another_client_changes_these_rows(twin: Twin, other: Twin, end: str) -> None:
    """Its transaction goes on, whether it was there before or after they were folded."""
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, 10)
    twin.run("SELECT s FROM t WHERE id = 3")
    other.louver.execute("BEGIN")
    other.louver.execute("UPDATE t SET s = 'y' WHERE id = 3")
    _one_by_one(twin, 10, 15)
    assert tiles(twin).num_rows
    other.louver.execute("DELETE FROM t WHERE id = 5")
    other.louver.execute(end)
    if end == "COMMIT":
        twin.plain.execute("UPDATE t SET s = 'y' WHERE id = 3; DELETE FROM t WHERE id = 5")
    twin.run("SELECT * FROM t ORDER BY id")
    other.run("SELECT * FROM t ORDER BY id")


def test_a_reader_keeps_its_state(twin: Twin, other: Twin) -> None:
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, 15)
    other.louver.execute("BEGIN")
    before = other.louver.execute("SELECT * FROM t ORDER BY id").fetchall()
    _one_by_one(twin, 15, 15)
    assert tiles(twin).num_rows
    assert other.louver.execute("SELECT * FROM t ORDER BY id").fetchall() == before
    other.louver.execute("COMMIT")
    other.run("SELECT * FROM t ORDER BY id")


class _Failing:
    """Has the server's engine fail where tiles are stored."""

    def __init__(self, twin: Twin, error: BaseException) -> None:
        self.engine, self.error = type(twin.session.context.engine), error
        self.own, self.count = self.engine.append, 0

    def __call__(self, engine: Any, table: str, rows: Any) -> None:
        if "tiles" in table:
            self.count += 1
            raise self.error
        self.own(engine, table, rows)


@pytest.mark.parametrize("error", [errors.make("disk.full", place="here", detail=""), None])
def test_what_fails_leaves_all_as_it_was(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, error: errors.Error | None
) -> None:
    """Ctrl-C comes out as such, whatever it has interrupted."""
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, _FOLDED - 1)
    failing = _Failing(twin, error or KeyboardInterrupt())
    with monkeypatch.context() as broken:
        broken.setattr(failing.engine, "append", lambda *given: failing(*given))
        twin.plain.execute("INSERT INTO t VALUES (19, 'x19')")
        if error is None:
            with pytest.raises(KeyboardInterrupt):
                twin.louver.execute("INSERT INTO t VALUES (19, 'x19')")
        else:
            assert twin.louver.execute("INSERT INTO t VALUES (19, 'x19')").rowcount == 1
        assert failing.count == 1
        _one_by_one(twin, 20, _FOLDED - 1)
        assert failing.count == 1
    assert not twin.session.context.engine.in_transaction
    assert not twin.table("t").tiles
    twin.run("SELECT * FROM t ORDER BY id")
    _one_by_one(twin, 2 * _FOLDED - 1, 1)
    assert tiles(twin).num_rows == 2 * _FOLDED // 8
    twin.run("SELECT * FROM t ORDER BY id")


def _sent(path: Path, key_file: Path, world: int) -> list[str]:
    """The statements of a session without the names that are drawn for it."""
    recorded = RecordedSession(path / f"{world}.duckdb", key_file, "sealed", modulus_bits=512)
    with closing(Connection(recorded.session)) as connection:
        connection.execute("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC, p INTEGER)")
        for i in range(4 * _FOLDED):
            row = (i, "same", i) if world else ((i * 7919) % 1000, f"x{i}", i)
            connection.execute("INSERT INTO t VALUES (?, ?, ?)", row)
            if i % 7 == 0:
                connection.execute("DELETE FROM t WHERE p = ?", [i - 3])
        texts = [m.sql for m in recorded.tap.sent() if isinstance(m, Statement)]
    return [re.sub(r"_[0-9a-f]{12}", "_#", text) for text in texts]


def test_when_rows_are_folded_depends_on_no_value(tmp_path: Path, key_file: Path) -> None:
    first, second = (_sent(tmp_path, key_file, world) for world in range(2))
    assert first == second
    assert sum("= ''::BLOB WHERE row_id IN" in text for text in first) == 4


def test_numbers_that_need_more_bits(twin: Twin, other: Twin) -> None:
    """Folding begins a layout, which another client learns before it meets a tile of it."""
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, _FOLDED)
    other.run("SELECT * FROM t ORDER BY id")
    _one_by_one(twin, 1 << 40, 2 * _FOLDED)
    assert len({name.partition("/")[0] for name in twin.table("t").tiles}) == 2
    other.run("SELECT * FROM t ORDER BY id")


def test_only_new_rows_are_looked_at(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is asked for once, but for those of the last tile."""
    monkeypatch.setattr(tile_forms, "ROWS", 4)
    twin.fill("CREATE TABLE t (id BIGINT ENC, s VARCHAR ENC)")
    _one_by_one(twin, 0, 6 * _FOLDED)
    spans = [
        message.constants
        for message in twin.tap.sent()
        if isinstance(message, Statement) and "row_id BETWEEN $1 AND $2" in message.sql
    ]
    assert len(spans) == 6
    assert all(high - low <= _FOLDED + 4 for low, high in spans)  # type: ignore[operator]
