"""Sessions that are lent by transaction: each client has what one of its own would give it."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.front_door import door as doors
from tests.front_door import raw
from tests.front_door.door import USER, Door, at_server, opened
from tests.front_door.raw import SYNC, Raw, bind, execute, parse, query
from tests.postgres import servers

_CLIENTS, _SESSIONS = 100, 3


@pytest.fixture(scope="module")
def shared() -> Iterator[Door]:
    """A door whose sessions are lent by transaction."""
    words = ("--pool", "transaction", "--pool-size", str(_SESSIONS), "--pool-wait", "30")
    with opened(*words) as running:
        with running.connect() as con:
            con.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY, n bigint ENC, s text ENC)")
            con.execute("INSERT INTO t SELECT g, 0, 's' || g FROM generate_series(1, 200) g")
            con.execute("CREATE SEQUENCE seq")
            con.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            con.execute("CREATE TABLE m (id bigint PRIMARY KEY, mood mood)")
            con.execute("INSERT INTO m VALUES (1, 'ok')")
        yield running
    servers.drop_databases()


def _raised(con: psycopg.Connection[Any], sql: str) -> str:
    with pytest.raises(psycopg.Error) as caught:
        con.execute(sql)
    return str(caught.value.sqlstate)


def test_many_clients_share_few_sessions(shared: Door) -> None:
    before = _connections(shared)
    with ExitStack() as stack:
        clients = [stack.enter_context(shared.connect()) for _ in range(_CLIENTS)]
        wrong: list[object] = []

        def work(number: int, con: psycopg.Connection[Any]) -> None:
            try:
                for turn in range(5):
                    key = (number * 7 + turn) % 200 + 1
                    sql = "SELECT s FROM t WHERE id = %s"
                    row = con.execute(sql, (key,), prepare=True).fetchone()
                    if row != (f"s{key}",):
                        wrong.append((key, row))
                with con.transaction():
                    con.execute("UPDATE t SET n = n + 1 WHERE id = %s", (number + 1,))
                    row = con.execute("SELECT n, s FROM t WHERE id = %s", (number + 1,)).fetchone()
                    if row is None or row[1] != f"s{number + 1}":
                        wrong.append(row)
            except BaseException as error:  # noqa: BLE001 - the test's own thread shows it
                wrong.append(error)

        threads = [
            threading.Thread(target=work, args=(number, con)) for number, con in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not wrong
        total = clients[0].execute("SELECT sum(n), count(*) FROM t").fetchone()
        assert total == (_CLIENTS, 200)
        assert _connections(shared) <= max(before, 5 * _SESSIONS)


def _connections(door: Door) -> int:
    sql = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with at_server(door) as server:
        (count,) = server.execute(sql).fetchone() or (0,)
    return int(count)


_SETTINGS = ("Europe/Berlin", "UTC", "America/New_York")


@pytest.mark.parametrize("seed", range(3))
def test_clients_have_what_sessions_of_their_own_would_give(shared: Door, seed: int) -> None:
    """Random statements of several clients, each of whom has a session of plain PostgreSQL too."""
    draw = random.Random(seed)
    with ExitStack() as stack:
        pairs = []
        for number in range(6):
            options = f"-c app.client={number} -c TimeZone={draw.choice(_SETTINGS)}"
            own = stack.enter_context(shared.connect(options=options))
            with doors.plain() as plain:
                dsn = plain.info.dsn
            other = psycopg.connect(dsn, autocommit=True, options=options)
            stack.enter_context(other)
            other.execute("CREATE TABLE IF NOT EXISTS w (id bigint PRIMARY KEY, client bigint)")
            pairs.append((number, own, other))
        pairs[0][1].execute("DROP TABLE IF EXISTS w")
        pairs[0][1].execute("CREATE TABLE w (id bigint ENC PRIMARY KEY, client bigint ENC)")
        for _ in range(150):
            number, own, other = draw.choice(pairs)
            sql, values = _statement(draw, number)
            assert _answer(own, sql, values) == _answer(other, sql, values), sql
            # A transaction keeps one of the sessions.
            within = [pair for pair in pairs if pair[1].info.transaction_status]
            if len(within) >= _SESSIONS - 1:
                for con in within[0][1:]:
                    con.execute("ROLLBACK")


def _statement(draw: random.Random, client: int) -> tuple[str, Sequence[object]]:
    key = client * 100 + draw.randint(1, 5)
    mine = f" AND client = {client}"
    return draw.choice((
        ("SELECT current_setting('app.client'), current_setting('TimeZone')", ()),
        ("SELECT '2024-07-01 12:00+00'::timestamptz::text", ()),
        (f"SET TimeZone = '{draw.choice(_SETTINGS)}'", ()),
        (f"SET LOCAL TimeZone = '{draw.choice(_SETTINGS)}'", ()),
        ("RESET TimeZone", ()), ("RESET ALL", ()), ("DISCARD ALL", ()), ("SHOW DateStyle", ()),
        (f"SET DateStyle = '{draw.choice(('German', 'ISO', 'SQL'))}'", ()),
        (f"SET app.client = '{draw.randint(1, 99)}'", ()),
        ("BEGIN", ()), ("COMMIT", ()), ("ROLLBACK", ()), ("SELECT 1 / 0", ()),
        (f"INSERT INTO w VALUES ({key}, {client}) ON CONFLICT DO NOTHING", ()),
        (f"DELETE FROM w WHERE id = {key}", ()),
        (f"SELECT id FROM w WHERE id = %s{mine}", (key,)),
        (f"SELECT count(*) FROM w WHERE client = %s{mine}", (client,)),
        ("SELECT %s::date::text", ("2024-02-03",)),
    ))  # fmt: skip


def _answer(con: psycopg.Connection[Any], sql: str, values: Sequence[object]) -> object:
    try:
        answer = con.execute(sql, values, prepare=bool(values))
        rows = answer.fetchall() if answer.description else None
        return answer.statusmessage, rows, con.info.transaction_status
    except psycopg.Error as error:
        return error.sqlstate, con.info.transaction_status


_REFUSED = (
    "CREATE TEMP TABLE x (a int)", "CREATE LOCAL TEMPORARY VIEW x AS SELECT 1",
    "SELECT 1 AS a INTO TEMP x", "CREATE TABLE pg_temp.x (a int)", "LISTEN x",
    "SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock_shared(1)", "PREPARE p AS SELECT 1",
    "SET default_encryption = 'cryptdb'", "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
    "SELECT set_config('default_encryption', 'sealed', false)", "SELECT currval('seq')",
    "SELECT setseed(0.1)", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET default_transaction_read_only = on", "SELECT lastval()", "LOAD 'x'", "EXECUTE p",
    'SELECT "currval"(\'seq\')', "EXPLAIN SELECT currval('seq')", "UNLISTEN x",
)  # fmt: skip


@pytest.mark.parametrize("sql", _REFUSED)
def test_what_needs_a_session_is_refused(shared: Door, sql: str) -> None:
    with shared.connect() as con:
        assert _raised(con, sql) == "0A000"
        with pytest.raises(psycopg.Error, match=r"serve\.session"):
            con.execute(sql)
        assert con.execute("SELECT 1").fetchone() == (1,)


def test_what_clients_send_between_uses_is_not(shared: Door) -> None:
    with shared.connect() as con:
        for sql in (
            "SELECT pg_advisory_unlock_all()", "CLOSE ALL", "UNLISTEN *", "RESET ALL",
            "DISCARD ALL", "DEALLOCATE ALL", "SELECT set_config('app.x', '1', false)",
            "SELECT set_config('search_path', 'public', true)", "SET TIME ZONE 'UTC'",
        ):  # fmt: skip
            con.execute(sql)


def test_wrong_startup_settings_are_refused(shared: Door) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"serve\.session"):
        shared.connect(options="-c default_transaction_read_only=on")
    with pytest.raises(psycopg.OperationalError, match="DateStyle"):
        shared.connect(options="-c DateStyle=wrong")
    assert shared.connect().execute("SHOW DateStyle").fetchone() == ("ISO, MDY",)


def test_who_waits_too_long_is_told() -> None:
    words = ("--pool", "transaction", "--pool-size", "1", "--pool-wait", "0.5")
    with opened(*words) as door, door.connect() as busy, door.connect() as other:
        busy.execute("BEGIN")
        busy.execute("SELECT 1")
        begun = time.monotonic()
        with pytest.raises(errors.TooManyConnections, match="no session became free"):
            other.execute("SELECT 1")
        assert time.monotonic() - begun < 5
        with pytest.raises(psycopg.OperationalError, match="no session became free"):
            door.connect()
        busy.execute("COMMIT")
        assert other.execute("SELECT 2").fetchone() == (2,)


def test_who_waits_can_be_cancelled_and_is_served_in_turn() -> None:
    with opened("--pool", "transaction", "--pool-size", "1") as door:
        busy, others = door.connect(), [door.connect() for _ in range(4)]
        busy.execute("BEGIN")
        served: dict[int, Any] = {}

        def ask(number: int) -> None:
            try:
                row = others[number].execute("SELECT clock_timestamp()").fetchone()
                served[number] = row
            except psycopg.Error as error:
                served[number] = error.sqlstate

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        others[0].cancel()
        threads[0].join(10)
        assert served == {0: "57014"}
        busy.execute("COMMIT")
        for thread in threads:
            thread.join(10)
        assert served.pop(0) == "57014"
        assert sorted(served, key=served.__getitem__) == [1, 2, 3]
        for con in (busy, *others):
            assert con.execute("SELECT 2").fetchone() == (2,)
            con.close()


def test_a_cancellation_reaches_only_its_client() -> None:
    """Of one that comes when the statement is over, no client learns."""
    words = ("--pool", "transaction", "--pool-size", "1")
    with opened(*words) as door, door.connect() as first, door.connect() as second:
        first.execute("SELECT 1")
        stopped = threading.Event()

        def cancel() -> None:
            while not stopped.is_set():
                first.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            for _ in range(100):
                assert second.execute("SELECT 1").fetchone() == (1,)
        finally:
            stopped.set()
            thread.join(10)


def test_who_goes_within_a_transaction_gives_the_session_back() -> None:
    with opened("--pool", "transaction", "--pool-size", "1") as door, door.connect() as other:
        other.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY)")
        for how in ("BEGIN; INSERT INTO t VALUES (1)", "BEGIN; SET LOCAL DateStyle = German"):
            gone = Raw.opened(door.port, USER, door.database)
            gone.letters(query(how))
            gone.close()
            assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
            assert other.execute("SHOW DateStyle").fetchone() == ("ISO, MDY",)


def test_numbers_of_types_stay_the_same(shared: Door) -> None:
    """Who has learned a type's number finds it under that, whatever others do."""
    with ExitStack() as stack:
        clients = [stack.enter_context(shared.connect()) for _ in range(6)]
        numbers = {}
        for con in clients:
            row = con.execute("SELECT oid FROM pg_type WHERE typname = 'mood'").fetchone()
            assert row is not None
            numbers[con] = row[0]
        for turn in range(30):
            con = clients[turn % len(clients)]
            answer = con.execute("SELECT mood FROM m WHERE id = %s", (1,), prepare=True)
            assert answer.description is not None
            assert answer.description[0].type_code == numbers[con]
            assert answer.fetchone() == ("ok",)
            name = con.execute(f"SELECT typname FROM pg_type WHERE oid = {numbers[con]}")
            assert name.fetchone() == ("mood",)


def test_statements_of_the_protocol_go_with_their_client(shared: Door) -> None:
    """Over sessions that have not seen them, and where a table has changed meanwhile."""
    first, second = (Raw.opened(shared.port, USER, shared.database) for _ in range(2))
    holds = [shared.connect() for _ in range(_SESSIONS - 1)]
    try:
        first.letters(query("DROP TABLE IF EXISTS p; CREATE TABLE p (id bigint ENC PRIMARY KEY)"))
        first.letters(query("INSERT INTO p VALUES (1)"))
        for con, sql in ((first, "SELECT id FROM p"), (second, "SELECT id + 1 FROM p")):
            assert con.letters(parse(sql, "s"), SYNC) == "1ZI"
        for turn in range(6):
            for hold in holds:  # so that another session is free
                hold.execute("ROLLBACK" if turn % 2 else "BEGIN")
            for con, value in ((first, b"1"), (second, b"2")):
                con.send(bind(name="s"), execute(), SYNC)
                assert raw.rows(con.until_ready()) == [(value,)]
        second.letters(query("DROP TABLE p; CREATE TABLE p (id text)"))
        first.send(bind(name="s"), execute(), SYNC)
        letter, body = first.until_ready()[1]
        assert (letter, raw.fields(body)["C"]) == ("E", "0A000")
        assert first.letters(query("DEALLOCATE s")) == "CZI"
        assert second.letters(query("DEALLOCATE ALL")) == "CZI"
        assert second.letters(bind(name="s"), SYNC) == "EZI"
    finally:
        for own in (first, second):
            own.close()
        for hold in holds:
            hold.close()


# ------------------------------------------------------------------ before they are clients


def test_silent_connections_are_no_clients() -> None:
    with opened("--connections", "2") as door:
        silent = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(60)]
        with door.connect() as first, door.connect() as second:
            assert first.execute("SELECT 1").fetchone() == (1,)
            assert second.execute("SELECT 1").fetchone() == (1,)
        # The oldest of too many make room.
        silent += [socket.create_connection(("127.0.0.1", door.port)) for _ in range(20)]
        with door.connect() as con:
            assert con.execute("SELECT 1").fetchone() == (1,)
        silent[0].settimeout(5)
        assert silent[0].recv(1) == b""
        silent[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            silent[-1].recv(1)
        for connection in silent:
            connection.close()


def test_idle_clients_cost_little() -> None:
    """Of each that has done something, less than 256 kB are left."""
    with opened("--pool", "transaction", "--pool-size", "2") as door, ExitStack() as stack:
        with door.connect() as con:
            con.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY, s text ENC)")
            con.execute("INSERT INTO t SELECT g, 's' || g FROM generate_series(1, 300) g")

        def more(count: int) -> int:
            for number in range(count):
                con = stack.enter_context(door.connect())
                for _ in range(3):
                    con.execute("SELECT s FROM t WHERE id = %s", (number,), prepare=True)
            return _resident_kb(door)

        before = more(40)
        after = more(100)
        assert (after - before) / 100 < 256


def _resident_kb(door: Door) -> int:
    with open(f"/proc/{door.process.pid}/status", encoding="utf-8") as file:
        (line,) = (line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1])
