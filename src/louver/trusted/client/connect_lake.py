"""From a URL of a lake to what a session needs: control tables, and the store of its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from louver import errors
from louver.trusted.executor.lake.storage import LakeStorage
from louver.trusted.executor.storage import Parts
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.engine import Engine
from louver.untrusted.engines.lake import LakeEngine, located, open_url
from louver.untrusted.lake.http import RemotePruner
from louver.untrusted.lake.remote import RemoteWarehouse
from louver.untrusted.lake.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake that is open: its control tables, and what makes a session's storage."""

    engine: LakeEngine
    storage: Callable[[Parts], LakeStorage]


def connected(url: str, ring: KeyRing) -> Lake:
    """Open the lake of a URL."""
    engine = open_url(url)
    try:
        return Lake(engine, storage(url, ring, engine))
    except BaseException:
        engine.close()
        raise


def storage(url: str, ring: KeyRing, engine: Engine) -> Callable[[Parts], LakeStorage]:
    """What keeps the tables of a lake, whose control tables are open: its files, here or behind
    the pruning service.
    """
    if not isinstance(engine, LakeEngine):
        raise errors.make("internal", detail="files without the control tables of a lake")
    service = engine.service
    if service is None:
        directory, properties = located(url)
        warehouse = Warehouse.open(properties.pop("warehouse", directory), properties)
        return lambda p: LakeStorage(p, LakeStore(warehouse, ring, p.pin))
    remote, pruner = RemoteWarehouse(service), RemotePruner(service)
    return lambda p: LakeStorage(p, LakeStore(remote, ring, p.pin, pruner=pruner))
