"""PostgreSQL as an engine: its transactions and streams, and what happens when the server goes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from louver import errors
from louver.untrusted.engines.engine import Engine
from louver.untrusted.engines.postgres import PostgresEngine, open_url
from louver.wire import control
from louver.wire.messages import Statement
from louver.wire.tap import Tap
from tests.engines import suite
from tests.postgres import servers

BIG = "SELECT i::bigint AS i, i * 2::bigint AS j FROM generate_series(1, 60000) AS r(i)"
SLOW = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"


def write(engine: Engine, sql: str, *constants: bytes | int | str | None) -> int:
    return engine.run(Statement(sql, constants, kind="write"))


def define(engine: Engine, sql: str) -> None:
    engine.run(Statement(sql, kind="ddl"))


def count(engine: Engine, table: str) -> object:
    return engine.value(Statement(f"SELECT count(*) FROM {table}"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return suite.url_of("postgresql", tmp_path / "engine")


@pytest.fixture
def engine(url: str) -> Iterator[PostgresEngine]:
    engine = open_url(url)
    define(engine, "CREATE TABLE t (row_id bigint UNIQUE, c bytea)")
    yield engine
    engine.close()


def end_sessions(url: str) -> None:
    """Have the server end all sessions of a database."""
    admin = open_url(url)
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    admin.query(Statement(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))
    admin.close()


def test_it_is_an_engine(engine: PostgresEngine) -> None:
    assert isinstance(engine, Engine)
    assert isinstance(Tap(engine), Engine)


def test_constants_are_bound_and_counted(engine: PostgresEngine) -> None:
    assert write(engine, "INSERT INTO t VALUES ($1, $2), ($3, $2)", 1, b"\x00x", 2) == 2
    rows = engine.query(Statement("SELECT row_id FROM t WHERE c = $1 ORDER BY 1", (b"\x00x",)))
    assert rows.to_pydict() == {"row_id": [1, 2]}
    assert engine.traffic.rows_in >= 2
    assert engine.traffic.bytes_out > 0


@pytest.mark.parametrize("rows", [0, 2, 5_000])
def test_append_matches_columns_by_name(engine: PostgresEngine, rows: int) -> None:
    values = [None if i % 3 else bytes([i % 256]) for i in range(rows)]
    table = pa.table({"c": pa.array(values, pa.binary()), "row_id": pa.array(range(rows), "int64")})
    engine.append('"public"."t"', table)
    stored = engine.query(Statement("SELECT row_id, c FROM t ORDER BY row_id"))
    assert stored.column("c").to_pylist() == values
    write(engine, "DELETE FROM t")
    engine.append("t", table.to_reader(100))
    assert count(engine, "t") == rows


def test_what_making_rows_raises_comes_out_and_nothing_is_written(engine: PostgresEngine) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"row_id": [1]})
        raise LookupError("mine")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("row_id", pa.int64())]), batches())
    with pytest.raises(LookupError, match="mine"):
        engine.append("t", reader)
    assert count(engine, "t") == 0


def test_arrow_inputs_have_names(engine: PostgresEngine) -> None:
    wide = pa.array([b"\x01" * 16, None, b"\xff" * 16], pa.binary(16))
    given = pa.table({
        "k": [1, 2, None], "u": pa.ExtensionArray.from_storage(pa.uuid(), wide),
        "w": pa.array([1, 2**64 - 1, None], pa.uint64()), "s": ["a", "ü", None],
    })  # fmt: skip
    sql = "SELECT k, u, w, s FROM given WHERE k > $1 OR k IS NULL"
    rows = engine.query(Statement(sql, (1,), tables={"given": given}))
    assert rows.column("w").to_pylist() == [-1, None]
    assert rows.column("u").to_pylist() == given.column("u").to_pylist()[1:]
    with pytest.raises(errors.ProgrammingError):
        engine.query(Statement("SELECT * FROM given"))


def test_a_stream_outlives_other_statements(engine: PostgresEngine) -> None:
    for within in (False, True):
        if within:
            engine.begin()
        reader = engine.stream(Statement(BIG))
        first = reader.read_next_batch()
        assert count(engine, "t") == 0
        second = engine.stream(Statement(BIG))
        assert first.num_rows + reader.read_all().num_rows == 60_000
        assert second.read_all().num_rows == 60_000
        if within:
            define(engine, "DROP TABLE t")
            engine.rollback()
        assert not engine.in_transaction


def test_a_stream_reports_its_failure_late(engine: PostgresEngine) -> None:
    sql = "SELECT 1 / (50000 - i) AS v FROM generate_series(1, 60000) AS r(i)"
    with pytest.raises((errors.Error, pa.ArrowException)):
        engine.stream(Statement(sql)).read_all()
    assert count(engine, "t") == 0


def test_transactions_are_undone_and_kept(engine: PostgresEngine) -> None:
    side = engine.side()
    engine.begin()
    write(engine, "INSERT INTO t VALUES (1, NULL)")
    define(engine, "ALTER TABLE t ADD COLUMN d bytea")
    write(side, "CREATE TABLE kept (k bigint)")
    engine.rollback()
    assert (count(engine, "t"), count(side, "kept")) == (0, 0)
    engine.begin()
    engine.commit()
    engine.begin()
    write(engine, "INSERT INTO t VALUES (1, NULL)")
    engine.commit()
    assert count(side, "t") == 1


def test_commit_of_a_failed_transaction_is_an_error(engine: PostgresEngine) -> None:
    engine.begin()
    write(engine, "INSERT INTO t VALUES (1, NULL)")
    with pytest.raises(errors.Error):
        engine.query(Statement("SELECT 1 / 0"))
    with pytest.raises(errors.Error) as caught:
        engine.query(Statement("SELECT 1"))
    assert caught.value.code == "transaction.aborted"
    with pytest.raises(errors.Error) as caught:
        engine.commit()
    assert caught.value.code == "server.conflict"
    assert count(engine, "t") == 0


def test_who_comes_later_has_lost_the_race(engine: PostgresEngine) -> None:
    write(engine, "INSERT INTO t VALUES (1, NULL), (2, NULL)")
    other = engine.side()
    engine.begin()
    assert count(engine, "t") == 2
    write(other, "UPDATE t SET c = 'x' WHERE row_id = 1")
    write(other, "INSERT INTO t VALUES (3, NULL)")
    assert count(engine, "t") == 2
    with pytest.raises(errors.Error) as caught:
        write(engine, "UPDATE t SET c = 'y' WHERE row_id = 1")
    assert caught.value.code == "server.conflict"
    assert engine.lost_race(caught.value)
    engine.rollback()
    with pytest.raises(errors.IntegrityError) as caught:
        write(engine, "INSERT INTO t VALUES (3, NULL)")
    assert engine.lost_race(caught.value)


def test_who_replaces_a_table_waits_for_who_reads(engine: PostgresEngine) -> None:
    """An older snapshot would see the new table empty."""
    for sql in (control.CATALOG_CREATE, control.LEDGER_CREATE, control.EPOCH_CREATE):
        engine.run(sql)
    engine.run(control.WRITERS_CREATE)
    write(engine, "INSERT INTO t VALUES (1, NULL)")
    reader = engine.side()
    assert control.CATALOG_TABLE in reader.table_names()
    reader.begin()
    assert reader.value(control.CATALOG_VERSION) is None
    done: list[str] = []

    def replace() -> None:
        engine.begin()
        define(engine, "DROP TABLE t")
        define(engine, "CREATE TABLE t AS SELECT 7::bigint AS row_id")
        engine.commit()
        done.append("replaced")

    worker = threading.Thread(target=replace)
    worker.start()
    worker.join(0.3)
    assert not done
    assert count(reader, "t") == 1
    reader.commit()
    worker.join()
    assert done
    assert reader.value(Statement("SELECT row_id FROM t")) == 7
    reader.close()


def test_a_lost_connection_is_opened_anew_where_nothing_is_lost(
    engine: PostgresEngine, url: str
) -> None:
    write(engine, "INSERT INTO t VALUES (1, NULL)")
    end_sessions(url)
    assert count(engine, "t") == 1
    end_sessions(url)
    engine.begin()
    assert count(engine, "t") == 1
    write(engine, "INSERT INTO t VALUES (2, NULL)")
    end_sessions(url)
    with pytest.raises(errors.OperationalError) as caught:
        write(engine, "INSERT INTO t VALUES (3, NULL)")
    assert caught.value.code == "server.lost"
    engine.rollback()
    assert count(engine, "t") == 1


def test_a_commit_that_nobody_heard_of_says_so(engine: PostgresEngine, url: str) -> None:
    engine.begin()
    write(engine, "INSERT INTO t VALUES (2, NULL)")
    end_sessions(url)
    with pytest.raises(errors.OperationalError) as caught:
        engine.commit()
    assert caught.value.code in ("server.lost", "server.unsure")
    assert count(engine, "t") == 0


def test_interrupt_leaves_a_working_connection(engine: PostgresEngine) -> None:
    timer = threading.Timer(0.3, engine.interrupt)
    timer.start()
    with pytest.raises(errors.OperationalError) as caught:
        engine.query(Statement(SLOW))
    assert caught.value.code == "interrupted"
    timer.join()
    assert count(engine, "t") == 0


@pytest.mark.usefixtures("signalled")
def test_ctrl_c_is_a_keyboard_interrupt(engine: PostgresEngine) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.query(Statement(SLOW))
    timer.join()
    assert count(engine, "t") == 0


def test_closing(engine: PostgresEngine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(errors.InterfaceError):
        engine.query(Statement("SELECT 1"))


def test_errors_have_classes_and_codes(engine: PostgresEngine, url: str) -> None:
    for sql, code in (
        ("SELEC 1", "server.statement"), ("SELECT * FROM nowhere", "server.schema"),
        ("SELECT 'x'::int", "server.value"), ("SELECT nothing FROM t", "server.schema"),
        ("CREATE TABLE t (a int)", "server.exists"),
    ):  # fmt: skip
        with pytest.raises(errors.DatabaseError) as caught:
            engine.query(Statement(sql))
        assert caught.value.code == code, sql
        # Clients know by it what is wrong with a value.
        assert caught.value.sqlstate == ("22P02" if code == "server.value" else ""), sql
    write(engine, "CREATE ROLE weak LOGIN")
    weak = open_url(url.replace(f"user={servers.USER}", "user=weak"))
    with pytest.raises(errors.OperationalError) as caught:
        count(weak, "t")
    assert caught.value.code == "server.denied"
    weak.close()
    write(engine, "DROP ROLE weak")
    for changed in (url.replace("t_", "no_"), url.replace("user=", "user=no_")):
        with pytest.raises(errors.OperationalError) as caught:
            count(open_url(changed), "t")
        assert caught.value.code == "server.denied"
    with pytest.raises(errors.OperationalError) as caught:
        count(open_url("postgresql://louver@127.0.0.1:1/x"), "t")
    assert caught.value.code == "server.lost"
