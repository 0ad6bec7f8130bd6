"""Sessions that are kept for later clients: nothing of one is left for the next."""

from __future__ import annotations

import random
import socket
import time
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from tests.front_door.door import at_server, opened

_LEFT = (
    "CREATE TEMP TABLE left_behind (a int)", "CREATE TEMP VIEW left_view AS SELECT 1 AS x",
    "SET DateStyle = German", "SET statement_timeout = 12345", "SET search_path = nowhere",
    "SET app.secret = 'x'", "SET default_encryption = 'sealed'", "PREPARE left_plan AS SELECT 1",
    "DECLARE left_cursor CURSOR WITH HOLD FOR SELECT 1", "LISTEN left_channel",
    "SELECT pg_advisory_lock(4711)", "SELECT nextval('numbers')", "SELECT setseed(0.5)",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "BEGIN", "SAVEPOINT left_point",
    "SELECT 1 / 0",
)  # fmt: skip
_LOOKS = (
    "SELECT count(*) FROM pg_class WHERE relname LIKE 'left%'", "SHOW DateStyle",
    "SHOW statement_timeout", "SHOW search_path",
    "SELECT nullif(current_setting('app.secret', true), '')",
    "SHOW default_encryption", "SELECT count(*) FROM pg_prepared_statements",
    "SELECT count(*) FROM pg_cursors", "SELECT currval('numbers')", "EXECUTE left_plan",
    "FETCH left_cursor", "SHOW default_transaction_read_only", "SHOW transaction_read_only",
    "SAVEPOINT x", "SELECT current_user", "SHOW application_name",
)  # fmt: skip


def _seen(con: psycopg.Connection[Any]) -> list[object]:
    results: list[object] = []
    for sql in _LOOKS:
        try:
            results.append(con.execute(sql).fetchall())
        except psycopg.Error as error:
            results.append(error.sqlstate)
    return results


@pytest.mark.parametrize("seed", range(3))
def test_a_session_that_is_kept_is_like_a_new_one(seed: int) -> None:
    draw = random.Random(seed)
    with opened("--pool-size", "1") as door, at_server(door) as server:
        first = door.connect()
        first.execute("CREATE SEQUENCE numbers")
        fresh = _seen(first)
        for round_ in range(4):
            left = _LEFT if round_ == 0 else draw.sample(_LEFT, draw.randint(1, len(_LEFT)))
            for sql in left:
                with suppress(psycopg.Error):
                    first.execute(sql)
            if round_ % 2:
                first.close()
            else:  # it vanishes
                socket.socket(fileno=socket.dup(first.pgconn.socket)).shutdown(socket.SHUT_RDWR)
                first.close()
            _until_idle(server)
            first = door.connect()
            assert _seen(first) == fresh
            locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            assert server.execute(locks).fetchone() == (0,)
        first.close()


def _until_idle(server: psycopg.Connection[Any]) -> None:
    """Until no client's transaction is open at the server."""
    end = time.monotonic() + 10
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in%'"
    )
    time.sleep(0.3)
    while server.execute(busy).fetchone() != (0,):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_sessions_are_kept_for_later_clients() -> None:
    """So that many clients after each other need no more connections than one."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    with opened("--pool-size", "2") as door, at_server(door) as server:
        counts = set()
        for number in range(5):
            with door.connect(options=f"-c app.number={number}") as con:
                row = con.execute("SELECT current_setting('app.number')").fetchone()
                assert row == (str(number),)
            time.sleep(0.3)
            counts.add(server.execute(count).fetchone())
        assert len(counts) == 1
