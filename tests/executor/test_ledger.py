"""The ledger: only what is new, before it is sent, and no way to cheat with it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.executor.ledger import MOST_CONDITIONS, Fact, Ledger
from louver.trusted.executor.reported_leakage import so_far
from louver.trusted.vault.pin import Keys, Pins
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire import control
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
    Ledger(engine.side(), keys, Pins(keys).pin("db", persistent=False)).record([SUM], "q")
    engine.close()
    _, again = opened(path, keys)
    assert again.facts() == [SUM]
    assert Pins(keys).pin("db").read().ledger_length == 1


def test_unknown_levels_are_refused(path: Path, keys: Keys) -> None:
    _, ledger = opened(path, keys)
    with pytest.raises(errors.InternalError):
        ledger.record([Fact("t", ("c",), "some", "k", "x")], "q")


def counted(condition: str, table: int = 7, name: str = "staff") -> Fact:
    return Fact(
        name, ("name",), "access", "rows", f"which rows of {name} a query read",
        ((table, 1, 0),), f"which rows of {{{table}}} a query read", True, condition,
    )  # fmt: skip


def test_each_further_condition_is_new_and_counted(path: Path, keys: Keys) -> None:
    engine, ledger = opened(path, keys)
    assert ledger.record([counted("a")], "q") == [counted("a")]
    assert ledger.new([counted("a")]) == []
    assert ledger.new([counted("b")]) == [counted("b")]
    # The fact is no other one, so there is nothing to warn of again; but it is written down.
    length = ledger.length
    assert ledger.record([counted("b")], "q") == []
    assert ledger.record([counted("b")], "q") == []
    assert ledger.length == length + 1
    assert ledger.conditions(counted("")) == 2
    engine.close()
    engine, again = opened(path, keys)
    assert again.conditions(counted("")) == 2
    assert again.new([counted("a"), SUM]) == [SUM]
    assert again.table().column("conditions").to_pylist() == [2]
    # Of what nobody can say that it was met, it is not said.
    assert again.new([counted("")]) == [counted("")]
    assert again.conditions(SUM) == 0


def test_the_count_is_never_too_low_and_costs_little(path: Path, keys: Keys) -> None:
    engine, ledger = opened(path, keys)
    for number in range(1_000):
        ledger.record([counted(str(number))], "q")
        assert ledger.conditions(counted("")) >= number + 1
        assert ledger.new([counted(str(number))]) == []
    assert ledger.length < MOST_CONDITIONS + 12
    engine.close()
    engine, again = opened(path, keys)
    assert 1_000 <= again.conditions(counted("")) <= 2_100
    before = again.length
    again.record([counted("one more")], "q")
    assert again.length == before + 1
    assert so_far(again.conditions(counted(""))).startswith(", at most ")
    assert so_far(1) == ", 1 condition so far"


def test_a_table_made_again_has_shown_nothing(path: Path, keys: Keys) -> None:
    _, ledger = opened(path, keys)
    ledger.record([counted("a", table=7)], "q")
    assert ledger.new([counted("a", table=8)]) == [counted("a", table=8)]
    # The names are those of today; they make no other fact.
    assert ledger.new([counted("a", table=7, name="people")]) == []


def sealed(keys: Keys, body: Mapping[str, object]) -> bytes:
    return keys.seal_blob("ledger", b"db:1", json.dumps(body).encode())


OLD = {
    "previous": "0" * 64,
    "when": "2025-01-31T12:00:00+00:00",
    "statement": "SELECT (whole)",
    "facts": [["staff", ["salary"], "order", "ord.open", "the server can order the rows"]],
}


def test_a_ledger_of_an_older_release_opens(path: Path, keys: Keys) -> None:
    engine, _ = opened(path, keys)
    engine.run(Statement(control.LEDGER_APPEND, (1, sealed(keys, OLD)), kind="write"))
    engine.close()
    engine, ledger = opened(path, keys)
    assert ledger.level("staff", "salary") == "order"
    assert [fact.text for fact in ledger.facts()] == ["the server can order the rows"]
    ledger.record([counted("a"), SUM], "q")
    engine.close()
    _, again = opened(path, keys)
    assert len(again.facts()) == 3


@pytest.mark.parametrize(
    "body",
    [
        OLD | {"format": 3},
        OLD | {"format": "x"},
        OLD | {"more": [[0, 1, "a"]]},
        OLD | {"facts": [["staff", ["salary"], "order", "ord.open", "text", [[1]], "", True, ""]]},
        OLD | {"facts": [["staff"]]},
        OLD | {"facts": [["staff", ["salary"], "none", "ord.open", "text"]]},
    ],
)
def test_a_record_that_nobody_wrote_is_refused(
    path: Path, keys: Keys, body: Mapping[str, object]
) -> None:
    engine, _ = opened(path, keys)
    engine.run(Statement(control.LEDGER_APPEND, (1, sealed(keys, body)), kind="write"))
    engine.close()
    with pytest.raises(errors.VerificationError) as caught:
        opened(path, keys)
    assert caught.value.code == "ledger.tampered"
