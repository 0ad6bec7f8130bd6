"""The door itself: who may come in, how it ends, and what the rest notice."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import shared
from tests.front_door import raw
from tests.front_door.door import USER, Door, at_server, opened
from tests.front_door.raw import Raw, query
from tests.postgres import certificates, servers

_CLI = [sys.executable, "-m", "louver.trusted.apps.cli"]


@pytest.fixture(autouse=True, scope="module")
def _databases() -> Any:
    yield
    servers.drop_databases()


def _add(users: Path, name: str, password: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_CLI, "serve", "pg", "--users", str(users), "--add-user", name],
        input=f"{password}\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_users_prove_their_passwords(tmp_path: Path) -> None:
    users = tmp_path / "users"
    for name, password in ((USER, "first"), ("bob", "pässwörd"), (USER, "second")):
        done = _add(users, name, password)
        assert done.returncode == 0, done.stderr
        assert password not in done.stdout + done.stderr + users.read_text()
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    assert len(users.read_text().splitlines()) == 2
    with opened("--users", str(users)) as door:
        for password in ("first", "secon", "SECOND"):
            with pytest.raises(psycopg.OperationalError) as caught:
                door.connect(password=password)
            assert f'password authentication failed for user "{USER}"' in str(caught.value)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            door.connect(user="nobody", password="second")
        with door.connect(password="second") as con:
            assert con.execute("SELECT 1").fetchone() == (1,)
        with door.connect(user="bob", password="pässwörd") as con:
            assert con.info.parameter_status("session_authorization") == "bob"
        output = "".join(door.stop())
    assert "second" not in output
    assert "pässwörd" not in output


def test_tls(tmp_path: Path) -> None:
    authority = certificates.authority()
    root = certificates.root_file(tmp_path, authority)
    chain, key = certificates.signed(tmp_path, ("localhost",), by=authority)
    users = tmp_path / "users"
    _add(users, USER, "pw")
    words = ["--certificate", str(chain), "--key", str(key), "--users", str(users)]
    with opened(*words, "--require-tls") as door:
        with pytest.raises(psycopg.OperationalError):
            door.connect(password="pw", sslmode="disable")
        options = {
            "sslmode": "verify-full",
            "sslrootcert": str(root),
            "host": "localhost",
        }
        with door.connect(password="pw", channel_binding="require", **options) as con:
            assert con.execute("SELECT repeat('x', 100000)").fetchone() == ("x" * 100000,)
            assert con.pgconn.ssl_in_use
        context = ssl.create_default_context(cafile=str(root))
        context.set_alpn_protocols(["postgresql"])
        with (
            socket.create_connection(("127.0.0.1", door.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            assert secure.selected_alpn_protocol() == "postgresql"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--listen", "0.0.0.0:0"], "serve.open"), (["--listen", "nowhere"], "usage"),
        (["--certificate", "x"], "usage"), (["--users", "/nonexistent"], "serve.start"),
        (["--add-user", "x"], "usage"), (["--upstream", "duckdb:///x"], "usage"),
        (["--language", "duckdb"], "serve.language"),
    ],
)  # fmt: skip
def test_wrong_options_are_said(words: list[str], code: str) -> None:
    url = servers.database_url("door_options")
    command = [*_CLI, "--json", "serve", "pg", "--upstream", url, "--keys", str(shared.key_file())]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert f'"code": "{code}"' in done.stdout
    assert done.returncode in (1, 2)


def test_the_database_is_the_one_behind() -> None:
    with opened() as door:
        with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
            door.connect(dbname="other")
        with pytest.raises(psycopg.OperationalError, match="only UTF8"):
            door.connect(client_encoding="LATIN1")
        with door.connect(options="-c DateStyle=German -c app.name=it") as con:
            row = con.execute("SELECT '2024-02-03'::date::text, current_setting('app.name')")
            assert row.fetchone() == ("03.02.2024", "it")


def test_too_many_are_turned_away() -> None:
    with opened("--connections", "2") as door:
        first, second = door.connect(), door.connect()
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            door.connect()
        first.close()
        end = time.monotonic() + 10
        while True:
            try:
                door.connect().close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < end
                time.sleep(0.05)
        assert second.execute("SELECT 1").fetchone() == (1,)
        second.close()


def test_it_ends_with_what_has_begun() -> None:
    """Idle clients are answers, a transaction may end, nobody else comes in."""
    with opened("--drain", "20") as door:
        idle, busy = Raw.opened(door.port, USER, door.database), door.connect()
        busy.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY)")
        busy.execute("BEGIN")
        busy.execute("INSERT INTO t VALUES (1)")
        door.process.send_signal(signal.SIGTERM)
        letter, body = idle.next()
        assert (letter, raw.fields(body)["C"]) == ("E", "57P01")
        time.sleep(0.3)
        assert door.process.poll() is None
        with pytest.raises(psycopg.OperationalError):
            door.connect()
        busy.execute("INSERT INTO t VALUES (2)")
        busy.execute("COMMIT")
        assert door.process.wait(20) == 0
        with opened(url=door.url) as again, again.connect() as con:
            assert con.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_killed_doors_leave_nothing_half_done() -> None:
    with opened() as door, opened(url=door.url) as other:
        with other.connect() as con:
            con.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY, s text ENC)")
        clients = [door.connect() for _ in range(3)]
        stopped = threading.Event()

        def write(client: psycopg.Connection[Any], first: int) -> None:
            number = first
            while not stopped.is_set():
                try:
                    with client.transaction():
                        for n in (number, number + 1):
                            client.execute("INSERT INTO t VALUES (%s, 'x')", (n,))
                except psycopg.Error:
                    if client.broken:
                        return
                number += 2

        threads = [
            threading.Thread(target=write, args=(client, 100_000 * number))
            for number, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1.5)
        door.process.kill()
        for thread in threads:
            thread.join(30)
        stopped.set()
        with other.connect() as con:
            ids = [number for (number,) in con.execute("SELECT id FROM t ORDER BY id")]
            assert ids
            assert all(number + 1 in ids for number in ids if number % 2 == 0)
            con.execute("UPDATE t SET s = 'y'")
            assert con.execute("SELECT count(*) FROM t WHERE s = 'y'").fetchone() == (len(ids),)


def test_many_clients_at_two_doors() -> None:
    """What one commits, the others see, whichever door they came by; definitions too."""
    with opened() as door, opened(url=door.url) as other, at_server(door) as server:
        with door.connect() as con:
            con.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY, n bigint ENC)")
            con.execute("INSERT INTO t VALUES (1, 0)")
        failures: list[BaseException] = []

        def add(own: Door) -> None:
            try:
                with own.connect() as con:
                    for _ in range(10):
                        while True:
                            try:
                                con.execute("UPDATE t SET n = n + 1 WHERE id = 1")
                                break
                            except psycopg.errors.SerializationFailure:
                                pass
            except BaseException as error:  # noqa: BLE001 - the test's own thread shows it
                failures.append(error)

        threads = [threading.Thread(target=add, args=(own,)) for own in (door, other) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not failures
        with other.connect() as con, door.connect() as beside:
            assert con.execute("SELECT n FROM t").fetchone() == (80,)
            con.execute("ALTER TABLE t ADD COLUMN s text ENC DEFAULT 'new'")
            assert beside.execute("SELECT s FROM t WHERE id = 1").fetchone() == ("new",)
        rows = server.execute("SELECT * FROM public.t").fetchall()
        assert not any(value in (80, "80", "new") for row in rows for value in row)


def test_a_server_that_is_gone_and_returns() -> None:
    with servers.started(servers.binaries()["wheel"]) as server:
        url = server.url("postgres")
        with opened(url=url) as door:
            con = Raw.opened(door.port, USER, door.database)
            con.letters(query("CREATE TABLE t (id bigint ENC PRIMARY KEY)"))
            assert con.letters(query("INSERT INTO t VALUES (1)")) == "CZI"
            con.letters(query("BEGIN; INSERT INTO t VALUES (2)"))
            servers.restarted(server)
            con.send(query("INSERT INTO t VALUES (3)"))
            answers = con.until_ready()
            assert answers[0][0] == "E"
            assert raw.fields(answers[0][1])["C"] == "08006"
            con.letters(query("ROLLBACK"))
            con.send(query("SELECT count(*) FROM t"))
            assert raw.rows(con.until_ready()) == [(b"1",)]
            con.close()


def test_a_door_that_only_reads() -> None:
    with opened() as door:
        with door.connect() as con:
            con.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY)")
            con.execute("INSERT INTO t VALUES (1)")
        with opened("--read-only", url=door.url) as other, other.connect() as con:
            assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                con.execute("INSERT INTO t VALUES (2)")


def test_a_file_is_no_socket(tmp_path: Path) -> None:
    """What somebody has there stays."""
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(AssertionError, match=r"serve\.start"), opened("--listen", str(path)):
        pass
    assert path.read_text() == "mine"


def test_nothing_of_a_statement_is_printed() -> None:
    with opened() as door:
        with door.connect() as con:
            for sql in (
                "CREATE FUNCTION h() RETURNS text LANGUAGE sql BEGIN ATOMIC"
                " SELECT 'TOPSECRET'; END",
                "CREATE TABLE x (a text ENC DEFAULT 'TOPSECRET')", "SELECT 'TOPSECRET'::int",
                "GRANT 'TOPSECRET'", "INSERT INTO nowhere VALUES ('TOPSECRET')",
            ):  # fmt: skip
                with contextlib.suppress(psycopg.Error):
                    con.execute(sql)
        assert "TOPSECRET" not in "".join(door.stop())


def test_a_socket_in_the_file_system(tmp_path: Path) -> None:
    path = tmp_path / ".s.PGSQL.6432"
    with opened("--listen", str(path)) as door:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with psycopg.connect(host=str(tmp_path), port=6432, user=USER, dbname=door.database) as con:
            assert con.execute("SELECT 1").fetchone() == (1,)
        door.process.send_signal(signal.SIGINT)
        assert door.process.wait(30) == 0
    assert not path.exists()
    assert os.listdir(tmp_path) == []
