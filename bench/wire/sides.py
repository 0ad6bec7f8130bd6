"""A front door, a pooler if there is one, and the server itself: what clients connect to.

One private server has a database with a front door before it, and one with plaintext tables, to
which clients connect directly. All of it is reached by Unix sockets.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from bench import data
from louver.untrusted.servers import private_postgres as servers
from tools import drivers

#: Each client of the door takes two connections to the server, up to five within transactions.
SETTINGS = {"max_connections": "1100", "shared_buffers": "256MB", "autovacuum": "on"}
POOLER = drivers.pooler_command(Path(sys.prefix) / "drivers")
_PORT = 6432
_POOLER_SETTINGS = """\
[databases]
* = host={server} port={port} user={user}
[pgbouncer]
pool_mode = session
default_pool_size = 40
unix_socket_dir = {folder}
listen_addr =
listen_port = {own}
auth_type = any
logfile = {folder}/pooler.log
"""


@dataclass(frozen=True, slots=True)
class Side:
    """Where clients connect: a folder with a socket, its port and the database; ``enc`` is what
    follows the types of columns there.
    """

    name: str
    folder: str
    port: int
    database: str
    enc: str = ""

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A client, whose statements are prepared the first time, and are transactions."""
        con = psycopg.connect(
            host=self.folder, port=self.port, user=servers.USER, dbname=self.database,
            autocommit=True, **{"prepare_threshold": 0, **options},
        )  # fmt: skip
        con.add_notice_handler(lambda _: None)
        return con

    def pgbench(self, script: str, clients: int, seconds: float) -> float:
        """Transactions a second of a script of pgbench's, settled: in so many seconds behind as
        many that do not count; of three transactions of each client where it is less than one.
        """
        if seconds < 1:
            said, _ = self._pgbench(script, clients, ["--transactions=3"])
            words = dict(line.split(" = ", 1) for line in said.splitlines() if " = " in line)
            return float(words["tps"].split()[0])
        whole = round(2 * seconds)
        _, progress = self._pgbench(script, clients, [f"--time={whole}", "--progress=1"])
        rates = [
            float(match[2])
            for match in re.finditer(r"progress: ([0-9.]+) s, ([0-9.]+) tps", progress)
            if float(match[1]) > whole / 2
        ]
        return sum(rates) / len(rates)

    def _pgbench(self, script: str, clients: int, options: Sequence[str]) -> tuple[str, str]:
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script)
            file.flush()
            binary = servers.wheel_binaries()
            assert binary is not None  # requirements.lock has it
            done = subprocess.run(
                [binary / "pgbench", "-h", self.folder, "-p", str(self.port), "-U", servers.USER,
                 "--no-vacuum", "--protocol=prepared", f"--file={file.name}", f"--client={clients}",
                 "--max-tries=100", *options, self.database],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout, done.stderr


@dataclass(slots=True)
class Sides:
    """The door, the server itself, and the pooler if there is one; and the door's process."""

    door: Side
    direct: Side
    pooler: Side | None
    process: int
    server: Side = field(init=False)

    def __post_init__(self) -> None:
        """The door's database as the server has it."""
        direct = self.direct
        self.server = Side("server", direct.folder, direct.port, self.door.database)

    def all(self) -> Sequence[Side]:
        """Those that are measured, the door first."""
        return [side for side in (self.door, self.direct, self.pooler) if side is not None]

    def peers(self) -> Sequence[Side]:
        """Those with plaintext tables."""
        return self.all()[1:]

    def both(self) -> tuple[Side, Side]:
        """Where tables are made."""
        return self.door, self.direct

    def door_mib(self) -> float:
        """The resident memory of the door's process."""
        for line in Path(f"/proc/{self.process}/status").read_text("ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the door has ended")


@contextmanager
def opened(profile: str = "cryptdb", *words: str) -> Iterator[Sides]:
    """New databases on a new server, and a door with these further options."""
    binary = servers.wheel_binaries()
    assert binary is not None
    with ExitStack() as stack:
        server = stack.enter_context(servers.started(binary, servers.SETTINGS | SETTINGS))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="louver-wire-")))
        address = str(server.folder)
        admin = Side("admin", address, servers.PORT, "postgres")
        with admin.connect() as con:
            for name in ("louver", "plain", "pooled"):
                con.execute(f"CREATE DATABASE {name}")
        direct = Side("direct", address, servers.PORT, "plain")
        process = stack.enter_context(_door(folder, address, profile, words))
        door = Side("the door", str(folder), _PORT, "louver", "ENC")
        pooler = stack.enter_context(_pooler(address))
        yield Sides(door, direct, pooler, process.pid)


@contextmanager
def _door(
    folder: Path, address: str, profile: str, words: Sequence[str]
) -> Iterator[subprocess.Popen[str]]:
    import louver

    data.state(folder)
    louver.KeyRing.create(folder / "key")
    url = f"postgresql:///louver?host={address}&port={servers.PORT}&user={servers.USER}"
    command = [
        sys.executable, "-m", "louver.trusted.apps.cli", "serve", "pg", "--json", "--upstream", url,
        "--keys", str(folder / "key"), "--profile", profile, "--connections", "1000",
        "--listen", str(folder / f".s.PGSQL.{_PORT}"), *words,
    ]  # fmt: skip
    with _running(command, dict(os.environ)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "listen" not in json.loads(line or "{}"):
            raise RuntimeError(f"the door has not started: {line}")
        yield process


@contextmanager
def _pooler(address: str) -> Iterator[Side | None]:
    if POOLER is None:
        yield None
        return
    with servers.folder_of_a_server() as folder:
        text = _POOLER_SETTINGS.format(
            server=address, port=servers.PORT, user=servers.USER, folder=folder, own=_PORT
        )
        (folder / "settings").write_text(text, encoding="utf-8")
        command = servers.as_owner([*POOLER, "-q", str(folder / "settings")])
        with _running(command, dict(os.environ)):
            side = Side("PgBouncer", str(folder), _PORT, "pooled")
            _wait(folder / f".s.PGSQL.{_PORT}")
            yield side


@contextmanager
def _running(
    command: Sequence[str], environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait(path: Path) -> None:
    import time

    end = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > end:
            raise RuntimeError(f"{path} is not there")
        time.sleep(0.02)
