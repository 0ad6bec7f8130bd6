"""Clients of a PostgreSQL server: at once, killed, outrun, cut off, without rights."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.untrusted.engines.postgres import open_url
from louver.wire.messages import Statement
from tests.engines import suite
from tests.generated import SEED, cases
from tests.grammar.runner import Report, play
from tests.grammar.writers import Writers
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
Open = Callable[..., Any]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return suite.url_of("postgresql", tmp_path / "clients")


@pytest.fixture
def client(url: str, key_file: Path) -> Iterator[Open]:
    opened: list[Any] = []

    def open_one(profile: str = "sealed") -> Any:
        opened.append(servers.connect(url, keys=key_file, profile=profile))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()


def administer(url: str, sql: str) -> None:
    engine = open_url(url)
    engine.run(Statement(sql, kind="write"))
    engine.close()


def end_sessions(url: str) -> None:
    engine = open_url(url)
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    engine.query(
        Statement(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    )
    engine.close()


@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "mixed"])
def test_random_changes_do_the_same(profile: str, tmp_path: Path, key_file: Path) -> None:
    report = Report()
    for number in range(cases(3)):
        seed = f"{SEED + number} of a server"
        report.add(play(tmp_path / seed, key_file, profile, seed, 50, Writers, "postgresql").report)
    assert not report.differences, "\n".join(report.lines())


def test_clients_write_at_once(client: Open) -> None:
    """Each its own rows, and all of them one row: none is lost."""
    first = client("cryptdb")
    first.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER ENC, who VARCHAR ENC)")
    first.execute("INSERT INTO t VALUES (0, 0, 'all')")
    failures: list[BaseException] = []
    count, rounds = 4, 8

    def work(number: int, connection: Any) -> None:
        try:
            for step in range(rounds):
                row = 1 + number * rounds + step
                connection.execute("INSERT INTO t VALUES (?, ?, ?)", [row, step, f"c{number}"])
                connection.execute("UPDATE t SET n = n + 1 WHERE id = 0")
                connection.execute("DELETE FROM t WHERE id = ? AND n = ?", [row, rounds - 1])
        except BaseException as error:  # noqa: BLE001 - raised where it is looked at
            failures.append(error)

    connections = [client("cryptdb") for _ in range(count)]
    workers = [threading.Thread(target=work, args=item) for item in enumerate(connections)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert first.execute("SELECT n FROM t WHERE id = 0").fetchall() == [(count * rounds,)]
    assert first.execute("SELECT count(*) FROM t").fetchall() == [(1 + count * (rounds - 1),)]
    assert client().execute("SELECT sum(n) FROM t WHERE who = 'c1'").fetchall() == [(21,)]


def test_of_two_inserts_of_a_key_one_is_refused(client: Open) -> None:
    first, second = client(), client()
    first.execute("CREATE TABLE t (id INTEGER ENC PRIMARY KEY)")
    first.execute("BEGIN")
    first.execute("INSERT INTO t VALUES (1)")
    second.execute("BEGIN")
    second.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(errors.Error):  # it waits for the first, and then no longer
        second.execute("INSERT INTO t VALUES (1)")
    second.execute("ROLLBACK")
    first.execute("COMMIT")
    with pytest.raises(errors.IntegrityError, match="Duplicate key"):
        second.execute("INSERT INTO t VALUES (1)")
    assert second.execute("SELECT id FROM t").fetchall() == [(1,)]


def test_a_plan_of_before_does_not_outlive_a_change_of_the_table(client: Open) -> None:
    first, second = client("cryptdb"), client("cryptdb")
    first.execute("CREATE TABLE t (id INTEGER, a VARCHAR ENC, b INTEGER ENC)")
    first.execute("INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20)")
    sql = "SELECT id, b FROM t WHERE a = 'x'"
    assert second.execute(sql).fetchall() == [(1, 10)]
    for change, answer in (
        ("ALTER TABLE t ALTER b TYPE HUGEINT", [(1, 10)]),
        ("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b INTEGER ENC", [(1, None)]),
        ("DROP TABLE t; CREATE TABLE t (id INTEGER, a VARCHAR ENC, b INTEGER ENC)", []),
        ("INSERT INTO t VALUES (3, 'x', 7)", [(3, 7)]),
    ):
        first.execute(change)
        assert second.execute(sql).fetchall() == answer, change


_CHILD = """
import sys, louver
con = louver.connect(sys.argv[1], keys=sys.argv[2], profile="cryptdb")
print("open", flush=True)
for n in range(int(sys.argv[3]), 10**9):
    con.execute("BEGIN")
    con.execute("INSERT INTO a VALUES (?, ?)", [n, n])
    con.execute("UPDATE b SET n = n + 1 WHERE id = 1")
    con.execute("COMMIT")
"""


def test_a_killed_client_leaves_whole_transactions(client: Open, url: str, key_file: Path) -> None:
    first = client("cryptdb")
    first.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER ENC)")
    first.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER ENC)")
    first.execute("INSERT INTO b VALUES (1, 0)")
    dice = random.Random(SEED)
    for number in range(cases(3)):
        command = [sys.executable, "-c", _CHILD, url, str(key_file), str(1_000_000 * number)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        time.sleep(dice.uniform(0.05, 0.4))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        ((rows,),) = first.execute("SELECT count(*) FROM a").fetchall()
        assert first.execute("SELECT n FROM b WHERE id = 1").fetchall() == [(rows,)]
        assert client("cryptdb").execute("SELECT count(n) FROM a").fetchall() == [(rows,)]


def test_a_connection_that_is_cut_off(client: Open, url: str) -> None:
    con = client()
    con.execute("CREATE TABLE t (id INTEGER, s VARCHAR ENC)")
    end_sessions(url)
    con.execute("INSERT INTO t VALUES (1, 'a')")
    end_sessions(url)
    assert con.execute("SELECT s FROM t").fetchall() == [("a",)]
    con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (2, 'b')")
    end_sessions(url)
    with pytest.raises(errors.OperationalError) as caught:
        con.execute("INSERT INTO t VALUES (3, 'c')")
    assert caught.value.code in ("server.lost", "server.unsure")
    con.execute("ROLLBACK")
    assert con.execute("SELECT id FROM t").fetchall() == [(1,)]


def test_what_others_have_in_the_database_stays(client: Open, url: str) -> None:
    administer(url, "CREATE TABLE theirs (a integer)")
    administer(url, "INSERT INTO theirs VALUES (7)")
    con = client()
    con.execute("CREATE TABLE ours (a INTEGER ENC)")
    with pytest.raises(errors.ProgrammingError) as caught:
        con.execute("CREATE TABLE theirs (a INTEGER ENC)")
    assert caught.value.code == "server.exists"
    assert con.execute("SHOW TABLES").fetchall() == [("ours",)]
    con.execute("INSERT INTO ours VALUES (1)")
    engine = open_url(url)
    assert engine.value(Statement("SELECT a FROM theirs")) == 7
    engine.close()
    for schema in ("public", "louver", "pg_x"):
        with pytest.raises(errors.NotSupportedError) as refused:
            con.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.t (a INTEGER ENC)")
        assert refused.value.code == "engine.schema"


def test_a_role_without_rights_is_told_so(client: Open, url: str, key_file: Path) -> None:
    con = client()
    con.execute("CREATE TABLE t (a INTEGER ENC)")
    con.execute("INSERT INTO t VALUES (1)")
    administer(url, "CREATE ROLE reader LOGIN")
    try:
        with pytest.raises(errors.Error) as caught:
            servers.connect(url.replace(f"user={servers.USER}", "user=reader"), keys=key_file)
        assert caught.value.code == "server.denied"
    finally:
        administer(url, "DROP ROLE reader")
    assert con.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_values_that_the_server_cannot_store_are_refused_whole(client: Open) -> None:
    con = client()
    con.execute("CREATE TABLE t (id INTEGER, s VARCHAR, d DATE, e VARCHAR ENC)")
    for values in ("(1, 'a' || chr(0), NULL, NULL)", "(1, NULL, DATE '5877642-06-25 (BC)', NULL)"):
        with pytest.raises(errors.DataError) as caught:
            con.execute(f"INSERT INTO t VALUES (0, 'x', NULL, NULL), {values}")
        assert caught.value.code == "server.value"
    con.execute("INSERT INTO t VALUES (2, '', DATE 'infinity', 'a' || chr(0))")
    assert con.execute("SELECT id, d::VARCHAR, e FROM t").fetchall() == [(2, "infinity", "a\0")]
