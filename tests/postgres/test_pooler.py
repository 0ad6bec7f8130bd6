"""A pooler between client and server: it hands statements to one session after another."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import louver
from louver import errors
from louver._rust import postgres
from tests.postgres import servers
from tests.postgres.front import Front, running
from tools import drivers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
POOLER = drivers.pooler_command(Path(sys.prefix) / "drivers")
PORT = 6432
SETTINGS = """\
[databases]
* = host={server} port=5432 user=louver
[pgbouncer]
pool_mode = transaction
default_pool_size = 8
query_wait_timeout = 20
unix_socket_dir = {folder}
listen_addr =
listen_port = 6432
auth_type = any
logfile = {folder}/pooler.log
"""


def as_by_another(said: bytes) -> bytes:
    """The number of the process that greets, changed (BackendKeyData)."""
    head = b"K\0\0\0\x0c"
    first, matched, rest = said.partition(head)
    return first + matched + bytes([rest[0] ^ 1]) + rest[1:] if matched else said


@pytest.fixture(params=["front", "pgbouncer"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the shared server behind a pooler; or what looks like one from outside."""
    name = f"pooled_{request.param}"
    servers.database_url(name)
    if request.param == "front":
        with running(Front(servers.shared().socket, changed=as_by_another)) as front:
            yield front.url.replace("/postgres", f"/{name}")
    elif POOLER is None:
        pytest.skip("pgbouncer is not installed")
    else:
        with servers.folder_of_a_server() as folder:
            (folder / "settings").write_text(
                SETTINGS.format(server=servers.shared().folder, folder=folder)
            )
            command = [*POOLER, "-q", str(folder / "settings")]
            with servers.alongside(command, folder, folder / f".s.PGSQL.{PORT}"):
                yield f"postgresql:///{name}?host={folder}&port={PORT}&user=louver"


def _add_ten(con: louver.Connection, row: int) -> None:
    """In a transaction, which begins anew where another client was faster."""
    for last in (False, False, False, True):
        try:
            con.execute("BEGIN")
            con.execute("UPDATE t SET n = n + 10 WHERE id = ?", [row])
            con.execute("COMMIT")
        except errors.DatabaseError as error:
            if last or error.code != "catalog.conflict":
                raise
            with suppress(errors.DatabaseError):
                con.execute("ROLLBACK")
        else:
            return


def test_clients_behind_a_pooler(url: str, key_file: Path) -> None:
    """No statement of one client runs in place of another's, whose names would be the same."""
    with servers.connect(url, keys=key_file, profile="cryptdb") as first:
        first.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, who VARCHAR ENC, n INTEGER ENC)")
        first.execute("INSERT INTO t VALUES (0, 'c0', 0)")
        # Layers are open before clients meet.
        for column in ("who", "n"):
            first.execute(f"SELECT {column}, count(*) FROM t GROUP BY {column}").fetchall()
        first.execute("SELECT sum(n) FROM t WHERE who = 'c1' AND id = 1").fetchall()
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                with servers.connect(url, keys=key_file, profile="cryptdb") as con:
                    for step in range(6):
                        row = number * 100 + step
                        con.execute("INSERT INTO t VALUES (?, ?, ?)", [row, f"c{number}", step])
                        sql = f"SELECT n, id FROM t WHERE who = 'c{number}' AND id = ?"
                        assert con.execute(sql, [row]).fetchall() == [(step, row)]
                        _add_ten(con, row)
            except BaseException as error:  # noqa: BLE001 - raised where it is looked at
                failures.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not failures
        sums = "SELECT who, count(*), sum(n) FROM t GROUP BY who ORDER BY who"
        assert first.execute(sums).fetchall() == [
            ("c0", 1, 0), *((f"c{i}", 6, 75) for i in range(1, 5))
        ]  # fmt: skip


def test_a_pooler_is_noticed() -> None:
    server = servers.shared()
    session = postgres.Session(str(server.folder), servers.PORT, servers.USER, "postgres")
    assert session.keeps_statements()
    session.close()
    with running(Front(server.socket, changed=as_by_another)) as front:
        session = postgres.Session("127.0.0.1", front.port, servers.USER, "postgres")
        assert not session.keeps_statements()
        for _ in range(2):
            steps = [("SELECT $1::bigint", [1]), ("SELECT 'x'", []), ("SELECT $1::bigint", [2])]
            replies = session.run(steps)
            assert [arrays[0].to_pylist() for _, _, arrays in replies] == [[1], ["x"], [2]]
        ((_, _, (count,)),) = session.run([("SELECT count(*) FROM pg_prepared_statements", [])])
        assert count.to_pylist() == [0]
        session.close()


def test_a_pooler_that_is_not_noticed_at_first() -> None:
    """A statement that is gone is prepared anew, and none is expected to stay from there on."""
    server = servers.shared()
    session = postgres.Session(str(server.folder), servers.PORT, servers.USER, "postgres")
    for _ in range(2):
        session.run([("SELECT 1", [])])
    session.run([("DEALLOCATE ALL", [])])
    ((_, _, (column,)),) = session.run([("SELECT 1", [])])
    assert column.to_pylist() == [1]
    assert not session.keeps_statements()
    session.close()
