"""The private server: who may reach it, what it writes, and that nothing of it stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor.local.postgres import keeper, server, template
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.untrusted.servers import private_postgres
from louver.untrusted.servers.private_postgres import PORT
from tests.local_postgres.conftest import Open, catalog_of
from tests.sources import ROOT

_PATIENCE_S = 20.0
_CHILD = """
import os, sys
import pyarrow as pa
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.vault.catalog import Catalog
engine = PostgresLocalEngine()
engine.rebuild(Catalog("00" * 16))
rows = pa.table({"a": ["canary"]})
engine.finish({("", "kept"): ([("a", "text")], rows)}, "CREATE TEMP TABLE t AS SELECT * FROM kept",
    keeps=True)
server = engine._server
pid = (server.folder / "data" / "postmaster.pid").read_text().splitlines()[0]
print(server.folder, server.keeper.pid, flush=True)
sys.stdin.read()
"""


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def commands() -> list[str]:
    """The command lines of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text(errors="replace"))
    return lines


def is_used(folder: Path) -> bool:
    """Whether a process names the folder."""
    return any(str(folder) in command for command in commands())


@contextlib.contextmanager
def child() -> Iterator[tuple[subprocess.Popen[str], Path, int]]:
    """Another process with a server of its own, which ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        folder, keeper = process.stdout.readline().split()
        yield process, Path(folder), int(keeper)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def test_its_folder_is_the_owner_s_alone(engine: PostgresLocalEngine) -> None:
    folder = engine._server.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / f".s.PGSQL.{PORT}").stat().st_mode) == 0o700
    assert engine.python_rows(engine.ask_schema("SHOW listen_addresses")) == [("",)]
    assert Path(engine.directory).parent == folder


def test_it_logs_nothing(engine: PostgresLocalEngine) -> None:
    log = engine._server.folder / "log"
    before = log.read_bytes()
    for sql in ("SELECT 'canary'::int", "SELEC 'canary'", "DO $$ BEGIN RAISE LOG 'canary'; END $$"):
        with contextlib.suppress(errors.Error):
            engine.declare(sql)
    assert log.read_bytes() == before
    assert not list((engine._server.folder / "data").glob("log/*"))


def test_the_data_of_a_new_server_is_kept_for_the_user_alone(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = private_postgres.wheel_binaries()
    assert binaries is not None
    assert template.fill(binaries, tmp_path / "first", tmp_path / "log")
    (folder,) = (cache / "louver").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = (folder / "data" / "PG_VERSION").stat().st_mtime_ns
    assert template.fill(binaries, tmp_path / "second", tmp_path / "log")
    assert (folder / "data" / "PG_VERSION").stat().st_mtime_ns == before
    assert (tmp_path / "second" / "PG_VERSION").exists()
    assert stat.S_IMODE((tmp_path / "second").stat().st_mode) == 0o700
    # What others could have written is not taken, and a folder that cannot be made is not needed.
    folder.chmod(0o777)
    (folder / "data" / "PG_VERSION").write_text("7")
    assert template.fill(binaries, tmp_path / "third", tmp_path / "log")
    assert (tmp_path / "third" / "PG_VERSION").read_text() != "7"
    shutil.rmtree(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert template.fill(binaries, tmp_path / "fourth", tmp_path / "log")
    assert (tmp_path / "fourth" / "PG_VERSION").exists()


def test_sessions_share_it_and_nothing_else(open_engine: Open) -> None:
    first, second = open_engine(("TABLE", "CREATE TABLE t (a int)")), open_engine()
    assert first._server is second._server
    assert "t" in {name for _, _, name in first.schema.snapshot(macros=False)}
    assert second.schema.snapshot(macros=False) == {}
    first.close()
    assert second.is_fit()
    assert not first.is_fit()


def test_a_closed_session_leaves_no_database(open_engine: Open) -> None:
    engine, other = open_engine(), open_engine()
    names = set(engine._databases)
    listed = "SELECT datname::text FROM pg_database"
    assert names <= {name for (name,) in other.binder.fetchall(listed)}
    directory = Path(engine.directory)
    engine.close()
    assert names.isdisjoint(name for (name,) in other.binder.fetchall(listed))
    assert not directory.exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_it_goes_with_its_process(how: signal.Signals | None) -> None:
    with child() as (process, folder, _):
        assert folder.exists()
        assert is_used(folder)
        if how is None:
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(how)
        process.wait(_PATIENCE_S)
        assert until(lambda: not folder.exists() and not is_used(folder))


def test_what_two_kills_leave_is_removed_by_the_next_start() -> None:
    with child() as (process, folder, keeper):
        os.kill(keeper, signal.SIGKILL)
        process.kill()
        process.wait(_PATIENCE_S)
        # The server went with its keeper, but nobody removed its folder.
        assert until(lambda: not is_used(folder))
        assert folder.exists()
    with child():
        assert not folder.exists()


def test_it_goes_with_its_keeper() -> None:
    """And what the keeper cannot remove any more, its process does."""
    with child() as (_, folder, keeper):
        assert is_used(folder)
        os.kill(keeper, signal.SIGKILL)
        assert until(lambda: not is_used(folder))
    assert not folder.exists()


@pytest.mark.parametrize("spaces", [True, False])
def test_a_server_of_another_user_goes_with_its_keeper(
    spaces: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Root is somebody else without name spaces too, as in most containers."""
    if not spaces:
        monkeypatch.setattr(private_postgres, "has_name_spaces", lambda: False)
    # A shell has what it runs in the background ignore it, which a program inherits.
    before = signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(signal.SIGQUIT, before))
    sleep, length = str(shutil.which("sleep")), f"600.{os.getpid()}{int(spaces)}"

    def runs() -> bool:
        return any(command.startswith(f"{sleep}\0{length}") for command in commands())

    with (tmp_path / "lock").open("w") as lock:
        command = private_postgres.as_owner([sleep, length])
        number = lock.fileno()
        words = [str(os.getpid()), str(number), str(tmp_path / "folder"), *command]
        with subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, *words], stdin=subprocess.PIPE,
            pass_fds=[number],
        ) as process:  # fmt: skip
            assert until(runs)
            process.kill()
    assert until(lambda: not runs())


def test_what_is_left_behind_elsewhere_is_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory had no room when that server started."""
    left = tmp_path / "louver-local-left"
    left.mkdir()
    (left / "lock").touch()
    (left / "rows").write_text("canary")
    monkeypatch.setattr(server, "_ON_DISK", tmp_path)
    server._started(0).end()
    assert not left.exists()


def test_a_folder_in_use_is_left_alone() -> None:
    with child() as (_, first, _), child() as (_, second, _):
        assert first.exists()
        assert second.exists()


def test_a_server_that_died_is_renewed(open_engine: Open) -> None:
    engine = open_engine(("TABLE", "CREATE TABLE t (a int)"))
    rows = pa.table({"a": pa.array([1], pa.int32())})
    engine.finish({("", "r"): ([("a", "int")], rows)}, "CREATE TEMP TABLE k AS SELECT * FROM r",
                  keeps=True)  # fmt: skip
    engine.temporary.mirror()
    generation, folder = engine.generation, engine._server.folder
    os.kill(engine._server.keeper.pid, signal.SIGTERM)
    engine._server.keeper.wait(_PATIENCE_S)
    assert not folder.exists()
    with pytest.raises(errors.OperationalError) as error:
        engine.finish({}, "SELECT 1")
    assert error.value.code == "postgres.lost"
    assert not engine.is_fit()
    engine.renew(catalog_of(("TABLE", "CREATE TABLE t (a int)")))
    assert engine.is_fit()
    assert engine.generation != generation
    assert engine.describe("SELECT * FROM t") == [("a", "integer")]
    # What only the server had is gone with it.
    assert engine.temporary.names == frozenset()


def test_a_session_that_was_ended_is_renewed(open_engine: Open) -> None:
    engine, other = open_engine(), open_engine()
    with pytest.raises(errors.Error):
        engine.finish({}, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert not engine.is_fit()
    engine.renew(catalog_of())
    assert engine.is_fit()
    assert other.is_fit()


def test_a_server_that_does_not_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SETTINGS", {"shared_buffers": "much"})
    # Other processes have servers in the usual folder.
    base = Path(tempfile.mkdtemp(dir=server._base()))
    monkeypatch.setattr(server, "_base", lambda: base)
    with pytest.raises(errors.OperationalError) as error:
        server._started(0)
    assert error.value.code == "server.start"
    assert "shared_buffers" in error.value.message
    base.rmdir()


def test_threads(open_engine: Open) -> None:
    results = []

    def work(number: int) -> None:
        engine = open_engine()
        rows = pa.table({"a": pa.array([number], pa.int32())})
        for _ in range(20):
            done = engine.finish({("public", "t"): ([("a", "int")], rows)}, "SELECT a FROM t")
            results.append(done.column(0)[0].as_py() == number)

    # A server is of the process, not of the thread that asked for it first.
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80
    assert open_engine().is_fit()


def test_ctrl_c_ends_a_query(engine: PostgresLocalEngine) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.finish({}, "SELECT pg_sleep(60)")
    timer.join()
    assert engine.is_fit()
    assert engine.finish({}, "SELECT 1 AS a").to_pylist() == [{"a": 1}]


def test_another_thread_ends_a_query(engine: PostgresLocalEngine) -> None:
    timer = threading.Timer(0.3, engine.interrupt)
    timer.start()
    with pytest.raises(errors.Error) as error:
        engine.finish({}, "SELECT pg_sleep(60)")
    timer.join()
    assert error.value.code == "interrupted"
    assert engine.finish({}, "SELECT 1 AS a").to_pylist() == [{"a": 1}]
