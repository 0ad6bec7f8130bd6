"""From a URL of a lake to what a session needs: control tables, and the store of its files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from louver import errors
from louver.names import fold
from louver.trusted.executor.lake.storage import LakeStorage
from louver.trusted.executor.session import Session
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.lake import LakeEngine
from louver.untrusted.lake.http import RemoteControl, RemotePruner, Service
from louver.untrusted.lake.remote import RemoteWarehouse
from louver.untrusted.lake.secret import read_secret
from louver.untrusted.lake.warehouse import Warehouse

_HIDDEN = ("key", "secret", "token", "password", "credential")
"""Parts of names of properties whose values must not stand in a URL, for others see it."""


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake that is open: its control tables, and what makes a session's storage."""

    engine: LakeEngine
    storage: Callable[[Session], LakeStorage]


def connected(url: str, ring: KeyRing) -> Lake:
    """Open the lake of a URL.

    ``lake:///directory`` is embedded; its query may name where the files lie and another Iceberg
    catalog (``?warehouse=s3://bucket/place&catalog=rest&uri=…``). ``lake+http://host:port`` asks a
    pruning service.
    """
    scheme = fold(url.partition("://")[0])
    if scheme != "lake":
        return _remote(url, ring)
    directory, properties = located(url)
    place = properties.pop("warehouse", directory)
    engine = LakeEngine(directory)
    try:
        warehouse = Warehouse.open(place, properties)
    except BaseException:
        engine.close()
        raise
    return Lake(engine, lambda s: LakeStorage(s, LakeStore(warehouse, ring, s.store.pin)))


def located(url: str) -> tuple[str, dict[str, str]]:
    """The directory of a ``lake://`` URL, and its properties."""
    parts = urlsplit(url)
    name = unquote(parts.path[1:])
    if parts.netloc:
        raise errors.make("url.format", detail="lake:///directory does not take a host")
    if not name or "\0" in name:
        raise errors.make("url.format", detail="a directory must follow lake:///")
    if Path(name).is_file():
        raise errors.make("url.format", detail=f"{name} is a file; a lake is a directory")
    properties = dict(parse_qsl(parts.query, keep_blank_values=True))
    for key in properties:
        if any(word in fold(key) for word in _HIDDEN):
            raise errors.make(
                "url.format",
                detail=f"{key} in a URL would be seen by others; set it in the environment",
            )
    return name.rstrip("/") or "/", properties


def _remote(url: str, ring: KeyRing) -> Lake:
    """A lake behind a pruning service. A shared secret and authorities to trust come from files
    that the environment names, for a URL is seen by others.
    """
    secret = os.environ.get("LOUVER_AUTHORIZATION")
    authorization = read_secret(secret) if secret else None
    service = Service(url, authorization, os.environ.get("LOUVER_CERTIFICATES") or None)
    engine = LakeEngine.over(RemoteControl(service))
    try:
        warehouse = RemoteWarehouse(service)
    except BaseException:
        engine.close()
        raise
    pruner = RemotePruner(service)
    return Lake(
        engine, lambda s: LakeStorage(s, LakeStore(warehouse, ring, s.store.pin, pruner=pruner))
    )


def place_of(url: str) -> str:
    """The stable name of the lake at a URL, as its engine gives it."""
    scheme = fold(url.partition("://")[0])
    if scheme != "lake":
        return url.rstrip("/")
    return "lake:" + str(Path(located(url)[0]).absolute())
