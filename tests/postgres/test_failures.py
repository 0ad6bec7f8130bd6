"""What happens to a server, and what clients are told: it restarts, it is replaced by its standby,
its disk is full, a pooler stands in front of it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver import errors
from louver.untrusted.engines.postgres import open_url
from louver.wire.messages import Statement
from tests.postgres import servers
from tests.postgres.front import Front, running

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
WHEEL = servers.binaries()["wheel"]
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR ENC MAY REVEAL equality, n INTEGER ENC)"


def administer(server: servers.Server, sql: str, database: str = "postgres") -> None:
    engine = open_url(server.url(database))
    engine.run(Statement(sql, kind="write"))
    engine.close()


def batches(rows: int, between: Any = None) -> pa.RecordBatchReader:
    """Rows for the table; ``between`` is called in the middle of them."""

    def rows_of_batches() -> Iterator[pa.RecordBatch]:
        size = 5_000
        for first in range(0, rows, size):
            if between is not None and first == rows // 2 // size * size:
                between()
            numbers = range(first, min(first + size, rows))
            texts = [f"text {number} {'x' * 200}" for number in numbers]
            yield pa.record_batch(
                {"id": pa.array(numbers, pa.int32()), "s": texts,
                 "n": pa.array(numbers, pa.int32())}
            )  # fmt: skip

    schema = pa.schema([("id", pa.int32()), ("s", pa.string()), ("n", pa.int32())])
    return pa.RecordBatchReader.from_batches(schema, rows_of_batches())


# ---------------------------------------------------------------------------- it goes


def test_a_server_that_restarts_in_the_middle_of_a_load(key_file: Path) -> None:
    with (
        servers.started(WHEEL) as server,
        servers.connect(server.url(), keys=key_file) as con,
        # A server ends with the thread that has started it; batches are read on one of their own.
        ThreadPoolExecutor(1) as pool,
    ):
        con.execute(TABLE)
        con.execute("INSERT INTO t VALUES (-1, 'before', 1)")
        restarts = []

        def restart() -> None:
            restarts.append(pool.submit(servers.restarted, server))
            restarts[0].result()

        with pytest.raises(errors.OperationalError) as caught:
            con.load("t", batches(40_000, restart))
        restarts[0].result()
        assert caught.value.code in ("server.lost", "server.unsure"), caught.value
        assert con.execute("SELECT id FROM t").fetchall() == [(-1,)]
        con.load("t", batches(10_000))
        assert con.execute("SELECT count(*), sum(n) FROM t").fetchall() == [(10_001, 49_995_001)]
    with pytest.raises(errors.OperationalError) as caught:
        servers.connect(server.url(), keys=key_file)
    assert caught.value.code == "server.lost"


def test_a_load_asks_for_batches_on_its_own_thread(key_file: Path) -> None:
    """A source may belong to that, like a cursor of SQLite's."""
    threads = set[int]()
    with servers.started(WHEEL) as server, servers.connect(server.url(), keys=key_file) as con:
        con.execute(TABLE)
        rows = batches(40_000, lambda: threads.add(threading.get_ident()))
        assert con.load("t", rows) == 40_000
    assert threads == {threading.get_ident()}


def durable(data: Path) -> dict[str, str]:
    return {"synchronous_commit": "on"}


def test_a_server_that_is_killed_keeps_what_it_said_it_kept(key_file: Path) -> None:
    with (
        servers.started(WHEEL, durable) as server,
        servers.connect(server.url(), keys=key_file) as con,
    ):
        con.execute(TABLE)
        con.execute("INSERT INTO t VALUES (1, 'kept', 1)")
        con.execute("BEGIN")
        con.execute("INSERT INTO t VALUES (2, 'undone', 2)")
        servers.restarted(server, signal.SIGQUIT)
        with pytest.raises(errors.OperationalError) as caught:
            con.execute("COMMIT")
        assert caught.value.code in ("server.lost", "server.unsure")
        assert con.execute("SELECT s FROM t").fetchall() == [("kept",)]


def test_a_server_that_loses_what_it_said_it_kept_is_found_out(key_file: Path) -> None:
    with servers.started(WHEEL) as server, servers.connect(server.url(), keys=key_file) as con:
        administer(server, "ALTER SYSTEM SET wal_writer_delay = '10s'")
        administer(server, "SELECT pg_reload_conf()")
        administer(server, "CREATE TABLE other (i integer)")
        con.execute(TABLE)
        servers.restarted(server, signal.SIGQUIT)
        with pytest.raises(errors.Error) as caught:
            con.execute("SELECT * FROM t")
        assert caught.value.code in ("catalog.rollback", "catalog.gone"), caught.value


# ---------------------------------------------------------------------------- its standby


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[servers.Server, servers.Server]]:
    """A server and its standby, which has everything that is committed."""
    with (
        servers.started(WHEEL, replicated) as first,
        servers.started(WHEEL, origin=first) as second,
    ):
        administer(first, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        administer(first, "ALTER ROLE louver SET synchronous_commit = 'remote_apply'")
        administer(first, "SELECT pg_reload_conf()")
        yield first, second


def replicated(data: Path) -> dict[str, str]:
    with (data / "pg_hba.conf").open("a") as hba:
        hba.write("\nlocal replication all trust\n")
    return {"wal_level": "replica", "max_wal_senders": "4"}


def both(pair: tuple[servers.Server, servers.Server], attributes: str) -> str:
    folders = ",".join(str(server.folder) for server in pair)
    return (
        f"postgresql:///postgres?host={folders}&user={servers.USER}"
        f"&target_session_attrs={attributes}"
    )


def test_a_standby_that_takes_over(
    pair: tuple[servers.Server, servers.Server], key_file: Path
) -> None:
    first, second = pair
    with servers.connect(both(pair, "read-write"), keys=key_file, profile="cryptdb") as con:
        con.execute(TABLE)
        con.load("t", batches(2_000))
        assert con.execute("SELECT n FROM t WHERE s LIKE 'text 7 %'").fetchall() == [(7,)]
        con.execute("BEGIN")
        con.execute("INSERT INTO t VALUES (-1, 'undone', 0)")
        first.process.send_signal(signal.SIGQUIT)
        first.process.wait()
        with pytest.raises(errors.OperationalError) as caught:
            con.execute("INSERT INTO t VALUES (-2, 'undone', 0)")
        assert caught.value.code in ("server.lost", "server.unsure")
        con.execute("ROLLBACK")
        with pytest.raises(errors.OperationalError, match="standby") as caught:
            con.execute("INSERT INTO t VALUES (-3, 'nowhere', 0)")
        assert caught.value.code == "server.lost"
        administer(second, "SELECT pg_promote()")
        con.execute("INSERT INTO t VALUES (-4, 'after', 0)")
        assert con.execute("SELECT count(*), min(id) FROM t").fetchall() == [(2_001, -4)]
        with servers.connect(both(pair, "primary"), keys=key_file) as other:
            assert other.execute("SELECT s FROM t WHERE id < 0").fetchall() == [("after",)]


def test_a_standby_is_only_read(
    pair: tuple[servers.Server, servers.Server], key_file: Path
) -> None:
    first, second = pair
    with servers.connect(first.url(), keys=key_file) as con:
        con.execute(TABLE)
        con.execute("INSERT INTO t VALUES (1, 'a', 1)")
    engine = open_url(both((second, first), "read-write"))
    assert engine.value(Statement("SELECT pg_is_in_recovery()")) is False
    engine.close()
    engine = open_url(both((second, first), "any"))
    assert engine.value(Statement("SELECT pg_is_in_recovery()")) is True
    with pytest.raises(errors.Error) as caught:
        engine.run(Statement("CREATE TABLE u (i integer)", kind="ddl"))
    assert caught.value.code == "connection.read_only"
    engine.close()


# ---------------------------------------------------------------------------- its disk


@pytest.fixture
def small_disk() -> Iterator[servers.Server]:
    """A server with a tablespace on a file system of its own, and a database there."""
    if not servers.has_disks():
        pytest.skip("the system allows no file system in a name space of a user")
    with servers.started(WHEEL, disk="24M") as server:
        folder = server.folder / "disk"
        administer(server, f"CREATE TABLESPACE small LOCATION '{folder}'")
        administer(server, "CREATE DATABASE small TABLESPACE small")
        yield server


def test_a_disk_that_is_full(small_disk: servers.Server, key_file: Path) -> None:
    ballast = "CREATE TABLE ballast AS SELECT i FROM generate_series(1, 50000) AS r(i)"
    administer(small_disk, ballast, "small")
    with servers.connect(small_disk.url("small"), keys=key_file) as con:
        con.execute(TABLE)
        con.execute("INSERT INTO t VALUES (-1, 'before', 1)")
        with pytest.raises(errors.OperationalError) as caught:
            con.load("t", batches(60_000))
        assert caught.value.code == "disk.full", caught.value
        assert con.execute("SELECT id, s FROM t").fetchall() == [(-1, "before")]
        # What was undone takes room until the server cleans up, for which it needs some.
        administer(small_disk, "DROP TABLE ballast", "small")
        administer(small_disk, "VACUUM", "small")
        con.load("t", batches(2_000))
        assert con.execute("SELECT count(*), sum(n) FROM t").fetchall() == [(2_001, 1_999_001)]


# ---------------------------------------------------------------------------- another version


def test_versions_that_are_too_old(key_file: Path) -> None:
    def older(said: bytes) -> bytes:
        return said.replace(b"server_version\x0018", b"server_version\x0009")

    with running(Front(servers.shared().socket, changed=older)) as front:
        with pytest.raises(errors.NotSupportedError, match="older than") as caught:
            servers.connect(front.url, keys=key_file)
        assert caught.value.code == "server.version"
