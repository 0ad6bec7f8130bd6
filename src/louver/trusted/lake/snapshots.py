"""Verified snapshots: signed, of this table, and never older than one already seen."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from louver import errors
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.index_keys import LakeKeys
from louver.trusted.vault.pin import Pin
from louver.untrusted.lake import root as roots
from louver.untrusted.lake.plan import live_ordinals
from louver.untrusted.lake.root import Ancestor, Root
from louver.untrusted.lake.warehouse import NAMESPACE, Warehouse

_PURPOSE = "lake root"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a table. `id` 0 is the table before its first snapshot.

    Attributes:
        root: the signed root; the order of its parts numbers the files.
        digest: SHA-256 of the root's file.
    """

    id: int
    root: Root
    digest: bytes

    @property
    def sequence(self) -> int:
        """1 for the first snapshot, increasing by one with each."""
        return self.root.sequence

    @property
    def created_at(self) -> datetime:
        """The creation time, by the writer's clock."""
        return datetime.fromtimestamp(self.root.made_ms / 1_000, UTC)

    @property
    def files_total(self) -> int:
        """The number of live files."""
        return self.root.files

    @property
    def rows(self) -> int:
        """The number of rows in live files."""
        return self.root.rows

    @property
    def bytes(self) -> int:
        """The size of the live files in bytes."""
        return self.root.size

    @cached_property
    def unindexed(self) -> int:
        """The number of live files without an index; they are never skipped."""
        return sum(part.live_count for part in self.root.parts if not part.segments)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """The number of each part's first live file."""
        counts = [part.live_count for part in self.root.parts]
        return np.cumsum([0, *counts], dtype=np.int64)

    def locate(self, number: int) -> tuple[int, int]:
        """The part, and the ordinal in it, of the live file with this number."""
        if not 0 <= number < self.files_total:
            raise errors.make("internal", detail="a file number of another snapshot")
        part = int(np.searchsorted(self.firsts, number, side="right")) - 1
        ordinals = self._ordinals.get(part)
        if ordinals is None:
            ordinals = self._ordinals[part] = live_ordinals(self.root.parts[part])
        return part, int(ordinals[number - self.firsts[part]])

    @cached_property
    def _ordinals(self) -> dict[int, NDArray[np.int64]]:
        """The live ordinals of the parts requested so far."""
        return {}


def empty(table: Table) -> Snapshot:
    """The table before its first snapshot."""
    return Snapshot(0, Root(table.id, 0, 0, 0, 0, 0, 0, (), (), (), ()), b"")


class Snapshots:
    """Reads, verifies and pins the snapshots of a warehouse's tables."""

    def __init__(self, warehouse: Warehouse, pin: Pin | None) -> None:
        """Without a pin, seen snapshots are remembered until the process ends."""
        self._warehouse = warehouse
        self._pin = pin
        self._seen: dict[int, tuple[int, str]] = {}
        self._heads: dict[int, tuple[str, Snapshot]] = {}

    def head(self, table: Table, keys: LakeKeys) -> Snapshot:
        """The newest snapshot; `lake.rollback` if a newer or a different one was seen before."""
        name = name_of(table)
        # Read before the request: a commit that another writer makes meanwhile must not look newer
        # than a response that was current when it was sent.
        seen = self.last(table)
        known = self._heads.get(table.id)
        if known is not None and known[0] == self._warehouse.pointer(name):
            # Another process may have seen a later snapshot.
            self.require_fresh(table, known[1], seen)
            return known[1]
        listing = self._warehouse.listing(name)
        current = listing.current
        snapshot = empty(table)
        if current is not None:
            snapshot = self.read(table, keys, current.id, current.root_path)
        self.require_fresh(table, snapshot, seen)
        self.remember(table, snapshot)
        self._heads[table.id] = (listing.pointer, snapshot)
        return snapshot

    def at(self, table: Table, keys: LakeKeys, when: int | datetime) -> Snapshot:
        """The snapshot with an id, or the newest one at a time; `lake.snapshot` if missing."""
        head = self.head(table, keys)
        wanted = _choose(head, when)
        if wanted is None:
            raise errors.make("lake.snapshot", table=table.label, snapshot=f"{when}")
        if wanted.snapshot_id == head.id:
            return head
        listed = self._warehouse.listing(name_of(table)).snapshots
        paths = {item.id: item.root_path for item in listed}
        if wanted.snapshot_id not in paths:
            raise errors.make("lake.snapshot", table=table.label, snapshot=f"{when}")
        snapshot = self.read(table, keys, wanted.snapshot_id, paths[wanted.snapshot_id])
        if snapshot.digest != wanted.digest:
            raise _tampered(table, "a snapshot differs from the one in later snapshots")
        return snapshot

    def read(self, table: Table, keys: LakeKeys, snapshot_id: int, path: str) -> Snapshot:
        """Read a snapshot; its root must be signed, of this table and of this id."""
        full = f"{NAMESPACE}/{name_of(table)}/{path}"
        data = self._warehouse.root_bytes(name_of(table), path)
        root = roots.decode(data, full)
        body = data[: -roots.MAC_BYTES]
        try:
            keys.verify(_PURPOSE, _context(table), body, root.mac)
        except errors.VerificationError as error:
            raise _tampered(table, "the signature of a snapshot does not match") from error
        if (root.table_id, root.snapshot_id) != (table.id, snapshot_id):
            raise _tampered(table, "a snapshot was replaced by another one")
        return Snapshot(snapshot_id, root, roots.digest(data))

    def remember(self, table: Table, snapshot: Snapshot) -> None:
        """Record a snapshot as seen; older ones are refused from now on."""
        digest = snapshot.digest.hex()[:32]
        if snapshot.sequence > self.last(table)[0]:
            self._seen[table.id] = (snapshot.sequence, digest)
            if self._pin is not None:
                self._pin.advance_lake(table.id, snapshot.sequence, digest)

    def forget(self, table: Table) -> None:
        """Forget a dropped table."""
        self._heads.pop(table.id, None)
        self._seen.pop(table.id, None)
        if self._pin is not None:
            self._pin.forget_lake(table.id)

    def last(self, table: Table) -> tuple[int, str]:
        """Sequence and digest prefix of the last snapshot seen; sequence 0 if none."""
        pinned = self._pin.lake_seen(table.id) if self._pin is not None else (0, "")
        return max(pinned, self._seen.get(table.id, (0, "")))

    def require_fresh(self, table: Table, snapshot: Snapshot, seen: tuple[int, str]) -> None:
        """The snapshot must be `seen` or descend from it; otherwise `lake.rollback`."""
        sequence, digest = seen
        if not sequence:
            return
        same: bytes | None = None
        back = snapshot.sequence - sequence
        if back == 0:
            same = snapshot.digest
        elif 0 < back <= len(snapshot.root.history):
            same = snapshot.root.history[-back].digest
        # An ancestor that even the newest root no longer lists cannot be checked.
        forgotten = back > len(snapshot.root.history)
        if not forgotten and (same is None or same.hex()[:32] != digest):
            raise errors.make(
                "lake.rollback", table=table.label, found=snapshot.sequence, seen=sequence
            )


def signed(table: Table, keys: LakeKeys, root: Root) -> Root:
    """The root with its signature."""
    return replace(root, mac=keys.sign(_PURPOSE, _context(table), roots.body(root)))


def ancestors(parent: Snapshot, least: int) -> tuple[Ancestor, ...]:
    """The ancestors listed by a child of this snapshot: at least `least`, if that many exist."""
    if not parent.id:
        return ()
    own = Ancestor(parent.id, parent.root.made_ms, parent.digest)
    return (*parent.root.history, own)[-min(least, roots.MAX_HISTORY) :]


def name_of(table: Table) -> str:
    """The table's name in Iceberg."""
    return f"t{table.id}"


def _choose(head: Snapshot, when: int | datetime) -> Ancestor | None:
    if not head.id:
        return None
    known = [*head.root.history, Ancestor(head.id, head.root.made_ms, head.digest)]
    if isinstance(when, datetime):
        until_ms = when.astimezone(UTC).timestamp() * 1_000
        fitting = [item for item in known if item.made_ms <= until_ms]
    else:
        fitting = [item for item in known if item.snapshot_id == when]
    return fitting[-1] if fitting else None


def _context(table: Table) -> bytes:
    return struct.pack(">Q", table.id)


def _tampered(table: Table, detail: str) -> errors.Error:
    return errors.make("lake.tampered", path=f"table {table.label}", detail=detail)
