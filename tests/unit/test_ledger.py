"""The ledger: only what is new, before it is sent, and no way to cheat with it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.runtime.ledger import Fact, Ledger
from louver.trusted.vault.pin import Keys, Pins
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement
from louver.wire.tap import Tap

SUM = Fact("staff", ("salary",), "plaintext", "sdb.sum", "ratios of all values of salary")
SIZE = Fact("staff", ("name", "salary"), "size", "load", "how many rows staff has")
ROWS = Fact("staff", ("name",), "access", "rows", "which rows a query touched")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cloud.duckdb"


def opened(path: Path, keys: Keys) -> tuple[DuckDBEngine, Ledger]:
    engine = DuckDBEngine(path)
    return engine, Ledger(engine.side(), keys, Pins(keys).pin("db"))


def test_only_new_facts_are_recorded(path: Path, keys: Keys) -> None:
    engine, ledger = opened(path, keys)
    assert ledger.new([SUM, SIZE, SUM]) == [SUM, SIZE]
    assert ledger.record([SUM, SIZE], "SELECT sum(salary) FROM staff") == [SUM, SIZE]
    assert ledger.record([SIZE, ROWS, ROWS], "SELECT ?") == [ROWS]
    assert ledger.facts() == [SUM, SIZE, ROWS]
    assert (ledger.level("STAFF", "Salary"), ledger.level("staff", "name")) == (
        "plaintext",
        "access",
    )
    assert ledger.level("staff", "age") == ""
    table = ledger.table()
    assert table.column("sequence").to_pylist() == [1, 1, 2]
    assert table.column("statement")[2].as_py() == "SELECT ?"
    engine.close()
    _, again = opened(path, keys)
    assert again.facts() == ledger.facts()
    assert again.head == ledger.head
    assert again.table().equals(table)
    assert again.level("staff", "salary") == "plaintext"


def test_known_facts_cost_no_traffic(path: Path, keys: Keys) -> None:
    tap = Tap(DuckDBEngine(path))
    ledger = Ledger(tap, keys, Pins(keys).pin("db"))
    ledger.record([SUM, ROWS], "q")
    before = len(tap.records)
    assert ledger.record([ROWS, SUM], "another") == []
    assert len(tap.records) == before


def test_the_server_reads_no_fact(path: Path, keys: Keys) -> None:
    tap = Tap(DuckDBEngine(path))
    Ledger(tap, keys, Pins(keys).pin("db")).record([SUM], "SELECT canary")
    for needle in (b"salary", b"staff", b"canary"):
        assert tap.search(needle) == []


def test_records_stay_when_the_user_rolls_back(path: Path, keys: Keys) -> None:
    engine, ledger = opened(path, keys)
    engine.run(Statement("CREATE TABLE t (k INT)", kind="ddl"))
    engine.begin()
    engine.run(Statement("INSERT INTO t VALUES (1)", kind="write"))
    ledger.record([SUM], "q")
    engine.rollback()
    assert Ledger(engine.side(), keys, Pins(keys).pin("db")).facts() == [SUM]


def test_several_clients_make_one_chain(path: Path, keys: Keys) -> None:
    engine, _ = opened(path, keys)
    pin = Pins(keys).pin("db")
    ledgers = [Ledger(engine.side(), keys, pin) for _ in range(3)]

    def work(number: int) -> None:
        for step in range(5):
            own = Fact("t", (f"c{number}",), "order", "k", str(step))
            ledgers[number].record([own, SUM], "q")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    merged = Ledger(engine.side(), keys, pin)
    assert len(merged.facts()) == 16
    for ledger in ledgers:
        ledger.refresh()
        assert ledger.head == merged.head


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DELETE FROM louver_ledger WHERE sequence = 1", "ledger.tampered"),
        ("DELETE FROM louver_ledger WHERE sequence = 3", "ledger.rollback"),
        ("DELETE FROM louver_ledger", "ledger.rollback"),
        ("DROP TABLE louver_ledger", "ledger.rollback"),
        ("UPDATE louver_ledger SET body = body || '0'::BLOB WHERE sequence = 2", "ledger.tampered"),
        ("UPDATE louver_ledger SET sequence = 4 - sequence", "ledger.tampered"),
        ("UPDATE louver_ledger SET sequence = sequence + 1", "ledger.tampered"),
        (
            "INSERT INTO louver_ledger SELECT 4, body FROM louver_ledger WHERE sequence = 3",
            "ledger.tampered",
        ),
    ],
)
def test_cheating_is_found(path: Path, keys: Keys, sql: str, code: str) -> None:
    engine, ledger = opened(path, keys)
    for fact in (SUM, SIZE, ROWS):
        ledger.record([fact], "q")
    # A key column cannot be permuted in place, so the cheat works on a copy.
    for step in (
        "CREATE TABLE copied AS FROM louver_ledger",
        "DROP TABLE louver_ledger",
        "ALTER TABLE copied RENAME TO louver_ledger",
        sql,
    ):
        engine.run(Statement(step, kind="write"))
    engine.close()
    with pytest.raises(errors.VerificationError) as caught:
        opened(path, keys)
    assert caught.value.code == code


def test_another_history_is_found(
    path: Path, tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(path, keys)[0].close()
    shutil.copy(path, tmp_path / "fork")
    engine, ledger = opened(path, keys)
    ledger.record([SUM], "q")
    engine.close()
    shutil.copy(tmp_path / "fork", path)
    with monkeypatch.context() as patched:
        patched.setenv("LOUVER_STATE_DIR", str(tmp_path / "elsewhere"))
        engine, ledger = opened(path, keys)
        ledger.record([SUM], "q")
        ledger.record([ROWS], "q")
        engine.close()
    with pytest.raises(errors.VerificationError) as caught:
        opened(path, keys)
    assert caught.value.code == "ledger.rollback"


def test_a_record_that_cannot_be_written_is_an_error(path: Path, keys: Keys) -> None:
    engine, ledger = opened(path, keys)
    engine.run(Statement("DROP TABLE louver_ledger", kind="ddl"))
    with pytest.raises(errors.OperationalError) as caught:
        ledger.record([SUM], "q")
    assert caught.value.code == "ledger.write"
    assert ledger.facts() == []


def test_a_record_that_was_not_pinned_is_accepted(path: Path, keys: Keys) -> None:
    engine = DuckDBEngine(path)
    Ledger(engine.side(), keys, Pins(keys).pin("db", kept=False)).record([SUM], "q")
    engine.close()
    _, again = opened(path, keys)
    assert again.facts() == [SUM]
    assert Pins(keys).pin("db").read().ledger_length == 1


def test_unknown_levels_are_refused(path: Path, keys: Keys) -> None:
    _, ledger = opened(path, keys)
    with pytest.raises(errors.InternalError):
        ledger.record([Fact("t", ("c",), "some", "k", "x")], "q")
