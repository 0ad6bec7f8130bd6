"""Snapshots that the client believes: signed, of this table, and never older than one seen."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from louver import errors
from louver.trusted.lake.keys import TableKeys
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.pin import Pin
from louver.untrusted.lake import root as roots
from louver.untrusted.lake.plan import live_ordinals
from louver.untrusted.lake.root import Ancestor, Root
from louver.untrusted.lake.warehouse import NAMESPACE, Warehouse

_PURPOSE = "lake root"


@dataclass(frozen=True)
class Snapshot:
    """A table at one moment. `id` 0 is the table before its first snapshot.

    Attributes:
        root: the signed root; its parts in order number the files.
        digest: SHA-256 of the root's file.
    """

    id: int
    root: Root
    digest: bytes

    @property
    def sequence(self) -> int:
        """1 for the first snapshot, and one more for every next one."""
        return self.root.sequence

    @property
    def made(self) -> datetime:
        """When it was made, by the clock of who made it."""
        return datetime.fromtimestamp(self.root.made_ms / 1_000, UTC)

    @property
    def files_total(self) -> int:
        """Live files."""
        return self.root.files

    @property
    def rows(self) -> int:
        """Rows of the live files."""
        return self.root.rows

    @property
    def bytes(self) -> int:
        """Bytes of the live files."""
        return self.root.size

    @cached_property
    def unindexed(self) -> int:
        """Live files that no index knows; they are always kept."""
        return sum(part.live_count for part in self.root.parts if not part.segments)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """The number of every part's first live file."""
        counts = [part.live_count for part in self.root.parts]
        return np.cumsum([0, *counts], dtype=np.int64)

    def place(self, number: int) -> tuple[int, int]:
        """The part and the ordinal in it of the live file of this number."""
        if not 0 <= number < self.files_total:
            raise errors.make("internal", detail="a file number of another snapshot")
        part = int(np.searchsorted(self.firsts, number, side="right")) - 1
        ordinals = self._ordinals.get(part)
        if ordinals is None:
            ordinals = self._ordinals[part] = live_ordinals(self.root.parts[part])
        return part, int(ordinals[number - self.firsts[part]])

    @cached_property
    def _ordinals(self) -> dict[int, NDArray[np.int64]]:
        """The live ordinals of parts, as far as they were asked for."""
        return {}


def empty(table: Table) -> Snapshot:
    """A table before its first snapshot."""
    return Snapshot(0, Root(table.id, 0, 0, 0, 0, 0, 0, (), (), (), ()), b"")


class Snapshots:
    """Reads, verifies and pins the snapshots of a warehouse's tables."""

    def __init__(self, warehouse: Warehouse, pin: Pin | None) -> None:
        """Without a pin, what was seen is remembered until the process ends."""
        self._warehouse = warehouse
        self._pin = pin
        self._seen: dict[int, tuple[int, str]] = {}
        self._heads: dict[int, tuple[str, Snapshot]] = {}

    def head(self, table: Table, keys: TableKeys) -> Snapshot:
        """The newest snapshot; `lake.rollback` when a newer one, or another, was seen before."""
        name = name_of(table)
        # Taken before the server is asked: what others commit meanwhile must not look newer than
        # an answer that was the newest when it was given.
        seen = self.last(table)
        known = self._heads.get(table.id)
        if known is not None and known[0] == self._warehouse.pointer(name):
            # Another process may have seen a later one before.
            self.require_fresh(table, known[1], seen)
            return known[1]
        listing = self._warehouse.listing(name)
        current = listing.current
        found = empty(table)
        if current is not None:
            found = self.read(table, keys, current.id, current.root_path)
        self.require_fresh(table, found, seen)
        self.remember(table, found)
        self._heads[table.id] = (listing.pointer, found)
        return found

    def at(self, table: Table, keys: TableKeys, when: int | datetime) -> Snapshot:
        """The snapshot of an id, or the newest one at a time; `lake.snapshot` without such."""
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
        found = self.read(table, keys, wanted.snapshot_id, paths[wanted.snapshot_id])
        if found.digest != wanted.digest:
            raise _tampered(table, "a snapshot differs from the one in later snapshots")
        return found

    def read(self, table: Table, keys: TableKeys, snapshot_id: int, path: str) -> Snapshot:
        """A snapshot whose root is signed, of this table and of this id."""
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
        """Nothing older will be believed any more."""
        digest = snapshot.digest.hex()[:32]
        if snapshot.sequence > self.last(table)[0]:
            self._seen[table.id] = (snapshot.sequence, digest)
            if self._pin is not None:
                self._pin.advance_lake(table.id, snapshot.sequence, digest)

    def forget(self, table: Table) -> None:
        """The table was dropped."""
        self._heads.pop(table.id, None)
        self._seen.pop(table.id, None)
        if self._pin is not None:
            self._pin.forget_lake(table.id)

    def last(self, table: Table) -> tuple[int, str]:
        """The last snapshot seen: its sequence and the beginning of its digest; 0 for none."""
        kept = self._pin.lake_seen(table.id) if self._pin is not None else (0, "")
        return max(kept, self._seen.get(table.id, (0, "")))

    def require_fresh(self, table: Table, found: Snapshot, seen: tuple[int, str]) -> None:
        """It must be the one that was `seen` before, or descend from it; else `lake.rollback`."""
        sequence, digest = seen
        if not sequence:
            return
        same: bytes | None = None
        back = found.sequence - sequence
        if back == 0:
            same = found.digest
        elif 0 < back <= len(found.root.history):
            same = found.root.history[-back].digest
        # Of an ancestor that even the newest root has forgotten, nothing can be said.
        forgotten = back > len(found.root.history)
        if not forgotten and (same is None or same.hex()[:32] != digest):
            raise errors.make(
                "lake.rollback", table=table.label, found=found.sequence, seen=sequence
            )


def signed(table: Table, keys: TableKeys, root: Root) -> Root:
    """The root with its signature."""
    return replace(root, mac=keys.sign(_PURPOSE, _context(table), roots.body(root)))


def ancestors(parent: Snapshot, kept: int) -> tuple[Ancestor, ...]:
    """What a child of this snapshot remembers: at least `kept` ancestors, if there are as many."""
    if not parent.id:
        return ()
    own = Ancestor(parent.id, parent.root.made_ms, parent.digest)
    return (*parent.root.history, own)[-min(kept, roots.MAX_HISTORY) :]


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
