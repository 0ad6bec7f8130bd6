"""Maintenance of a table: compaction, reindexing, expiry of snapshots, removal of orphan files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from louver import errors
from louver.trusted.lake import data
from louver.trusted.lake.changes import Lake, Removed, change, entry_of
from louver.trusted.lake.parts import Parts, PartWithSides, parts_with_sides
from louver.trusted.lake.snapshots import Snapshot, name_of
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.index_keys import LakeKeys
from louver.untrusted.lake.commit import TRIES
from louver.untrusted.lake.files import File
from louver.untrusted.lake.plan import files_of, live_ordinals
from louver.untrusted.lake.root import MAX_PART_FILES, Root
from louver.wire.prune import FileEntry

HISTORY = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("sequence", pa.int64()),
        ("made", pa.timestamp("ms", "UTC")),
        ("files", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


def compact(
    lake: Lake, table: Table, keys: LakeKeys, rows_per_file: int, order_by: Sequence[Column]
) -> Snapshot:
    """Rewrite files to have `rows_per_file` rows each, in one commit.

    Without an order, files of that size are not touched. With an order, all rows are sorted, so
    that files have narrow ranges and queries on these columns skip more. The sort may spill to
    disk, encrypted.
    """
    snapshot = lake.snapshots.head(table, keys)
    files = list(listed(lake, snapshot))
    if not order_by:
        files = [item for item in files if item[0].file.rows != rows_per_file]
        if len(files) < 2 and all(item[0].file.rows < rows_per_file for item in files):
            return snapshot
    if not files:
        return snapshot
    entries = [entry_of(table, item.file, number) for item, number in files]
    objects = lake.warehouse.objects
    written: list[data.Written] = []
    try:
        batches = _sorted(lake, table, keys, entries, order_by, rows_per_file)
        written.extend(data.write(objects, table, keys, batches, rows_per_file))
        return change(lake, table, keys, snapshot, written, [item for item, _ in files])
    except BaseException as error:
        if not (isinstance(error, errors.Error) and error.code == "lake.unsure"):
            lake.discard(table, [file for file, _ in written])
        raise


def reindex(lake: Lake, table: Table, keys: LakeKeys) -> Snapshot:
    """Rebuild all segments from the encrypted bounds."""
    snapshot = lake.snapshots.head(table, keys)
    return change(lake, table, keys, snapshot, [], [], _remade) if snapshot.id else snapshot


def history(lake: Lake, table: Table, keys: LakeKeys) -> pa.Table:
    """All existing snapshots, verified, oldest first."""
    lake.snapshots.head(table, keys)
    snapshots = _snapshots(lake, table, keys)
    rows = [
        {
            "snapshot_id": item.id,
            "sequence": item.sequence,
            "made": datetime.fromtimestamp(item.root.made_ms / 1_000, UTC),
            "files": item.files_total,
            "rows": item.rows,
            "bytes": item.bytes,
        }
        for item in snapshots
    ]
    return pa.Table.from_pylist(rows, HISTORY)


def expire(lake: Lake, table: Table, keys: LakeKeys, keep_last: int) -> int:
    """Remove the oldest snapshots, then delete the files that only they referred to."""
    name = name_of(table)
    for _ in range(TRIES):
        head = lake.snapshots.head(table, keys)
        snapshots = _snapshots(lake, table, keys)
        old = [item for item in snapshots[: -max(1, keep_last)] if item.id != head.id]
        if not old:
            return 0
        before = _referred(lake, table, old)
        if not lake.warehouse.expire(name, [item.id for item in old]):
            continue
        # The newest known snapshot keeps its files, whatever is listed by now.
        after = _referred(lake, table, [*_snapshots(lake, table, keys), head])
        for path in sorted(before - after):
            if path.startswith(f"louver/{name}/"):
                lake.warehouse.objects.delete(path)
        return len(old)
    raise errors.make("lake.crowded", table=table.label, tries=TRIES)


def clean(lake: Lake, table: Table, keys: LakeKeys, grace_seconds: float) -> list[str]:
    """Delete files that no snapshot refers to and that are older than the grace period."""
    objects, limit = lake.warehouse.objects, time.time() - grace_seconds
    # Files are listed first, so that a commit made in between counts as a reference.
    there = list(objects.list(f"louver/{name_of(table)}/"))
    head = lake.snapshots.head(table, keys)
    used = lake.warehouse.table_files(name_of(table))
    used |= _referred(lake, table, [*_snapshots(lake, table, keys), head])
    gone = []
    for path in there:
        if path in used:
            continue
        try:
            if objects.modified(path) > limit:
                continue
        except errors.Error as error:
            if error.code == "lake.missing":
                continue
            raise
        objects.delete(path)
        gone.append(path)
    return gone


def listed(lake: Lake, snapshot: Snapshot) -> Iterator[tuple[Removed, int]]:
    """All live files of a snapshot with their numbers."""
    number = 0
    for part, item in enumerate(parts_with_sides(snapshot.root)):
        for file, ordinal in _files(lake, snapshot.root, item):
            yield Removed(file, part, ordinal), number
            number += 1


def _remade(parts: Parts, items: Sequence[PartWithSides]) -> list[PartWithSides]:
    """All parts rebuilt, as few as can hold the files."""
    result: list[PartWithSides] = []
    group: list[PartWithSides] = []
    for item in items:
        held = sum(member.part.live_count for member in group)
        if group and held + item.part.live_count > MAX_PART_FILES:
            result += parts.remake(group)
            group = []
        group.append(item)
    return [*result, *parts.remake(group)] if group else result


def _sorted(
    lake: Lake,
    table: Table,
    keys: LakeKeys,
    entries: Sequence[FileEntry],
    order_by: Sequence[Column],
    rows_per_file: int,
) -> Iterator[pa.Table]:
    columns = table.columns
    rows = data.read(lake.warehouse.objects, table, keys, entries, columns, lake.arrow, False)
    if not order_by:
        yield from rows
        return
    schema = pa.schema([pa.field(column.name, lake.arrow(column.type)) for column in columns])
    batches = (batch for row in rows for batch in row.to_batches())
    with tempfile.TemporaryDirectory(prefix="louver-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": folder,
            "temp_file_encryption": "true",
            "arrow_lossless_conversion": "true",
        }
        with duckdb.connect(config=config) as connection:
            connection.register("source", pa.RecordBatchReader.from_batches(schema, batches))
            ordinals = ", ".join(str(columns.index(column) + 1) for column in order_by)
            relation = connection.execute(f"SELECT * FROM source ORDER BY {ordinals}")
            for batch in relation.to_arrow_reader(rows_per_file):
                yield pa.Table.from_batches([batch]).cast(schema)


def _files(lake: Lake, root: Root, item: PartWithSides) -> Iterator[tuple[File, int]]:
    ordinals = live_ordinals(item.part).tolist()
    listed_files = files_of(lake.warehouse.objects, root.path(item.part.files), item.part)
    return zip(listed_files.files(ordinals), ordinals, strict=True)


def _snapshots(lake: Lake, table: Table, keys: LakeKeys) -> list[Snapshot]:
    """All listed snapshots, verified, in the order of their own sequence numbers."""
    listed_ = lake.warehouse.listing(name_of(table)).snapshots
    snapshots = [lake.snapshots.read(table, keys, item.id, item.root_path) for item in listed_]
    return sorted(snapshots, key=lambda item: item.sequence)


def _referred(lake: Lake, table: Table, snapshots: Sequence[Snapshot]) -> set[str]:
    """All files that these snapshots need."""
    used = lake.warehouse.own_files(name_of(table), [snapshot.id for snapshot in snapshots])
    lists: dict[tuple[str, int], tuple[Root, PartWithSides, int]] = {}
    for snapshot in snapshots:
        root = snapshot.root
        used |= {root.prefix + side for side in root.sides}
        for item in parts_with_sides(root):
            part = item.part
            full = (1 << part.count) - 1
            live = int.from_bytes(part.live, "little") if part.live else full
            position = (root.path(part.files), part.files.offset)
            known = lists[position][2] if position in lists else 0
            lists[position] = (root, item, known | live)
    for root, item, live in lists.values():
        listed_files = files_of(lake.warehouse.objects, root.path(item.part.files), item.part)
        ordinals = [ordinal for ordinal in range(item.part.count) if live >> ordinal & 1]
        used |= {root.prefix + file.path for file in listed_files.files(ordinals)}
    return used
