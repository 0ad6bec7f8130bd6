"""Upkeep of a table: better files, a new index, old snapshots and orphans gone."""

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
from louver.trusted.lake.keys import TableKeys
from louver.trusted.lake.parts import Parts, Placed, placed
from louver.trusted.lake.snapshots import Snapshot, name_of
from louver.trusted.vault.catalog import Column, Table
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
    lake: Lake, table: Table, keys: TableKeys, rows_per_file: int, order_by: Sequence[Column]
) -> Snapshot:
    """Rewrite files so that they have `rows_per_file` rows, in one commit.

    Without an order, files of that size are left as they are. With one, all rows are sorted: files
    then have narrow ranges, and queries on these columns skip more. The sort may spill, encrypted.
    """
    snapshot = lake.snapshots.head(table, keys)
    found = list(listed(lake, snapshot))
    if not order_by:
        found = [item for item in found if item[0].file.rows != rows_per_file]
        if len(found) < 2 and all(item[0].file.rows < rows_per_file for item in found):
            return snapshot
    if not found:
        return snapshot
    entries = [entry_of(table, item.file, number) for item, number in found]
    objects = lake.warehouse.objects
    written: list[data.Written] = []
    try:
        batches = _sorted(lake, table, keys, entries, order_by, rows_per_file)
        written.extend(data.write(objects, table, keys, batches, rows_per_file))
        return change(lake, table, keys, snapshot, written, [item for item, _ in found])
    except BaseException as error:
        if not (isinstance(error, errors.Error) and error.code == "lake.unsure"):
            lake.discard(table, [file for file, _ in written])
        raise


def reindex(lake: Lake, table: Table, keys: TableKeys) -> Snapshot:
    """Make all segments anew out of the sealed bounds."""
    snapshot = lake.snapshots.head(table, keys)
    return change(lake, table, keys, snapshot, [], [], _remade) if snapshot.id else snapshot


def history(lake: Lake, table: Table, keys: TableKeys) -> pa.Table:
    """All snapshots that there are, verified, the oldest first."""
    lake.snapshots.head(table, keys)
    found = _snapshots(lake, table, keys)
    rows = [
        {
            "snapshot_id": one.id,
            "sequence": one.sequence,
            "made": datetime.fromtimestamp(one.root.made_ms / 1_000, UTC),
            "files": one.files_total,
            "rows": one.rows,
            "bytes": one.bytes,
        }
        for one in found
    ]
    return pa.Table.from_pylist(rows, HISTORY)


def expire(lake: Lake, table: Table, keys: TableKeys, keep_last: int) -> int:
    """Forget the oldest snapshots, then delete what only they referred to."""
    name = name_of(table)
    for _ in range(TRIES):
        head = lake.snapshots.head(table, keys)
        found = _snapshots(lake, table, keys)
        old = [one for one in found[: -max(1, keep_last)] if one.id != head.id]
        if not old:
            return 0
        before = _referred(lake, table, old)
        if not lake.warehouse.expire(name, [one.id for one in old]):
            continue
        # Whatever is listed by now, the newest snapshot known keeps what it has.
        after = _referred(lake, table, [*_snapshots(lake, table, keys), head])
        for path in sorted(before - after):
            if path.startswith(f"louver/{name}/"):
                lake.warehouse.objects.delete(path)
        return len(old)
    raise errors.make("lake.crowded", table=table.label, tries=TRIES)


def clean(lake: Lake, table: Table, keys: TableKeys, grace_seconds: float) -> list[str]:
    """Delete files that no snapshot refers to and that are older than the grace period."""
    objects, limit = lake.warehouse.objects, time.time() - grace_seconds
    # What is listed first and referred to afterwards has been committed since.
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
    for place, item in enumerate(placed(snapshot.root)):
        for file, ordinal in _files(lake, snapshot.root, item):
            yield Removed(file, place, ordinal), number
            number += 1


def _remade(parts: Parts, items: Sequence[Placed]) -> list[Placed]:
    """All parts made anew, as few as hold the files."""
    made: list[Placed] = []
    group: list[Placed] = []
    for item in items:
        held = sum(one.part.live_count for one in group)
        if group and held + item.part.live_count > MAX_PART_FILES:
            made += parts.remake(group)
            group = []
        group.append(item)
    return [*made, *parts.remake(group)] if group else made


def _sorted(
    lake: Lake,
    table: Table,
    keys: TableKeys,
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
            places = ", ".join(str(columns.index(column) + 1) for column in order_by)
            found = connection.execute(f"SELECT * FROM source ORDER BY {places}")
            for batch in found.to_arrow_reader(rows_per_file):
                yield pa.Table.from_batches([batch]).cast(schema)


def _files(lake: Lake, root: Root, item: Placed) -> Iterator[tuple[File, int]]:
    ordinals = live_ordinals(item.part).tolist()
    found = files_of(lake.warehouse.objects, root.path(item.part.files), item.part)
    return zip(found.files(ordinals), ordinals, strict=True)


def _snapshots(lake: Lake, table: Table, keys: TableKeys) -> list[Snapshot]:
    """All that are listed, verified, in the order that they themselves tell."""
    listed_ = lake.warehouse.listing(name_of(table)).snapshots
    found = [lake.snapshots.read(table, keys, item.id, item.root_path) for item in listed_]
    return sorted(found, key=lambda one: one.sequence)


def _referred(lake: Lake, table: Table, snapshots: Sequence[Snapshot]) -> set[str]:
    """All files that these snapshots need."""
    used = lake.warehouse.own_files(name_of(table), [snapshot.id for snapshot in snapshots])
    lists: dict[tuple[str, int], tuple[Root, Placed, int]] = {}
    for snapshot in snapshots:
        root = snapshot.root
        used |= {root.prefix + side for side in root.sides}
        for item in placed(root):
            part = item.part
            full = (1 << part.count) - 1
            live = int.from_bytes(part.live, "little") if part.live else full
            place = (root.path(part.files), part.files.offset)
            known = lists[place][2] if place in lists else 0
            lists[place] = (root, item, known | live)
    for root, item, live in lists.values():
        listed_files = files_of(lake.warehouse.objects, root.path(item.part.files), item.part)
        ordinals = [place for place in range(item.part.count) if live >> place & 1]
        used |= {root.prefix + file.path for file in listed_files.files(ordinals)}
    return used
