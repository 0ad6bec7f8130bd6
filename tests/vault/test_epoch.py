"""Row ids: fresh for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor import row_ids as epochs
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.epochs import COUNTER_BITS, LIMIT
from louver.trusted.vault.pin import Keys, Pins
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(tmp_path / "cloud.duckdb")


def test_ids_are_consecutive_and_never_repeat(engine: DuckDBEngine, keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    ids = RowIds(engine.side(), pin)
    first, second = ids.take(3, Catalog("db")), ids.take(100, Catalog("db"))
    assert first.type == pa.int64()
    base = 1 << COUNTER_BITS
    assert first.to_pylist() == [base, base + 1, base + 2]
    assert second.to_pylist() == list(range(base + 3, base + 103))
    assert ids.take(0, Catalog("db")).to_pylist() == []
    again = RowIds(engine.side(), pin)
    assert again.take(1, Catalog("db")).to_pylist() == [2 << COUNTER_BITS]


def test_a_session_that_does_not_write_claims_nothing(engine: DuckDBEngine, keys: Keys) -> None:
    RowIds(engine.side(), Pins(keys).pin("db"))
    with pytest.raises(errors.ProgrammingError):
        engine.query(Statement("SELECT * FROM louver_epoch"))


def test_a_claim_outlives_the_users_rollback(engine: DuckDBEngine, keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    engine.run(Statement("CREATE TABLE t (row_id BIGINT)", kind="ddl"))
    engine.begin()
    lost = RowIds(engine.side(), pin).take(5, Catalog("db"))
    engine.append("t", pa.table({"row_id": lost}))
    engine.rollback()
    fresh = RowIds(engine.side(), pin).take(5, Catalog("db"))
    assert set(lost.to_pylist()).isdisjoint(fresh.to_pylist())


@pytest.mark.parametrize("sql", ["DELETE FROM louver_epoch", "DROP TABLE louver_epoch"])
def test_a_server_that_goes_back_gets_no_epoch_again(
    engine: DuckDBEngine, keys: Keys, sql: str
) -> None:
    pin = Pins(keys).pin("db")
    RowIds(engine.side(), pin).claim(Catalog("db"))
    assert RowIds(engine.side(), pin).claim(Catalog("db")) == 2
    engine.run(Statement(sql, kind="write"))
    assert RowIds(engine.side(), pin).claim(Catalog("db")) == 3


def test_sessions_race_without_sharing(engine: DuckDBEngine, keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    claimed: list[int] = []

    def work(side: DuckDBEngine) -> None:
        for _ in range(5):
            claimed.append(RowIds(side, pin).claim(Catalog("db")))

    threads = [threading.Thread(target=work, args=(engine.side(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 20


def test_a_used_up_epoch_is_followed_by_another(
    engine: DuckDBEngine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "_ROWS_PER_EPOCH", 10)
    ids = RowIds(engine.side(), Pins(keys).pin("db"))
    assert ids.take(8, Catalog("db"))[0].as_py() == 1 << COUNTER_BITS
    assert ids.take(3, Catalog("db"))[0].as_py() == 2 << COUNTER_BITS
    with pytest.raises(errors.OperationalError):
        ids.take(11, Catalog("db"))


def test_no_epoch_beyond_the_last(engine: DuckDBEngine, keys: Keys) -> None:
    """Also a server that lies upwards ends in a refusal, not in a wrong id."""
    pin = Pins(keys).pin("db")
    RowIds(engine.side(), pin).claim(Catalog("db"))
    last = Statement("INSERT INTO louver_epoch VALUES ($1)", (LIMIT - 1,), kind="write")
    engine.run(last)
    with pytest.raises(errors.OperationalError) as caught:
        RowIds(engine.side(), pin).claim(Catalog("db"))
    assert caught.value.code == "rows.exhausted"
