"""From ``providers://a:7001,b:7001`` to a connection."""

from __future__ import annotations

import os
import re
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from louver import errors
from louver.names import fold
from louver.trusted.client.dbapi import Connection, Progress
from louver.trusted.executor.private.fleet import Channel, Fleet
from louver.trusted.executor.private.session import ProviderSession
from louver.untrusted.addresses import read_secret
from louver.untrusted.engines.providers import Channel as NetworkChannel

_SCHEMES = ("owf", "paillier")
_MOST = 5
_HOST = re.compile(r"\[[0-9A-Fa-f:.%]+\]|[^\s:;@/?#\[\]]+")


class ProviderConnection(Connection):
    """A connection whose tables are other people's: it asks, and changes nothing."""

    @property
    def lake(self) -> NoReturn:
        """Not here."""
        raise _refused("files and snapshots of a lake")

    def attach(self, url: str, name: str, keys: Any = None) -> None:
        """Not here."""
        raise _refused("ATTACH")

    def detach(self, name: str) -> None:
        """Not here."""
        raise _refused("DETACH")

    def load(
        self,
        table: str,
        data: Any,
        *,
        encrypt: Any = None,
        progress: Progress | None = None,
        form: object = None,
        policy: object = None,
        create: bool = True,
    ) -> int:
        """Not here."""
        raise _refused("loading a table")

    def commit(self) -> None:
        """Nothing is ever open."""
        self._require_open()

    rollback = commit


def connect(url: str) -> ProviderConnection:
    """Connect to the providers of a URL."""
    return ProviderConnection(open_session(url))


def open_session(url: str) -> ProviderSession:
    """A session over the providers of a URL.

    ``?scheme=paillier`` has sums of three or more providers added up by Paillier's scheme;
    ``?tls=off`` speaks plainly also with other machines. Authorities to trust and a shared secret
    come from files that the environment names, for a URL is seen by others.
    """
    addresses, options = parsed(url)
    secret = os.environ.get("LOUVER_AUTHORIZATION")
    authorization = read_secret(secret) if secret else None
    certificates = os.environ.get("LOUVER_CERTIFICATES") or None
    secure = {"off": False, "on": True}.get(options.get("tls", ""))
    channels: list[Channel] = []
    try:
        channels.extend(
            NetworkChannel(address, certificates, authorization, secure) for address in addresses
        )
    except BaseException:
        for channel in channels:
            channel.close()
        raise
    fleet = Fleet(channels)
    try:
        return ProviderSession(fleet, url, options.get("scheme", _SCHEMES[0]))
    except BaseException:
        fleet.close()
        raise


def parsed(url: str) -> tuple[list[str], dict[str, str]]:
    """The addresses of a URL and its options."""
    rest, _, query = url.partition("://")[2].partition("?")
    addresses = [part.strip() for part in rest.rstrip("/").split(",") if part.strip()]
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        known = {"scheme": _SCHEMES, "tls": ("on", "off")}.get(name)
        if known is None:
            raise errors.make("url.format", detail=f"unknown option of providers://: {name:.40}")
        if value not in known:
            raise errors.make("url.format", detail=f"{name} is one of {', '.join(known)}")
    if "@" in rest:
        # Not shown: what stands before it may be a password.
        raise errors.make(
            "url.format", detail="a URL of providers takes no user or password; a required secret "
            "is read from the file that LOUVER_AUTHORIZATION names",
        )  # fmt: skip
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not _HOST.fullmatch(host) or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise errors.make("url.format", detail=f"{address!r:.80} is not host:port")
    if not 2 <= len(addresses) <= _MOST:
        if len(addresses) > _MOST:
            raise errors.make("url.format", detail=f"at most {_MOST} providers can be asked")
        raise errors.make("provider.few", count=len(addresses))
    if len(set(map(fold, addresses))) != len(addresses):
        raise errors.make("provider.same", first=addresses[0], second="another one of them")
    return addresses, options


def _refused(what: str) -> errors.Error:
    return errors.make(
        "provider.language", detail=what,
        instead="providers serve read-only public data: only SELECT is possible",
    )  # fmt: skip
