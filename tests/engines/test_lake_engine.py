"""The control tables of a lake: what bookkeeping needs of an engine, several clients at once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor.ledger import Fact, Ledger
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.pin import Keys, Pins
from louver.untrusted.engines.engine import Engine
from louver.untrusted.engines.lake import LakeEngine
from louver.untrusted.lake.control import ControlFile, _table
from louver.wire import control
from louver.wire.control import Batch
from louver.wire.messages import Count, Statement
from louver.wire.tap import Tap

SUM = Fact("staff", ("salary",), "plaintext", "sdb.sum", "ratios of all values of salary")
SIZE = Fact("staff", ("name", "salary"), "size", "load", "how many rows staff has")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def engine(path: Path) -> LakeEngine:
    return LakeEngine(path)


def raw(path: Path, *statements: str) -> None:
    with sqlite3.connect(path / "louver.sqlite") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_it_is_an_engine(engine: LakeEngine, path: Path) -> None:
    assert isinstance(engine, Engine)
    assert engine.created
    assert engine.address == f"lake:{path}"
    assert not LakeEngine(path).created
    assert engine.table_names() == []
    assert Tap(engine).table_names() == []
    with pytest.raises(errors.InternalError):
        engine.append("t", pa.table({"k": [1]}))


def test_values_and_counts(engine: LakeEngine) -> None:
    engine.run(control.CATALOG_CREATE)
    row = (7, "id", "key", b"\x00body")
    assert engine.run(Statement(control.CATALOG_INSERT, row, kind="write")) == 1
    assert engine.value(control.CATALOG_VERSION) == 7
    reply = engine.query(control.CATALOG_READ)
    assert reply.to_pylist() == [
        {"version": 7, "database_id": "id", "key_id": "key", "body": b"\x00body"}
    ]
    assert engine.stream(control.CATALOG_READ).read_all().equals(reply)
    update = Statement(control.CATALOG_UPDATE, (9, b"x", 8), kind="write")
    assert engine.run(update) == 0
    assert engine.table_names() == ["louver_catalog"]
    engine.run(control.LEDGER_CREATE)
    assert engine.value(Statement(control.LEDGER_TAIL, (0,))) is None
    assert engine.traffic.bytes_out > 0 < engine.traffic.bytes_in


def test_a_transaction_is_kept_or_forgotten(engine: LakeEngine) -> None:
    other = engine.side()
    for keep in (False, True):
        engine.begin()
        assert engine.in_transaction
        engine.run(control.EPOCH_CREATE)
        engine.run(Statement(control.EPOCH_CLAIM, (1,), kind="write"))
        assert engine.value(control.EPOCH_HIGHEST) == 1
        assert other.table_names() == []
        engine.commit() if keep else engine.rollback()
        assert not engine.in_transaction
    assert other.value(control.EPOCH_HIGHEST) == 1
    for end in (engine.commit, engine.rollback):
        with pytest.raises(errors.InternalError):
            end()


def test_a_thinking_client_keeps_nobody_waiting(engine: LakeEngine, path: Path) -> None:
    engine.run(control.EPOCH_CREATE)
    engine.begin()
    engine.run(Statement(control.EPOCH_CLAIM, (1,), kind="write"))
    other = LakeEngine(path)
    assert other.run(Statement(control.EPOCH_CLAIM, (1,), kind="write")) == 1
    with pytest.raises(errors.OperationalError) as lost:
        engine.commit()
    assert lost.value.code == "catalog.conflict"
    with pytest.raises(errors.IntegrityError) as race:
        engine.run(Statement(control.EPOCH_CLAIM, (1,), kind="write"))
    assert race.value.code == "lake.race"


def test_a_changed_count_is_a_lost_race(engine: LakeEngine) -> None:
    engine.run(control.CATALOG_CREATE)
    engine.run(Statement(control.CATALOG_INSERT, (1, "d", "k", b""), kind="write"))
    update = Statement(control.CATALOG_UPDATE, (2, b"mine", 1), kind="write")
    engine.begin()
    assert engine.run(update) == 1
    assert engine.side().run(Statement(control.CATALOG_UPDATE, (2, b"yours", 1), kind="write"))
    with pytest.raises(errors.OperationalError):
        engine.commit()
    assert engine.query(control.CATALOG_READ).column("body")[0].as_py() == b"yours"


def test_the_catalog_lives_here(path: Path, keys: Keys) -> None:
    first, second = (CatalogStore(LakeEngine(path), keys) for _ in range(2))
    catalog, other = first.load(), second.load()
    assert catalog.database_id == other.database_id
    table = Table("main", "staff", catalog.take_table_id())
    table.columns = [Column("name", "TEXT", catalog.take_column_id(), True)]
    catalog.add(table)
    first.save(catalog)
    first.committed()
    assert second.current_version() == 2
    with pytest.raises(errors.OperationalError) as lost:
        second.save(other)
    assert lost.value.code == "catalog.conflict"
    assert second.load().to_json() == catalog.to_json()


def test_sessions_begin_together(path: Path, keys: Keys) -> None:
    seen: list[str] = []
    barrier = threading.Barrier(6)

    def work() -> None:
        engine = LakeEngine(path)
        barrier.wait(300)
        seen.append(CatalogStore(engine, keys).load().database_id)
        Ledger(engine.side(), keys, Pins(keys).pin("db")).record([SUM], "q")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 6
    assert len(set(seen)) == 1


def test_a_new_file_that_another_opens_too_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself does not wait where a journal is turned into a log."""
    for number in range(20):
        folder, failed = tmp_path / str(number), list[BaseException]()
        barrier = threading.Barrier(8)

        def work(folder: Path = folder, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(300)
            try:
                ControlFile(folder).close()
            except errors.Error as error:
                failed.append(error)  # noqa: B023

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def test_a_ledger_lives_here(path: Path, keys: Keys) -> None:
    engine = LakeEngine(path)
    pin = Pins(keys).pin("db")
    ledger = Ledger(engine.side(), keys, pin)
    engine.begin()
    assert ledger.record([SUM, SIZE], "q") == [SUM, SIZE]
    engine.rollback()
    engine.close()
    again = Ledger(LakeEngine(path), keys, pin)
    assert again.facts() == [SUM, SIZE]
    raw(path, "DELETE FROM louver_ledger")
    with pytest.raises(errors.VerificationError) as cheated:
        Ledger(LakeEngine(path), keys, pin)
    assert cheated.value.code == "ledger.rollback"


WORK = """
import os, sys
sys.path.insert(0, {folder!r})
from tests.doubles import KeysDouble
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.executor.ledger import Fact, Ledger
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.pin import Pins
from louver.untrusted.engines.lake import LakeEngine
workers = []
for name in "abc":  # forked when everything is loaded and nothing runs yet
    if not (worker := os.fork()):
        keys = KeysDouble("0123456789abcdef")
        engine = LakeEngine({path!r})
        pin = Pins(keys).pin("db")
        ledger = Ledger(engine.side(), keys, pin)
        ids = RowIds(engine.side(), pin)
        for step in range(10):
            ledger.record([Fact("t", (name,), "order", "k", str(step))], "q")
            os.write(1, b"%d\\n" % ids.claim(Catalog("x")))  # at once: others write too
        os._exit(0)
    workers.append(worker)
sys.exit(any(os.waitpid(worker, 0)[1] for worker in workers))
"""


def test_processes_race_without_loss(path: Path, keys: Keys) -> None:
    script = WORK.format(folder=str(Path(__file__).parents[2]), path=str(path))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(map(int, done.stdout.split())) == list(range(1, 31))
    assert len(Ledger(LakeEngine(path), keys, Pins(keys).pin("db")).facts()) == 30


def test_row_ids_after_a_server_that_went_back(path: Path, keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    engine = LakeEngine(path)
    assert RowIds(engine, pin).claim(Catalog("x")) == 1
    raw(path, "DELETE FROM louver_epoch")
    assert RowIds(engine, pin).claim(Catalog("x")) == 2


def test_a_writer_waits_for_a_bounded_time(path: Path) -> None:
    tables = ControlFile(path, wait_seconds=0.2)
    holder = sqlite3.connect(path / "louver.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.OperationalError) as busy:
        tables.perform(Batch((control.EPOCH_CREATE,), keep=True))
    assert busy.value.code == "lake.busy"
    assert LakeEngine.over(tables).table_names() == []
    holder.execute("ROLLBACK")
    assert tables.perform(Batch((control.EPOCH_CREATE,), keep=True)) == [Count(0)]
    tables.close()
    tables.close()
    with pytest.raises(errors.InterfaceError):
        tables.perform(Batch((control.EPOCH_CREATE,), keep=True))


def test_a_full_disk_is_named(engine: LakeEngine) -> None:
    connection = engine._control._connection  # type: ignore[attr-defined]
    engine.run(control.LEDGER_CREATE)
    connection.execute("PRAGMA max_page_count = 4")
    big = Statement(control.LEDGER_APPEND, (1, bytes(100_000)), kind="write")
    with pytest.raises(errors.OperationalError) as full:
        engine.run(big)
    assert full.value.code == "disk.full"
    connection.execute("PRAGMA max_page_count = 1000000")
    assert engine.run(big) == 1


def test_hostile_files(
    path: Path, engine: LakeEngine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(errors.ProgrammingError) as missing:
        engine.value(control.CATALOG_VERSION)
    assert missing.value.code == "lake.statement"
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n"
    monkeypatch.setattr("louver.untrusted.lake.control._MAX_STEPS", 20_000_000)
    raw(path, f"CREATE VIEW louver_epoch AS {endless} AS epoch FROM r")
    with pytest.raises(errors.OperationalError) as endless_error:
        engine.value(control.EPOCH_HIGHEST)
    assert endless_error.value.code == "lake.io"
    huge = "INSERT INTO louver_catalog VALUES (1, 'd', '0123456789abcdef', 1000000000000)"
    raw(path, "DROP VIEW louver_epoch", control.CATALOG_CREATE.sql, huge)
    with pytest.raises(errors.CatalogError):
        CatalogStore(engine, keys).load()
    raw(path, "INSERT INTO louver_catalog VALUES ('one', 'd', '0123456789abcdef', x'00')")
    with pytest.raises(errors.VerificationError) as mixed:
        CatalogStore(engine, keys).load()
    assert mixed.value.code == "reply.format"
    engine.close()
    for name in ("louver.sqlite-wal", "louver.sqlite-shm"):
        (path / name).unlink(missing_ok=True)
    (path / "louver.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(errors.OperationalError):
        LakeEngine(path)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW louver_ledger AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS sequence, zeroblob(10000) AS body FROM n",
        "CREATE VIEW louver_ledger AS SELECT 1 AS sequence, zeroblob(500000000) AS body",
        "CREATE TABLE louver_ledger (sequence, body AS (zeroblob(100000000)))",
        "CREATE INDEX more ON louver_epoch (epoch + 1)",
    ],
)
def test_a_file_that_answers_with_more_than_it_stores_is_refused(path: Path, text: str) -> None:
    tables = ControlFile(path)
    tables.perform(Batch((control.EPOCH_CREATE,), keep=True))
    raw(path, text)
    with pytest.raises(errors.OperationalError) as refused:
        tables.perform(Batch((Statement(control.LEDGER_TAIL, (0,)),)))
    assert refused.value.code == "lake.io"
    tables.close()


def test_an_answer_has_room_for_what_the_file_holds() -> None:
    """Pages that a damaged file lists many times yield their rows as often."""
    with sqlite3.connect(":memory:") as connection:
        rows = "SELECT x'0102' AS a, 5 AS b UNION ALL SELECT x'03', NULL"
        assert _table(connection.execute(rows), 5).num_rows == 2
        with pytest.raises(errors.VerificationError):
            _table(connection.execute(rows), 4)
    connection.close()


def test_batches_cross_as_bytes() -> None:
    batch = Batch(
        (control.EPOCH_CREATE, Statement(control.EPOCH_CLAIM, (1,), kind="write")), (0,), True
    )
    assert Batch.decode(batch.encode()) == batch
    strange = (
        Statement("DROP TABLE louver_ledger", kind="ddl"),
        Statement(control.CATALOG_VERSION.sql, kind="write"),
        Statement(control.CATALOG_VERSION.sql + " "),
        Statement(control.CATALOG_VERSION.sql, tables={"t": pa.table({"k": [1]})}),
    )
    for statement in strange:
        with pytest.raises(errors.OperationalError, match="statement"):
            Batch.decode(Batch((statement,)).encode())
    data = batch.encode()
    for cut in range(len(data)):
        with pytest.raises(errors.OperationalError):
            Batch.decode(data[:cut])
    answers = [Count(3), Count(0)]
    assert control.decode_answers(control.encode_answers([*answers]), 2) == answers
    with pytest.raises(errors.OperationalError):
        control.decode_answers(control.encode_answers([*answers]), 1)
