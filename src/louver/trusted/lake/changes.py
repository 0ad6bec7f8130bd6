"""Changes of a table: add and remove files in one commit, rebuilt if another commit came first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from louver import errors
from louver.trusted.lake import data
from louver.trusted.lake.bounds import Bounds
from louver.trusted.lake.data import ArrowType, Written
from louver.trusted.lake.parts import (
    Parts,
    PartWithSides,
    Ring,
    gathered,
    index_ids,
    parts_with_sides,
)
from louver.trusted.lake.snapshots import Snapshot, Snapshots, ancestors, empty, name_of, signed
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.index_keys import LakeKeys
from louver.untrusted.lake import root as roots
from louver.untrusted.lake.commit import Base, commit
from louver.untrusted.lake.files import File
from louver.untrusted.lake.plan import files_of
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import FileEntry

#: A root lists at least this many ancestors, and all that have not expired.
LEAST_HISTORY = 1_024


@dataclass(frozen=True, slots=True)
class Lake:
    """Everything that operations on a lake's tables need."""

    warehouse: Warehouse
    ring: Ring
    snapshots: Snapshots
    arrow: ArrowType

    def parts(self, table: Table, keys: LakeKeys) -> Parts:
        """The parts of a table."""
        return Parts(table, keys, self.ring, self.warehouse.objects)

    def discard(self, table: Table, files: Sequence[File]) -> None:
        """Delete data files that belong to no snapshot."""
        for file in files:
            self.warehouse.objects.delete(f"louver/{name_of(table)}/{file.path}")


@dataclass(frozen=True, slots=True)
class Removed:
    """A file to remove, with its position in the snapshot it was read from."""

    file: File
    part: int
    ordinal: int


#: Builds new parts from the existing parts of a table; the result replaces them.
Remake = Callable[[Parts, Sequence[PartWithSides]], list[PartWithSides]]
#: Builds the new note from the old one, or raises to abort.
Note = Callable[[bytes], bytes]


def change(
    lake: Lake,
    table: Table,
    keys: LakeKeys,
    snapshot: Snapshot,
    added: Sequence[Written],
    removed: Sequence[Removed],
    remake: Remake = Parts.merge,
    note: Note = bytes,
    alone: bool = False,
) -> Snapshot:
    """Commit added files and the removal of files of `snapshot`; return the new snapshot.

    `lake.conflict` if another writer removed one of them first or, with `alone`, committed
    anything after `snapshot`. On failure, the files created for the commit are deleted, unless
    its outcome is unknown; added files stay.
    """
    parts = lake.parts(table, keys)
    snapshots: list[Snapshot] = []
    # A commit of another writer between the base of a try and its check is not a rollback.
    seen = lake.snapshots.last(table)

    def build(base: Base) -> Root:
        head = empty(table)
        if base.parent is not None and base.parent_root is not None:
            head = lake.snapshots.read(table, keys, base.parent, base.parent_root)
        lake.snapshots.require_fresh(table, head, seen)
        if alone and head.id != snapshot.id:
            raise errors.make("lake.conflict", table=table.label)
        left = _without(lake, table, snapshot, head, removed)
        now = [*remake(parts, left), *fresh]
        fields = _fields(lake, table, keys, head, now, added, removed)
        content = note(head.root.note)
        root = signed(table, keys, Root(snapshot_id=base.snapshot_id, note=content, **fields))
        snapshots.append(Snapshot(base.snapshot_id, root, roots.digest(roots.encode(root))))
        return root

    try:
        files = [file for file, _ in added]
        fresh = parts.write(files, Bounds.of([bounds for _, bounds in added])) if files else []
        gone = [item.file for item in removed]
        root, _ = commit(lake.warehouse, name_of(table), files, gone, build)
    except errors.Error as error:
        if error.code != "lake.unsure":
            parts.discard()
        raise
    for path in parts.created:
        if path not in root.sides:
            # The result of a merge onto a base that was no longer the newest.
            lake.warehouse.objects.delete(f"{root.prefix}{path}")
    lake.snapshots.remember(table, snapshots[-1])
    return snapshots[-1]


def touched(lake: Lake, snapshot: Snapshot, numbers: Sequence[int]) -> list[Removed]:
    """The live files with these numbers."""
    by_part: dict[int, list[int]] = {}
    for number in sorted(numbers):
        at, ordinal = snapshot.locate(number)
        by_part.setdefault(at, []).append(ordinal)
    files = []
    for part_number, ordinals in by_part.items():
        part = snapshot.root.parts[part_number]
        listed = files_of(lake.warehouse.objects, snapshot.root.path(part.files), part)
        pairs = zip(listed.files(ordinals), ordinals, strict=True)
        files += [Removed(file, part_number, ordinal) for file, ordinal in pairs]
    return files


def rewritten(
    lake: Lake, table: Table, keys: LakeKeys, snapshot: Snapshot, row_ids: pa.Array
) -> tuple[list[Removed], list[Written]]:
    """Copy on write: the files that contain these rows, and new files with their other rows."""
    ids = np.unique(row_ids.to_numpy(zero_copy_only=False).astype(np.int64))
    numbers = np.unique(ids >> data.POSITION_BITS)
    removed = touched(lake, snapshot, numbers.tolist())

    def rewrite(number: int, item: Removed, file_id: bytes) -> Written | None:
        first = number << data.POSITION_BITS
        inside = ids[(ids >= first) & (ids < first + (1 << data.POSITION_BITS))] - first
        if inside[-1] >= item.file.rows:
            raise errors.make("internal", detail="a row number behind the end of a file")
        mask = np.ones(item.file.rows, bool)
        mask[inside] = False
        if not mask.any():
            return None
        rows = read_whole(lake, table, keys, entry_of(table, item.file, number))
        left = rows.filter(pa.array(mask))
        return data.write_one(lake.warehouse.objects, table, keys, left, file_id)

    with ThreadPoolExecutor(data.THREADS) as pool:
        pairs = zip(numbers.tolist(), removed, strict=True)
        jobs = [pool.submit(rewrite, *pair, data.new_id()) for pair in pairs]
        try:
            copies = [job.result() for job in jobs]
        except BaseException:
            stopped = [job for job in jobs if not job.cancel() and job.exception() is None]
            lake.discard(table, [copy[0] for job in stopped if (copy := job.result()) is not None])
            raise
    return removed, [copy for copy in copies if copy is not None]


def read_whole(lake: Lake, table: Table, keys: LakeKeys, entry: FileEntry) -> pa.Table:
    """All columns of one file."""
    tables = data.read(
        lake.warehouse.objects, table, keys, [entry], table.columns, lake.arrow, False
    )
    return next(tables)


def entry_of(table: Table, file: File, number: int) -> FileEntry:
    """The file as a `FileEntry`, as other modules use it."""
    path = f"louver/{name_of(table)}/{file.path}"
    return FileEntry(path, file.file_id, file.size, file.rows, file.key_metadata, number)


def _without(
    lake: Lake, table: Table, snapshot: Snapshot, head: Snapshot, removed: Sequence[Removed]
) -> list[PartWithSides]:
    """The parts of `head` without these files; parts left empty are dropped."""
    now = parts_with_sides(head.root)
    dead: dict[int, list[int]] = {}
    for at, ordinal in _positions(lake, table, snapshot, head, removed):
        dead.setdefault(at, []).append(ordinal)
    left = []
    for number, item in enumerate(now):
        part = item.part
        gone = dead.get(number, [])
        if gone:
            size = -(-part.count // 8)
            full = (1 << part.count) - 1
            bits = int.from_bytes(part.live, "little") if part.live else full
            for ordinal in gone:
                if not bits >> ordinal & 1:
                    raise errors.make("lake.conflict", table=table.label)
                bits &= ~(1 << ordinal)
            part = replace(part, live=bits.to_bytes(size, "little"))
        if part.live_count:
            left.append(PartWithSides(item.sides, part))
    return left


def _positions(
    lake: Lake, table: Table, snapshot: Snapshot, head: Snapshot, removed: Sequence[Removed]
) -> Iterator[tuple[int, int]]:
    """Positions of the files in `head`; parts may have been merged since `snapshot`."""
    here = {
        (head.root.path(part.files), part.files.offset): number
        for number, part in enumerate(head.root.parts)
    }
    moved: dict[bytes, Removed] = {}
    for item in removed:
        part = snapshot.root.parts[item.part]
        number = here.get((snapshot.root.path(part.files), part.files.offset))
        if number is None:
            moved[item.file.file_id] = item
        else:
            yield number, item.ordinal
    if not moved:
        return
    known = {(snapshot.root.path(part.files), part.files.offset) for part in snapshot.root.parts}
    for position, number in here.items():
        if position in known:
            continue
        part = head.root.parts[number]
        listed = files_of(lake.warehouse.objects, position[0], part)
        for ordinal, file in enumerate(listed.files(range(part.count))):
            if moved.pop(file.file_id, None) is not None:
                yield number, ordinal
    if moved:
        raise errors.make("lake.conflict", table=table.label)


def _fields(
    lake: Lake,
    table: Table,
    keys: LakeKeys,
    head: Snapshot,
    parts: Sequence[PartWithSides],
    added: Sequence[Written],
    removed: Sequence[Removed],
) -> dict[str, Any]:
    """The fields of a new root: those of the previous root with the change applied."""
    sides, listed = gathered(parts)
    old = head.root
    used = dict.fromkeys(segment.index_id for part in listed for segment in part.segments)
    alive = len(lake.warehouse.listing(name_of(table)).snapshots)
    return {
        "table_id": table.id,
        "sequence": old.sequence + 1,
        # Clocks differ between machines, but timestamps must increase with each snapshot.
        "made_ms": max(time.time_ns() // 1_000_000, old.made_ms + 1),
        "files": sum(part.live_count for part in listed),
        "rows": old.rows + sum(f.rows for f, _ in added) - sum(r.file.rows for r in removed),
        "size": old.size + sum(f.size for f, _ in added) - sum(r.file.size for r in removed),
        "indexes": tuple({**used, **dict.fromkeys(index_ids(table, keys))}),
        "sides": sides,
        "parts": listed,
        "history": ancestors(head, max(LEAST_HISTORY, alive + 1)),
    }
