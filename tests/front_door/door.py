"""A front door in a process of its own, over a database of the shared server."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests import shared
from tests.postgres import servers

_numbers = itertools.count()
_PATIENCE_S = 60
USER = "anna"


@dataclass
class Door:
    """A front door that runs: its port, the database's URL and name, and its process."""

    port: int
    url: str
    database: str
    process: subprocess.Popen[str]

    @property
    def dsn(self) -> str:
        """What clients connect with."""
        return f"host=127.0.0.1 port={self.port} user={USER} dbname={self.database}"

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A client of psycopg's, of which each statement is a transaction."""
        return psycopg.connect(self.dsn, autocommit=True, **options)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[str, str]:
        """End it; what it printed."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=_PATIENCE_S)


@contextmanager
def opened(
    *words: str,
    profile: str = "cryptdb",
    url: str = "",
    environment: Sequence[tuple[str, str]] = (),
) -> Iterator[Door]:
    """A door with these options, which is ended with the block."""
    name = f"door_{os.getpid()}_{next(_numbers)}"
    url = url or servers.database_url(name)
    command = [
        sys.executable, "-m", "louver.trusted.apps.cli", "serve", "pg", "--json", "--upstream", url,
        "--keys", str(shared.key_file()), "--profile", profile, "--listen", "127.0.0.1:0", *words,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **dict(environment)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate(timeout=_PATIENCE_S)[1])
        if "listen" not in json.loads(line):
            raise AssertionError(line)
        port = int(json.loads(line)["listen"][0].rpartition(":")[2])
        database = url.partition("?")[0].rpartition("/")[2]
        yield Door(port, url, database, process)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def plain() -> psycopg.Connection[Any]:
    """A client of a plaintext database on the same server, without anything in between."""
    server, name = servers.shared(), f"beside_{os.getpid()}_{next(_numbers)}"
    servers.database_url(name)
    return psycopg.connect(
        host=str(server.folder), port=servers.PORT, user=servers.USER, dbname=name, autocommit=True
    )


def at_server(door: Door) -> psycopg.Connection[Any]:
    """A client of the database behind a door: what the server has."""
    server = servers.shared()
    return psycopg.connect(
        host=str(server.folder), port=servers.PORT, user=servers.USER, dbname=door.database,
        autocommit=True,
    )  # fmt: skip


def root() -> Path:
    """The folder of the repository."""
    return Path(__file__).parents[2]
