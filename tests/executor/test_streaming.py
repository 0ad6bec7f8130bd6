"""A load is one stream into one statement: bounded memory, and errors that are themselves."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor.load import load
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines import memory
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement
from louver.wire.tap import Tap

SCHEMA = pa.schema([("k", pa.int64())])
ROWS = 5_000
TIMES = 8


def batches(count: int, stop: BaseException | None = None) -> pa.RecordBatchReader:
    """So many batches of rows, and then an error."""

    def stream() -> Iterator[pa.RecordBatch]:
        for number in range(count):
            keys = pa.array(range(number * ROWS, (number + 1) * ROWS))
            yield pa.record_batch([keys], schema=SCHEMA)
        if stop is not None:
            raise stop

    return pa.RecordBatchReader.from_batches(SCHEMA, stream())


def count(engine: DuckDBEngine) -> object:
    return engine.value(Statement("SELECT count(*) FROM t"))


@pytest.fixture(params=["memory", "file"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine(tmp_path / "db" if request.param == "file" else ":memory:")
    engine.run(Statement("CREATE TABLE t (k BIGINT PRIMARY KEY)", kind="ddl"))
    yield engine
    engine.close()


def limit_of(engine: DuckDBEngine) -> object:
    return engine.query(Statement("SELECT current_setting('memory_limit')")).column(0)[0].as_py()


def test_a_stream_is_appended_whole(engine: DuckDBEngine) -> None:
    before = limit_of(engine)
    engine.append("t", batches(0))
    engine.begin()
    engine.append("t", batches(20))
    engine.rollback()
    assert count(engine) == 0
    engine.append("t", batches(20))
    assert count(engine) == 20 * ROWS
    assert engine.traffic.rows_out == 40 * ROWS
    assert limit_of(engine) == before


@pytest.mark.parametrize(
    "stop", [errors.make("catalog.conflict"), KeyboardInterrupt(), RuntimeError("x"), OSError("y"),
             pa.ArrowInvalid("z"), GeneratorExit()]
)  # fmt: skip
def test_what_making_the_rows_raises_comes_out_as_it_is(
    engine: DuckDBEngine, stop: BaseException
) -> None:
    for number in range(TIMES):
        with pytest.raises(type(stop)) as caught:
            engine.append("t", batches(number, stop))
        assert str(caught.value) == str(stop)
        assert count(engine) == 0
    engine.append("t", batches(2))
    assert count(engine) == 2 * ROWS


def test_the_server_fails_in_mid_stream(engine: DuckDBEngine) -> None:
    twice = pa.Table.from_batches(batches(20)).append_column("n", pa.nulls(20 * ROWS, pa.int32()))
    for _ in range(TIMES):
        doubled = pa.concat_tables([twice, twice]).select(["k"])
        with pytest.raises(errors.IntegrityError):
            engine.append("t", doubled.to_reader(1000))
        assert count(engine) == 0


@pytest.mark.usefixtures("signalled")
def test_ctrl_c_while_the_rows_are_taken(engine: DuckDBEngine) -> None:
    for point in range(0, 40, 10):

        def stream(point: int = point) -> Iterator[pa.RecordBatch]:
            timer = threading.Timer(0.002, os.kill, (os.getpid(), signal.SIGINT))
            for number, batch in enumerate(batches(60)):
                if number == point:
                    timer.start()
                yield batch
            # One that came late would hit whatever follows.
            timer.join()
            while True:
                # The signal may have come just before this waits for it.
                time.sleep(0.2)
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            engine.append("t", pa.RecordBatchReader.from_batches(SCHEMA, stream()))
        assert count(engine) == 0


def test_a_tap_records_a_stream(engine: DuckDBEngine) -> None:
    tap = Tap(engine)
    tap.append("t", batches(3))
    assert sum(getattr(m, "rows", SCHEMA.empty_table()).num_rows for m in tap.sent()) == 3 * ROWS
    assert len(tap.received()) == 1


@pytest.fixture
def session(tmp_path: Path, key_file: Path) -> Iterator[Session]:
    session = Session(DuckDBEngine(tmp_path / "db"), KeyRing.open(key_file), Policy())
    session.execute("CREATE TABLE t (k BIGINT ENC PRIMARY KEY, b TEXT ENC DEFAULT 'x')")
    yield session
    session.close()


def _state(session: Session) -> tuple[object, ...]:
    table = session.context.catalog.table("main", "t")
    assert table is not None
    row = session.execute("SELECT count(*), max(k), min(k) FROM t").rows
    assert row is not None
    bounds = [(c.minimum, c.maximum) for c in table.columns]
    return (session.context.catalog.version, session.context.catalog.stamp, table.row_count, bounds,
            session.context.ledger.facts(), row.to_pylist())  # fmt: skip


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), ValueError("a bad source")])
def test_a_failure_in_mid_stream_changes_nothing(
    session: Session, stop: BaseException, inside: bool
) -> None:
    load(session.context, "t", pa.table({"k": [-1]}))
    before = _state(session)

    def tell(done: int, total: int | None) -> None:
        if done > 3 * ROWS:
            raise stop

    attempts: list[tuple[object, Callable[[int, int | None], None] | None, type[BaseException]]]
    bad = pa.table({"k": [*map(str, range(3 * ROWS)), "no number"]})
    attempts = [
        (batches(10), tell, type(stop)),
        (bad.to_reader(ROWS), None, errors.DataError),
        (pa.Table.from_batches([*batches(3), *batches(1)]).to_reader(ROWS), None,
         errors.IntegrityError),
    ]  # fmt: skip
    for source, progress, kind in attempts:
        if inside:
            session.execute("BEGIN")
        with pytest.raises(kind):
            load(session.context, "t", source, progress)
        if inside:
            session.execute("ROLLBACK")
        assert _state(session) == before
    load(session.context, "t", batches(4))
    reopened = Session(DuckDBEngine(session.context.engine.address.removeprefix("duckdb:")),
                       session.context.keyring, Policy())  # fmt: skip
    assert _state(reopened)[2:] == _state(session)[2:]
    reopened.close()


MEASURE = """
import resource, sys
import pyarrow as pa
from louver.trusted.executor.load import load
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
key, path, batches = sys.argv[1:]
session = Session(DuckDBEngine(path, threads=2), KeyRing.open(key), Policy())
session.execute("CREATE TABLE t (b TEXT ENC)")
batch = pa.record_batch({"b": ["x" * 200] * 50_000})
def repeated():
    for _ in range(int(batches)):
        yield batch
load(session.context, "t", pa.RecordBatchReader.from_batches(batch.schema, repeated()))
session.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.alone
def test_memory_does_not_grow_with_the_table(tmp_path: Path, key_file: Path) -> None:
    """240 MB more rows take no more than a fraction of that. Behind 160 MB all buffers have their
    size, give or take 30 MB. Linux hands its parent's ru_maxrss on to a child that is started by
    exec, hence the shell between.
    """
    peaks = []
    for number in (16, 40):
        done = subprocess.run(
            ["/bin/sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", MEASURE,
             str(key_file), str(tmp_path / str(number)), str(number)],
            capture_output=True, text=True, timeout=600, check=True, env=os.environ,
        )  # fmt: skip
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 90, peaks


def test_the_servers_memory_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limits = {}
    for limit in ("70MiB", "", "none"):
        monkeypatch.setenv(memory.VARIABLE, limit)
        engine = DuckDBEngine(tmp_path / f"db{limit}", threads=1)
        limits[limit] = limit_of(engine)
        engine.close()
    assert limits["70MiB"] == "70.0 MiB"
    assert limits[""] != limits["none"]
    monkeypatch.setenv(memory.VARIABLE, "plenty")
    with pytest.raises(errors.Error):
        DuckDBEngine(tmp_path / "other")


def test_a_load_has_room_for_the_indexes_of_all_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DuckDB holds unique indexes whole, whichever table a load goes to."""
    monkeypatch.setattr(memory, "_LOAD", 24 << 20)
    monkeypatch.setattr(memory, "_LOAD_PER_THREAD", 0)
    monkeypatch.setattr(memory, "_LOAD_PER_COLUMN", 0)
    engine = DuckDBEngine(tmp_path / "db", threads=1)
    before = limit_of(engine)
    for number in range(2):
        sql = f"CREATE TABLE t{number} (k UUID UNIQUE)"
        engine.run(Statement(sql, kind="ddl"))
        rows = pa.table({"k": pa.array([secrets.token_bytes(16) for _ in range(300_000)])})
        stream = pa.RecordBatchReader.from_batches(
            pa.schema([("k", pa.uuid())]),
            (pa.record_batch([b.column(0).cast(pa.binary(16)).cast(pa.uuid())], names=["k"])
             for b in rows.to_batches(50_000)),
        )  # fmt: skip
        engine.append(f"t{number}", stream)
    assert limit_of(engine) == before
    engine.close()


def test_the_last_of_several_loads_gives_the_memory_back(tmp_path: Path) -> None:
    engine = DuckDBEngine(tmp_path / "db", threads=1)
    before, limits = limit_of(engine), []
    engine.run(Statement("CREATE TABLE t (k BIGINT)", kind="ddl"))
    pool = memory.small_pool(engine.address)
    with pool.lowered(engine._connection, '"main"."t"', 1) as first:
        first(1_000)
        limits.append(limit_of(engine))
        with pool.lowered(engine._connection, '"main"."t"', 1) as second:
            second(1_000)
            limits.append(limit_of(engine))
        limits.append(limit_of(engine))
    assert limits == ["128.0 MiB", "256.0 MiB", "256.0 MiB"]
    assert limit_of(engine) == before
    engine.close()


def test_what_does_not_fit_is_brought_to_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(memory.VARIABLE, "70MiB")
    engine = DuckDBEngine(tmp_path / "db", threads=1)
    text = "repeat('x', 100) || hash(range)::VARCHAR AS v"
    sql = f"CREATE TABLE big AS SELECT range AS k, {text} FROM range(1000000)"
    engine.run(Statement(sql, kind="ddl"))
    ordered = "SELECT count(*) FROM (SELECT k FROM big ORDER BY v, k LIMIT 999990 OFFSET 10)"
    assert engine.value(Statement(ordered)) == 999_990
    engine.close()
