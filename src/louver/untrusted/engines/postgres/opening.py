"""A session of a server: the first host of the target that answers and is what it asks for."""

from __future__ import annotations

import re

from louver import errors
from louver._rust import postgres
from louver.untrusted.engines.postgres.address import Host, Target
from louver.untrusted.engines.postgres.failures import translated

#: Older ones lack what is sent, and their makers mend them no more.
OLDEST_VERSION = 14
_PARAMETERS = [
    ("TimeZone", "UTC"), ("DateStyle", "ISO, YMD"), ("standard_conforming_strings", "on"),
]  # fmt: skip
#: After these the next host is asked.
_NEXT_HOST = frozenset(("server.lost", "server.busy", "server.tls"))
_VERSION = re.compile(r"\d{1,4}")
_RECOVERS = "SELECT pg_catalog.pg_is_in_recovery()"


def opened(target: Target) -> postgres.Session:
    """A new session. Of several hosts that fail, the last one's error comes out."""
    *others, last = target.hosts
    for host in others:
        try:
            return _of_host(target, host)
        except errors.Error as error:
            if error.code not in _NEXT_HOST:
                raise
    return _of_host(target, last)


def _of_host(target: Target, host: Host) -> postgres.Session:
    address = target.address_of([host])
    with translated(address):
        session = postgres.Session(
            host.name, host.port, target.user, target.database, host.password,
            [*_PARAMETERS, ("application_name", target.application)], target.timeout_s * 1000,
            tls=host.encryption.tls, binding=host.encryption.binding,
        )  # fmt: skip
    try:
        _require(session, target, address)
    except BaseException:
        session.close()
        raise
    return session


def _require(session: postgres.Session, target: Target, address: str) -> None:
    said = session.parameters()
    version = said.get("server_version", "")
    match = _VERSION.match(version)
    if match is None or int(match[0]) < OLDEST_VERSION:
        raise errors.make(
            "server.version",
            place=address,
            version=version[:40] or "unknown",
            oldest=OLDEST_VERSION,
        )
    if target.attributes == "any":
        return
    recovers = said.get("in_hot_standby")
    if recovers is None:  # a pooler does not hand it on
        with translated(address):
            ((_, _, arrays),) = session.run([(_RECOVERS, [])])
        recovers = "on" if arrays[0][0].as_py() else "off"
    refuses = said.get("default_transaction_read_only") == "on"
    if recovers == "on" or (target.attributes == "read-write" and refuses):
        raise errors.make(
            "server.lost", place=address, detail=f"it is not {target.attributes}, but a standby"
            if recovers == "on" else "its transactions are read-only unless they say otherwise",
        )  # fmt: skip
