"""The front door's process: addresses, users, sessions, and its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from louver import errors
from louver._rust import proxy
from louver.trusted.apps.pgproxy import users, visitors
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.apps.pgproxy.failures import Failed, failed, fields_of
from louver.trusted.apps.pgproxy.options import Address
from louver.trusted.apps.pgproxy.upstream import Upstream
from louver.trusted.apps.pgproxy.visitors import Visitor
from louver.trusted.client import connect
from louver.trusted.executor.session import Session


@dataclass(frozen=True, slots=True)
class Options:
    """What a front door serves, and to whom."""

    upstream: str
    keys: str
    addresses: Sequence[Address]
    profile: str | None = None
    policy: str | None = None
    users: Path | None = None
    certificate: tuple[Path, Path] | None = None
    tls_required: bool = False
    most_clients: int = 500
    patience_ms: int = 30_000
    read_only: bool = False
    by_transaction: bool = False
    pool_size: int = 16
    pool_patience_ms: int = 60_000
    audit: Path | None = None
    #: a path, or - for the standard error
    log: str | None = None
    log_level: str = "info"
    #: where operators ask
    monitor: Address | None = None


@dataclass(slots=True)
class Door:
    """Knows who may come, and opens sessions for clients."""

    options: Options
    #: opened once, for all sessions
    ring: Any
    database: str

    def visitor(
        self, user: str, database: str, parameters: Sequence[tuple[str, str]],
        words: Sequence[tuple[str, str]],
    ) -> Visitor:  # fmt: skip
        """A client that has said who it is; ``words`` are those of the user's line in the file of
        users.
        """
        if database not in (self.database, user):
            raise failed("3D000", f'database "{database}" does not exist')
        try:
            rights = users.rights(user, words)
        except errors.Error as error:
            raise Failed(fields_of(error, ""), ends=True) from None
        return visitors.of(user, parameters, rights, shared=self.options.by_transaction)

    def open(self) -> Client:
        """What runs statements, of no client yet."""
        try:
            return Client(self.session(), shared=self.options.by_transaction)
        except errors.Error as error:
            raise Failed(fields_of(error, ""), ends=True) from None

    def session(self) -> Session:
        """A session of the database."""
        options = self.options
        return connect.open_session(
            options.upstream, self.ring, options.profile, options.policy,
            read_only=options.read_only,
        )  # fmt: skip


Bound = Sequence[tuple[str, int]]
"""Names and ports in the network."""


def served(options: Options, ready: Callable[[Bound, Bound], None]) -> int:
    """Serve until a signal ends it; how many clients were left then. ``ready`` is called with the
    addresses in the network, and the monitor's.
    """
    ring = connect.open_keys(options.keys)
    door = Door(options, ring, _database(options.upstream))
    # What is wrong with it is said now.
    Client(door.session()).close()
    try:
        server = proxy.Server(
            list(options.addresses), door, users=options.users, certificate=options.certificate,
            tls_required=options.tls_required, most_clients=options.most_clients,
            by_transaction=options.by_transaction, pool_size=options.pool_size,
            pool_patience_ms=options.pool_patience_ms, audit=options.audit, log=_log(options),
            monitor=(options.monitor, Upstream(options.upstream)) if options.monitor else None,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise errors.make("serve.start", detail=str(error)) from None
    left: list[int] = []
    thread = threading.Thread(target=lambda: left.append(server.run(options.patience_ms)))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    thread.start()
    ready(server.addresses, server.monitored)
    thread.join()
    return left[0] if left else 0


def _log(options: Options) -> tuple[str | None, str] | None:
    if options.log is None:
        return None
    return None if options.log == "-" else options.log, options.log_level


def _database(url: str) -> str:
    """The database that a URL names."""
    path = url.partition("?")[0].partition("://")[2]
    return path.rpartition("/")[2] if "/" in path else ""
