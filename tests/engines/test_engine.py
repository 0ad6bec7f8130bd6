"""The embedded server: its rules, its errors, its transactions, and what it refuses to touch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from louver import errors
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement
from louver.wire.tap import Tap

BIG = "SELECT i, i * 2 AS j FROM range(300000) r(i)"


def write(engine: Engine, sql: str, *constants: bytes | int | str | None) -> int:
    return engine.run(Statement(sql, constants, kind="write"))


def count(engine: Engine, table: str) -> object:
    return engine.value(Statement(f"SELECT count(*) FROM {table}"))


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    engine = DuckDBEngine(tmp_path / "cloud.duckdb")
    write(engine, "CREATE TABLE t (row_id BIGINT, c BLOB)")
    return engine


def test_it_is_an_engine(engine: DuckDBEngine) -> None:
    assert isinstance(engine, Engine)
    assert isinstance(Tap(engine), Engine)
    assert engine.backend == "duckdb"


def test_constants_are_bound_and_counted(engine: DuckDBEngine) -> None:
    assert write(engine, "INSERT INTO t VALUES ($1, $2), ($3, $2)", 1, b"\x00x", 2) == 2
    rows = engine.query(Statement("SELECT row_id FROM t WHERE c = $1 ORDER BY 1", (b"\x00x",)))
    assert rows.to_pydict() == {"row_id": [1, 2]}
    assert engine.traffic.rows_in >= 2
    assert engine.traffic.bytes_out > 0


def test_append_matches_columns_by_name(engine: DuckDBEngine) -> None:
    engine.append('"main"."t"', pa.table({"c": [b"a", None], "row_id": [7, 8]}))
    rows = engine.query(Statement("SELECT * FROM t ORDER BY row_id"))
    assert rows.to_pylist() == [{"row_id": 7, "c": b"a"}, {"row_id": 8, "c": None}]


def test_append_is_undone_with_its_transaction(engine: DuckDBEngine) -> None:
    engine.begin()
    engine.append("t", pa.table({"row_id": [1]}))
    assert engine.in_transaction
    engine.rollback()
    assert count(engine, "t") == 0
    engine.append("t", pa.table({"row_id": [1]}))
    assert count(engine, "t") == 1


def test_arrow_inputs_have_names(engine: DuckDBEngine) -> None:
    rows = pa.table({"k": [1, 2, 3]})
    statement = Statement("SELECT sum(k)::BIGINT AS s FROM given", tables={"given": rows})
    assert engine.query(statement).to_pydict() == {"s": [6]}
    with pytest.raises(errors.ProgrammingError):
        engine.query(Statement("SELECT * FROM given"))


def test_python_variables_and_files_are_no_tables(engine: DuckDBEngine, tmp_path: Path) -> None:
    secret = pa.table({"k": [1]})
    assert secret.num_rows == 1
    with pytest.raises(errors.ProgrammingError):
        engine.query(Statement("SELECT * FROM secret"))
    (tmp_path / "x.csv").write_text("a\n1\n")
    for sql in (f"SELECT * FROM '{tmp_path}/x.csv'", f"ATTACH '{tmp_path}/y.duckdb'"):
        with pytest.raises(errors.Error):
            engine.query(Statement(sql))
    with pytest.raises(errors.Error):
        engine.run(Statement("INSTALL httpfs", kind="ddl"))


def test_a_stream_outlives_other_statements(engine: DuckDBEngine) -> None:
    """DuckDB alone would end it silently after the first batch."""
    reader = engine.stream(Statement(BIG))
    first = reader.read_next_batch()
    assert count(engine, "t") == 0
    second = engine.stream(Statement(BIG))
    assert first.num_rows + reader.read_all().num_rows == 300_000
    assert second.read_all().num_rows == 300_000


def test_a_stream_reports_its_failure_late(engine: DuckDBEngine) -> None:
    value = "CASE WHEN i < 250000 THEN i ELSE CAST('x' || i AS INT) END"
    sql = f"SELECT {value} AS v FROM range(300000) r(i)"
    with pytest.raises((errors.Error, pa.ArrowException)):
        engine.stream(Statement(sql)).read_all()
    assert count(engine, "t") == 0


def test_errors_have_dbapi_classes(engine: DuckDBEngine) -> None:
    for sql, kind in (
        ("SELEC 1", errors.ProgrammingError),
        ("SELECT * FROM nowhere", errors.ProgrammingError),
        ("SELECT CAST('x' AS INT)", errors.DataError),
    ):
        with pytest.raises(kind):
            engine.query(Statement(sql))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("CAST(CASE WHEN i < 9000 THEN i::VARCHAR ELSE 'x' END AS INT)", "duckdb.conversion"),
        ("(100 + i // 5000)::TINYINT * 1::TINYINT * (1 + i // 9000)::TINYINT",
         "duckdb.out_of_range"),
        ("CASE WHEN i < 9000 THEN 'a' ELSE error('no') END", "duckdb.invalid_input"),
    ],
)  # fmt: skip
def test_what_fails_in_a_late_row_fails_as_in_an_early_one(
    engine: DuckDBEngine, value: str, code: str
) -> None:
    """Rows come after the statement has begun; their failure is DuckDB's all the same."""
    sql = f"SELECT {value} AS v FROM range(9500) r(i)"
    with pytest.raises(errors.Error) as late:
        engine.query(Statement(sql))
    with pytest.raises(errors.Error) as early:
        engine.run(Statement(f"CREATE TEMP TABLE made AS {sql}", kind="ddl"))
    assert late.value.code == early.value.code == code
    assert type(late.value) is type(early.value)
    assert count(engine, "t") == 0


def test_side_commits_stay_when_the_main_transaction_goes(engine: DuckDBEngine) -> None:
    side = engine.side()
    write(engine, "CREATE TABLE kept (k BIGINT PRIMARY KEY)")
    engine.begin()
    write(engine, "INSERT INTO t VALUES (1, NULL)")
    write(engine, "ALTER TABLE t ADD COLUMN d BLOB")
    write(side, "INSERT INTO kept VALUES (1)")
    write(side, "INSERT INTO kept VALUES (2)")
    assert count(side, "t") == 0
    engine.rollback()
    assert count(engine, "kept") == 2
    assert count(engine, "t") == 0
    write(engine, "CHECKPOINT")


def test_values_are_prepared_and_follow_changes(engine: DuckDBEngine) -> None:
    query = Statement("SELECT max(row_id) FROM t")
    assert engine.value(query) is None
    write(engine, "INSERT INTO t VALUES (5, NULL)")
    assert engine.value(query) == 5
    write(engine, "DROP TABLE t")
    with pytest.raises(errors.ProgrammingError):
        engine.value(query)
    write(engine, "CREATE TABLE t (row_id INT)")
    assert engine.value(query) is None


def test_interrupt_leaves_a_working_connection(engine: DuckDBEngine) -> None:
    sql = "SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE i * j % 7 = 1"
    timer = threading.Timer(0.3, engine.interrupt)
    timer.start()
    with pytest.raises(errors.OperationalError) as caught:
        engine.query(Statement(sql))
    assert caught.value.code == "interrupted"
    timer.join()
    assert count(engine, "t") == 0


@pytest.mark.usefixtures("signalled")
def test_ctrl_c_is_a_keyboard_interrupt(engine: DuckDBEngine) -> None:
    sql = "SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE i * j % 7 = 1"
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.query(Statement(sql))
    timer.join()
    assert count(engine, "t") == 0


def test_closing_lets_go_of_the_file(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.close()
    engine.close()
    with pytest.raises(errors.InterfaceError):
        engine.query(Statement("SELECT 1"))
    again = DuckDBEngine(tmp_path / "cloud.duckdb")
    assert not again.created
    assert count(again, "t") == 0


def run_child(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_a_file_in_use_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom louver import errors\n"
        "from louver.untrusted.engines.duckdb import DuckDBEngine\n"
        "try:\n    DuckDBEngine(sys.argv[1])\n"
        "except errors.OperationalError as error:\n    sys.exit(error.code)\n"
    )
    assert "database.locked" in run_child(code, str(tmp_path / "cloud.duckdb")).stderr


def test_no_database_is_an_operational_error(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"x" * 5000)
    for path in (tmp_path / "junk", tmp_path / "no" / "where", tmp_path):
        with pytest.raises(errors.OperationalError) as caught:
            DuckDBEngine(path)
        assert caught.value.code == "database.io"


def test_a_full_disk_is_named_and_undone(tmp_path: Path) -> None:
    """A file size limit acts like a full disk."""
    code = (
        "import resource, signal, sys\nfrom louver import errors\n"
        "from louver.untrusted.engines.duckdb import DuckDBEngine\n"
        "from louver.wire.messages import Statement\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "engine = DuckDBEngine(sys.argv[1])\n"
        "engine.run(Statement('CREATE TABLE t (m VARCHAR)', kind='ddl'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))\n"
        "sql = 'INSERT INTO t SELECT md5(i::VARCHAR) FROM range(1000000) r(i)'\n"
        "try:\n    engine.run(Statement(sql, kind='write'))\n"
        "except errors.OperationalError as error:\n    sys.exit(error.code)\n"
    )
    assert "disk.full" in run_child(code, str(tmp_path / "full.duckdb")).stderr
    assert count(DuckDBEngine(tmp_path / "full.duckdb"), "t") == 0


def test_a_killed_transaction_leaves_nothing(tmp_path: Path) -> None:
    """All of a transaction is there after kill -9, or none of it; side commits are there."""
    code = (
        "import os, signal, sys\nimport pyarrow as pa\n"
        "from louver.untrusted.engines.duckdb import DuckDBEngine\n"
        "from louver.wire.messages import Statement\n"
        "engine = DuckDBEngine(sys.argv[1])\n"
        "for sql in ('CREATE TABLE t (k BIGINT)', 'CREATE TABLE kept (k BIGINT)'):\n"
        "    engine.run(Statement(sql, kind='ddl'))\n"
        "side = engine.side()\n"
        "engine.append('t', pa.table({'k': [1]}))\n"
        "engine.begin()\n"
        "engine.append('t', pa.table({'k': list(range(500000))}))\n"
        "engine.run(Statement('CREATE TABLE u (k BIGINT)', kind='ddl'))\n"
        "side.append('kept', pa.table({'k': [1]}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "killed.duckdb"
    assert run_child(code, str(path)).returncode == -signal.SIGKILL
    engine = DuckDBEngine(path)
    assert (count(engine, "t"), count(engine, "kept")) == (1, 1)
    with pytest.raises(errors.ProgrammingError):
        count(engine, "u")


def test_memory_databases_are_apart() -> None:
    first, two = DuckDBEngine(), DuckDBEngine()
    write(first, "CREATE TABLE t (k INT)")
    assert first.address == ""
    assert first.created
    assert count(first.side(), "t") == 0
    with pytest.raises(errors.ProgrammingError):
        count(two, "t")


def test_the_server_process_holds_nothing_trusted() -> None:
    code = (
        "import sys\nimport louver.untrusted.engines.duckdb\nimport louver.wire.tap\n"
        "found = [name for name in sys.modules if name.startswith('louver.trusted')]\n"
        "sys.exit(str(found) if found else 0)\n"
    )
    done = run_child(code)
    assert done.returncode == 0, done.stderr


def test_a_tap_records_all_connections(engine: DuckDBEngine) -> None:
    tap = Tap(engine)
    tap.append("t", pa.table({"row_id": [1, 2], "c": [b"first", b"second"]}))
    tap.side().value(Statement("SELECT count(*) FROM t WHERE c = $1", (b"canary",)))
    list(tap.stream(Statement("SELECT * FROM t")))
    with pytest.raises(errors.ProgrammingError):
        tap.query(Statement("SELECT nonsense"))
    for needle in (b"second", b"canary", b"nonsense", b"row_id"):
        assert len(tap.search(needle)) >= 1
    assert tap.search(b"absent") == []
    assert len(tap.sent()) == 4
    assert tap.bytes_sent() > 100
    assert tap.bytes_received() > 100


def test_the_server_functions_compute_and_pass_nulls(engine: DuckDBEngine) -> None:
    """7 * 6 and a NULL, also on a side connection; a sum takes what is there."""
    write(engine, "INSERT INTO t VALUES (1, '\\x07'::BLOB), (2, NULL)")
    n = ((1 << 127) - 1).to_bytes(16, "big")
    sql = "SELECT sdb_mul(c, $1, $2) AS p FROM t ORDER BY row_id"
    for connection in (engine, engine.side()):
        rows = connection.query(Statement(sql, (b"\x06", n))).column("p").to_pylist()
        assert int.from_bytes(rows[0], "big") == 42
        assert rows[1] is None
    total = engine.value(Statement("SELECT sdb_sum(list(c), $1) FROM t", (n,)))
    assert isinstance(total, bytes)
    assert int.from_bytes(total, "big") == 7
