"""`louver demo postgres`: every step on a server of its own, which ends with the demonstration."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from louver.trusted.apps.demo import postgres
from tests.client.harness import answers, run

SERVICE = "louver.untrusted.servers.private_postgres"
_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("demo")
    return run("demo", "postgres", "--rows", "3000", folder=folder, process=True).stdout


def test_it_shows_every_step(output: str) -> None:
    for query in postgres._QUERIES:
        for line in query.sql.splitlines():
            assert line.strip() in output
    for wanted in ("your row", "the server's row", "N14228", "EXPLAIN (LEAKAGE)", "reveals",
                   "flights.dest: equality layer", "second client", "The ledger"):  # fmt: skip
        assert wanted in output, wanted
    equal = output.count("equal to plaintext PostgreSQL's answer")
    assert equal == len(postgres._QUERIES) + 1
    assert max(len(line) for line in output.splitlines()) <= 101


def test_the_server_s_row_is_no_plaintext(output: str) -> None:
    start = output.index("the server's row")
    held = output[start : output.index("── 1.")]
    assert "bytes 02" in held
    assert "N14228" not in held
    assert "tailnum" not in held


def test_what_it_gives_as_data(tmp_path: Path) -> None:
    (body,) = answers(run("demo", "postgres", "--rows", "2000", "--json", folder=tmp_path))
    assert body["transaction"]["before"] == 0 < body["transaction"]["after"]
    assert all(query["equal_to_plaintext"] for query in body["queries"])
    assert all("reveals" in query["explain"] for query in body["queries"])
    assert not list(tmp_path.glob("*.louverkey"))


def test_nothing_can_be_kept_of_it(tmp_path: Path) -> None:
    done = run("demo", "postgres", "--keep", str(tmp_path / "kept"), folder=tmp_path, code=2)
    assert "--keep" in done.stderr
    assert not (tmp_path / "kept").exists()


def _announced(process: subprocess.Popen[str]) -> tuple[int, Path]:
    """The server's process and its folder."""
    assert process.stdout is not None
    body = json.loads(process.stdout.readline())
    folder = Path(body["url"].partition("host=")[2].partition("&")[0])
    assert folder.stat().st_mode & 0o777 == 0o700
    return body["pid"], folder


def _is_running(pid: int) -> bool:
    """Whether a process is there and is not only waiting for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_for_end(pid: int) -> None:
    end = time.monotonic() + _PATIENCE_S
    while _is_running(pid):
        assert time.monotonic() < end, "the server is still running"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, None])
def test_the_server_goes_with_its_process(number: signal.Signals | None) -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-m", SERVICE], stdin=pipe, stdout=pipe, text=True)
    pid, folder = _announced(process)
    assert _is_running(pid)
    process.send_signal(signal.SIGINT)
    if number is None:
        assert process.stdin is not None
        process.stdin.close()
    else:
        process.send_signal(number)
    process.wait(_PATIENCE_S)
    _wait_for_end(pid)
    if number is signal.SIGKILL:
        # Nobody was left to remove it.
        shutil.rmtree(folder)
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_server_goes_with_the_demonstration(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "louver.trusted.apps.cli", "demo", "postgres"]
    environment = os.environ | {
        "LOUVER_STATE_DIR": str(tmp_path / "state"),
        "TMPDIR": str(tmp_path),
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        process_group=0,
    )  # fmt: skip
    assert process.stdout is not None
    line = ""
    while "host=" not in line:
        line = process.stdout.readline()
        assert line, "the demonstration ended"
    folder = Path(line.partition("host=")[2].partition("&")[0])
    pid = int((folder / "data" / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
    assert _is_running(pid)
    os.killpg(process.pid, number) if number is signal.SIGINT else process.send_signal(number)
    process.wait(_PATIENCE_S)
    process.stdout.close()
    _wait_for_end(pid)
    end = time.monotonic() + _PATIENCE_S
    while folder.exists():
        assert time.monotonic() < end, "the server's folder is still there"
        time.sleep(0.02)
