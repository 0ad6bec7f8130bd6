"""Clients in PostgreSQL's language that are killed, and servers that end their sessions: what was
committed is there, whole, and nothing else; catalog, ledger and rows agree.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver._rust import postgres
from tests import shared
from tests.generated import SEED, cases
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_CHILD = """
import sys, warnings, louver
warnings.simplefilter("ignore")
con = louver.connect(sys.argv[1], keys=sys.argv[2], profile="cryptdb")
print("open", flush=True)
for n in range(int(sys.argv[3]), 10**9):
    con.execute("BEGIN")
    con.execute("INSERT INTO parent VALUES ($1, $2)", [n, str(n)])
    con.execute("INSERT INTO child (p, n) SELECT k, length(name) FROM parent WHERE k = $1", [n])
    con.execute("SAVEPOINT s")
    con.execute("UPDATE tally SET n = n + 1 WHERE k = 1")
    if n % 3 == 0:
        con.execute("ROLLBACK TO s")
        con.execute("UPDATE tally SET n = n + 1, name = $1 WHERE k = 1", [f"name {n}"])
    if n % 4 == 0:
        con.execute("DELETE FROM parent WHERE k = $1", [n])
        sql = "INSERT INTO gone VALUES ($1) ON CONFLICT (k) DO UPDATE SET k = excluded.k"
        con.execute(sql, [n])
    con.execute("COMMIT")
"""
_TABLES = (
    "CREATE TABLE parent (k integer ENC PRIMARY KEY, name text ENC)",
    "CREATE TABLE child (id serial PRIMARY KEY, n integer ENC,"
    " p integer ENC REFERENCES parent ON DELETE CASCADE)",
    "CREATE TABLE tally (k integer ENC PRIMARY KEY, n integer ENC, name text ENC)",
    "CREATE TABLE gone (k integer ENC PRIMARY KEY)",
    "INSERT INTO tally VALUES (1, 0, '')",
)


def _connected(url: str) -> Any:
    return louver.connect(url, keys=shared.key_file(), profile="cryptdb", language="postgres")


def _one(con: Any, sql: str) -> Any:
    ((value,),) = con.execute(sql).fetchall()
    return value


def _agrees(con: Any) -> None:
    """Every transaction added one to the tally and one row to the parents, or to those gone."""
    parents, gone = _one(con, "SELECT count(*) FROM parent"), _one(con, "SELECT count(*) FROM gone")
    assert parents + gone == _one(con, "SELECT n FROM tally WHERE k = 1")
    assert (
        _one(con, "SELECT count(*) FROM child JOIN parent ON p = k AND n = length(name)") == parents
    )
    assert _one(con, "SELECT count(*) FROM child") == parents
    assert len(con.leakage())


def test_a_killed_client_leaves_whole_transactions(tmp_path: Path) -> None:
    url = servers.database_url(f"killed_{tmp_path.name}".lower())
    with _connected(url) as first:
        for sql in _TABLES:
            first.execute(sql)
        dice = random.Random(SEED)
        for number in range(cases(3)):
            start = str(1_000_000 * (number + 1))
            command = [sys.executable, "-c", _CHILD, url, str(shared.key_file()), start]
            child = subprocess.Popen(command, stdout=subprocess.PIPE)
            assert child.stdout is not None
            assert child.stdout.readline() == b"open\n"
            time.sleep(dice.uniform(0.1, 0.8))
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()
            _agrees(first)
            with _connected(url) as second:
                _agrees(second)


def test_sessions_that_the_server_ends_leave_whole_transactions(tmp_path: Path) -> None:
    name = f"ended_{tmp_path.name}".lower()
    url, dice = servers.database_url(name), random.Random(SEED)
    admin = postgres.Session(str(servers.shared().folder), servers.PORT, servers.USER, name)
    ends = (
        "SELECT count(pg_terminate_backend(pid))::bigint FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with _connected(url) as con:
        for sql in _TABLES:
            con.execute(sql)
        lost = 0
        for number in range(cases(12)):
            steps = [
                lambda n=number: con.execute("BEGIN"),
                lambda n=number: con.execute("INSERT INTO parent VALUES ($1, 'x')", [n]),
                lambda n=number: con.execute("INSERT INTO child (p, n) VALUES ($1, 1)", [n]),
                lambda n=number: con.execute("UPDATE tally SET n = n + 1 WHERE k = 1"),
                lambda n=number: con.execute("COMMIT"),
            ]
            broken = dice.randrange(len(steps) + 1)
            try:
                for position, step in enumerate(steps):
                    if position == broken:
                        admin.run([(ends, [])])
                    step()
            except errors.OperationalError:
                lost += 1
                con.execute("ROLLBACK")
            _agrees(con)
        assert lost
    admin.close()
