"""Epochs in whole sessions: restored backups, forks, copied machines, and earlier releases."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from unittest import mock

import duckdb
import pytest

from louver import errors
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.row_ids import BLOCK, RowIds
from louver.trusted.executor.session import Session
from louver.trusted.vault import row_id_ranges
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.epochs import COUNTER_BITS, Epochs, draw
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement
from tests import shared
from tests.generated import cases, generator
from tests.vault.epoch_model import TABLE, World

GOLDEN = Path(__file__).parents[1] / "golden/0.1.0"
INSERT = "INSERT INTO t VALUES (1, 5, 'a', 3), (2, NULL, NULL, 4)"


@pytest.fixture
def world(tmp_path: Path, key_file: Path) -> Iterator[World]:
    """A server with one file, and a machine that made a table in it; then its backup."""
    world = World(tmp_path, key_file)
    world.files.append(tmp_path / "cloud.duckdb")
    world.session(0, 0, accept=False)
    for sql in (TABLE, INSERT):
        world.run((0, 0), sql)
    yield world
    world.end()


def test_a_backup_that_is_restored_and_accepted(world: World) -> None:
    """Both insert in the same epoch by number, from its first row on."""
    backup = world.states[-1]
    world.close((0, 0))
    for value in (10, 77):
        world.replay(0, backup)
        assert world.session(0, 0, accept=True) is not None
        world.run((0, 0), f"INSERT INTO t VALUES (3, {value}, 'b', {value})")
        assert world.run((0, 0), "SELECT sum(v) FROM t") == [(5 + value,)]
        world.close((0, 0))
    ids = [row for _, row in world.witness.sealed]
    assert len(ids) > len(set(ids)), "the numbers are used twice, and nothing else is"


def test_a_value_of_a_fork_is_refused_in_its_row_elsewhere(world: World) -> None:
    """Two machines that never meet write rows of one id; the server swaps their values."""
    world.close((0, 0))
    fork, other = world.fork_of(world.states[-1]), world.arrive()
    for machine, file, value in ((0, 0, 10), (other, fork, 77)):
        world.session(machine, file, accept=False)
        world.run((machine, file), f"INSERT INTO t VALUES (3, {value}, 'b', 1)")
        table = world.sessions[machine, file].context.catalog.table("main", "t")
        world.close((machine, file))
    assert table is not None
    stored = table.columns[1].stored["rnd"]
    with duckdb.connect(world.files[fork]) as theirs:
        rows = theirs.execute(f"SELECT row_id, {stored} FROM t WHERE id = 3").fetchall()
    with duckdb.connect(world.files[0]) as ours:
        (row_id,) = ours.execute("SELECT row_id FROM t WHERE id = 3").fetchone() or ()
        assert row_id == rows[0][0]
        ours.execute(f"UPDATE t SET {stored} = ? WHERE id = 3", [rows[0][1]])
    world.session(0, 0, accept=False)
    with pytest.raises(errors.VerificationError) as caught:
        world.sessions[0, 0].execute("SELECT v FROM t")
    assert caught.value.code == "value.tampered"


def test_sessions_with_one_pin_claim_apart_whatever_the_server_forgets(
    tmp_path: Path, key_file: Path
) -> None:
    engine, pins = DuckDBEngine(tmp_path / "cloud"), Pins(KeyRing.open(key_file), tmp_path / "pins")
    claimed = []
    for _ in range(3):
        claimed.append(RowIds(engine.side(), pins.pin("db")).claim(Catalog("db")))
        engine.run(Statement("DELETE FROM louver_epoch", kind="write"))
    assert claimed == [1, 2, 3]


def test_a_pin_is_locked_while_an_epoch_is_claimed(tmp_path: Path, key_file: Path) -> None:
    pins = Pins(KeyRing.open(key_file), tmp_path / "pins")
    held = []

    def attempt(seen: int) -> int:
        import fcntl

        with (tmp_path / "pins/lock").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(seen)
        return seen + 1

    assert [pins.pin("db").claim_epoch(attempt) for _ in range(2)] == [1, 2]
    assert held == [0, 1]


def test_a_process_that_was_copied_claims_its_own_epoch(tmp_path: Path, key_file: Path) -> None:
    engine, pin = DuckDBEngine(tmp_path / "cloud"), Pins(KeyRing.open(key_file)).pin("copied")
    ids, catalog = RowIds(engine.side(), pin), Catalog("db")
    first = ids.take(2, catalog)[0].as_py()
    with mock.patch.object(os, "getpid", return_value=1):
        copied = ids.take(2, catalog)[0].as_py()
    assert (first >> COUNTER_BITS, copied >> COUNTER_BITS) == (1, 2)
    assert len(set(catalog.epochs.bits.values())) == 2


@pytest.mark.parametrize("number", range(cases(20)))
def test_numbers_of_several_tables(tmp_path: Path, key_file: Path, number: int) -> None:
    """None is given twice, whoever asks for how many; single rows of a table follow each other."""
    chance = generator(f"row ids {number}")
    engine, pin = DuckDBEngine(tmp_path / "cloud"), Pins(KeyRing.open(key_file)).pin("blocks")
    ids, catalog = RowIds(engine.side(), pin), Catalog("db")
    by_table: dict[int | None, list[int]] = {None: [], 1: [], 2: [], 3: []}
    for _ in range(200):
        table, count = chance.choice((None, 1, 2, 3)), chance.choice((0, 1, 1, 7, 1000, 1024, 5000))
        own = ids.take(count, catalog, table).to_pylist()
        assert own == [*range(own[0], own[0] + count)] if own else not count
        by_table[table] += own
        if chance.random() < 0.02:
            ids.claim(catalog)
    given = [row_id for own in by_table.values() for row_id in own]
    assert len({*given}) == len(given)
    assert all(own == sorted(own) for own in by_table.values())
    for _ in range(BLOCK):
        for table in (1, 2):
            by_table[table].append(ids.take(1, catalog, table)[0].as_py())
    breaks = [sum(b != a + 1 for a, b in pairwise(by_table[t][-BLOCK:])) for t in (1, 2)]
    assert max(breaks) <= 1


def test_an_epoch_whose_number_the_catalog_knows_otherwise_is_not_used(
    tmp_path: Path, key_file: Path
) -> None:
    """Two machines claimed one number of a server that forgot the first claim."""
    engine, pin = DuckDBEngine(tmp_path / "cloud"), Pins(KeyRing.open(key_file)).pin("twice")
    catalog = Catalog("db", epochs=Epochs({1: "ab" * 16, 4: "cd" * 16}))
    ids = RowIds(engine.side(), pin)
    ids._epoch, ids._bits, ids._process = 1, "ef" * 16, os.getpid()
    assert ids.take(1, catalog)[0].as_py() >> COUNTER_BITS == 5
    assert catalog.epochs.bits[1] == "ab" * 16
    with pytest.raises(ValueError, match="for ever"):
        catalog.epochs.adding(1, "ef" * 16)


def test_layers_open_and_sums_add_over_epochs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.close((0, 0))
    for value in (6, 7, 8):
        world.session(0, 0, accept=False)
        world.run((0, 0), f"INSERT INTO t VALUES ({value}, {value}, 'w {value}', {value})")
        world.close((0, 0))
    session = world.session(0, 0, accept=False)
    assert session is not None
    world.run((0, 0), "DELETE FROM t WHERE id = 7")
    table = session.context.catalog.table("main", "t")
    assert table is not None
    stored = session.context.engine.query(Statement("SELECT row_id FROM t"))
    assert len({row_id >> COUNTER_BITS for row_id in stored.column(0).to_pylist()}) == 3
    assert {1, 2, 3, 4} <= set(session.context.catalog.epochs.bits)
    wanted = [(5 + 6 + 8, 3, 3 + 4 + 6 + 8)]
    assert world.run((0, 0), "SELECT sum(v), count(v), sum(p) FROM t") == wanted
    assert world.run((0, 0), "SELECT id FROM t WHERE s LIKE '%w 8%'") == [(8,)]
    assert world.run((0, 0), "SELECT id FROM t WHERE v = 6") == [(6,)]
    assert (session.context.catalog.table("main", "t") or table).columns[1].layers["eq"] == "det"
    # In too many pieces the client no longer knows which epochs a table has rows of.
    monkeypatch.setattr(row_id_ranges, "MOST", 1)
    world.run((0, 0), "DELETE FROM t WHERE id = 2")
    assert not (session.context.catalog.table("main", "t") or table).runs_known
    assert world.run((0, 0), "SELECT id FROM t WHERE v BETWEEN 6 AND 9 ORDER BY id") == [(6,), (8,)]
    assert (session.context.catalog.table("main", "t") or table).columns[1].layers["ord"] == "open"
    assert world.run((0, 0), "SELECT sum(v) FROM t WHERE id > 1") == [(14,)]


def test_rows_of_an_unknown_epoch_are_refused(world: World) -> None:
    world.close((0, 0))
    with duckdb.connect(world.files[0]) as server:
        server.execute("UPDATE t SET row_id = row_id + (1::BIGINT << 36) WHERE id = 1")
    session = world.session(0, 0, accept=False)
    assert session is not None
    for sql in ("SELECT v FROM t", "SELECT sum(v) FROM t WHERE id > 0", "SELECT p FROM t"):
        with pytest.raises(errors.VerificationError):
            session.execute(sql)
    with pytest.raises(errors.VerificationError):
        session.execute("SELECT id FROM t WHERE v = 5")


def test_a_database_of_an_earlier_release_moves_on_at_the_first_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test may have gone on from the same database.
    monkeypatch.setenv("LOUVER_STATE_DIR", str(shared.state(tmp_path / "state")))
    database, path = tmp_path / "golden.duckdb", tmp_path / "golden.louverkey"
    database.write_bytes(gzip.decompress((GOLDEN / "database.gz").read_bytes()))
    path.touch(mode=0o600)
    path.write_bytes((GOLDEN / "key.txt").read_bytes())

    def opened() -> Session:
        return Session(DuckDBEngine(database), KeyRing.open(path), Policy("sealed"))

    session = opened()
    assert session.context.catalog.epochs == Epochs.legacy()
    old = session.context.engine.query(Statement("SELECT max(row_id) AS r FROM staff"))[0][
        0
    ].as_py()
    session.execute("INSERT INTO staff VALUES (4, 'Edith', 7, NULL, NULL, NULL)")
    (number,) = session.context.catalog.epochs.bits
    assert session.context.catalog.epochs.legacy_below == number > old >> COUNTER_BITS
    session.close()
    session = opened()
    rows = session.execute("SELECT id, salary FROM staff ORDER BY id").rows
    assert session.python_rows(rows) == [(1, 9000), (2, -8500), (3, 0), (4, 7)]
    rows = session.execute("SELECT sum(salary) FROM staff").rows
    assert session.python_rows(rows) == [(507,)]
    session.close()


def test_the_first_epoch_with_bits_follows_all_of_earlier_releases(
    tmp_path: Path, key_file: Path
) -> None:
    """Another client, of an earlier release, claims and writes after this one has claimed."""
    engine, pin = DuckDBEngine(tmp_path / "cloud"), Pins(KeyRing.open(key_file)).pin("older")
    ids, catalog = RowIds(engine.side(), pin), Catalog("db", epochs=Epochs.legacy())
    ids.ensure(catalog)
    engine.run(Statement("INSERT INTO louver_epoch VALUES (2)", kind="write"))
    catalog.version += 1
    assert ids.take(1, catalog)[0].as_py() >> COUNTER_BITS == 3
    assert catalog.epochs.legacy_below == 3
    late = RowIds(engine.side(), pin)
    late._epoch, late._bits, late._process = 1, draw(), os.getpid()
    assert late.take(1, catalog)[0].as_py() >> COUNTER_BITS == 4


def test_what_is_no_epoch_is_no_catalog() -> None:
    good = Catalog.create()
    good.epochs = good.epochs.adding(3, "ab" * 16)
    assert Catalog.from_json(good.to_json()).epochs == good.epochs
    for before, after in (
        ('"3"', '"-1"'), ('"3"', '"x"'), ("abab", "ABAB"), ("abab", "ab"), ('"bits"', '"bit"'),
        ('"legacy_below":0', '"legacy_below":true'), ('"legacy_below":0', '"legacy_below":-1'),
    ):  # fmt: skip
        text = good.to_json().decode().replace(before, after, 1).encode()
        with pytest.raises(errors.Error) as caught:
            Catalog.from_json(text)
        assert caught.value.code == "catalog.format", after
