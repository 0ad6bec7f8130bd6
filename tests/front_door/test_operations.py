"""What those who operate a front door see of it: numbers, health, its state, and the log."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from louver import errors
from louver.trusted.apps.pgproxy import status
from louver.trusted.apps.pgproxy.upstream import Upstream
from tests.front_door.door import opened, root
from tests.postgres import servers

_SAMPLE = re.compile(r'louver_\w+(\{(\w+="[^"\\]*",?)+\})? [0-9.]+(e-?\d+)?')
_SECRET = "quagga"


def _page(path: Path, page: str) -> tuple[int, str]:
    connection = status._Local(str(path))
    connection.request("GET", page)
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _numbers(path: Path) -> dict[str, float]:
    code, text = _page(path, "/metrics")
    assert code == 200
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(_SAMPLE.fullmatch(line) for line in lines), text
    names = re.findall(r"# TYPE (\w+) (?:counter|gauge|histogram)", text)
    assert len(names) == len(set(names)) > 10
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def _logged(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _status(path: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "louver.trusted.apps.cli", "serve", "pg", "--status", "--metrics",
         str(path), *words], capture_output=True, text=True, check=False, cwd=root(),
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_numbers_health_and_log(tmp_path: Path) -> None:
    """Also while the server behind is away."""
    monitor, log = tmp_path / "monitor", tmp_path / "log"
    words = ("--metrics", str(monitor), "--log", str(log))
    with servers.started(servers.binaries()["wheel"]) as server:
        url = server.url("postgres")
        with opened(*words, url=url) as door:
            with door.connect() as con:
                con.execute("CREATE TABLE k (id int ENC PRIMARY KEY, s text ENC)")
                rows = f"SELECT i, '{_SECRET}' FROM generate_series(1, 400) AS g(i)"
                con.execute(f"INSERT INTO k {rows}")
                for number in range(1, 81):
                    con.execute("SELECT s FROM k WHERE id = %s", (number,), prepare=True)
                with suppress(psycopg.Error):
                    con.execute(f"INSERT INTO k VALUES (1, '{_SECRET}')")
                numbers = _numbers(monitor)
                assert numbers["louver_clients"] == 1
                kinds = 'louver_statements_total{kind="%s",outcome="%s"}'
                assert numbers[kinds % ("SELECT", "done")] == 80
                assert numbers[kinds % ("INSERT", "done")] == 1
                assert numbers[kinds % ("INSERT", "failed")] == 1
                assert numbers['louver_ways_total{way="direct"}'] > 0
                assert numbers["louver_statement_seconds_count"] == 83
                assert numbers['louver_statement_seconds_bucket{le="+Inf"}'] == 83
                assert 0 < numbers["louver_statement_seconds_sum"] < 60
                assert numbers["louver_received_bytes_total"] > 1000
                assert numbers["louver_sent_bytes_total"] > 1000
                assert _page(monitor, "/health")[0] == 200
                code, text = _status(monitor)
                assert (code, "answers" in text) == (0, True), text
                code, text = _status(monitor, "--json")
                assert (code, json.loads(text)["statements_total"]) == (0, 83)
                with pytest.raises(psycopg.OperationalError):
                    psycopg.connect(door.dsn.replace("dbname=postgres", f"dbname={_SECRET}"))
                server.process.send_signal(signal.SIGINT)
                server.process.wait(30)
                for _ in range(3):
                    with suppress(psycopg.Error):
                        con.execute("SELECT count(*) FROM k")
                assert _until(monitor, 503)
                code, text = _status(monitor)
                assert (code, "does not answer" in text) == (1, True), text
            servers.restarted(server)
            assert _until(monitor, 200)
            with door.connect() as con:
                assert con.execute("SELECT count(*) FROM k").fetchone() == (400,)
            door.stop()
    lines = _logged(log)
    events = [line["event"] for line in lines]
    assert events[:2] == ["opened", "session"]
    assert events.index("upstream lost") < events.index("upstream returned")
    assert "draining" in events
    assert events[-1] == "ended"
    assert {line["version"] for line in lines} == {1}
    states = {line["state"] for line in lines if line["event"] == "failed"}
    assert "23505" in states
    assert [line["state"] for line in lines if line["event"] == "refused"] == ["3D000"]
    assert _SECRET not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def _until(monitor: Path, code: int) -> bool:
    for _ in range(100):
        if _page(monitor, "/health")[0] == code:
            return True
        time.sleep(0.1)
    return False


def test_passwords_that_are_wrong_are_logged_without_names(tmp_path: Path) -> None:
    users, log = tmp_path / "users", tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        "louver.trusted.apps.cli",
        "serve",
        "pg",
        "--users",
        str(users),
    ]
    subprocess.run([*command, "--add-user", "anna"], input="right\n", text=True, check=True,
                   capture_output=True)  # fmt: skip
    with opened("--users", str(users), "--log", str(log), "--log-level", "warning") as door:
        for name, password in (("anna", _SECRET), (_SECRET, "right")):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(door.dsn.replace("anna", name), password=password)
        psycopg.connect(door.dsn, password="right").close()
    lines = _logged(log)
    assert [(line["event"], line["state"]) for line in lines] == [("refused", "28P01")] * 2
    assert _SECRET not in log.read_text()


def test_where_none_runs() -> None:
    with pytest.raises(errors.Error) as caught:
        status.state_of(("127.0.0.1", servers.free_port()))
    assert caught.value.code == "serve.status"
    assert not Upstream("postgresql:///x?host=/nowhere")()
