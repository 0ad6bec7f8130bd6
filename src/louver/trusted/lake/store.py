"""The tables of a lake: made, read, changed; what is read back is what was written, or an error.

A table is one Iceberg table of encrypted files. Every change is one snapshot, signed by the
client. The server (or whoever holds the files) can refuse service; it cannot show rows that were
not written, nor an older state than one seen here, without being found out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Protocol

import duckdb
import pyarrow as pa
from pyiceberg.table import Table as IcebergTable

from louver import errors
from louver.trusted.lake import changes, data, maintenance, migrate
from louver.trusted.lake.bounds import Bound
from louver.trusted.lake.changes import Lake
from louver.trusted.lake.data import ArrowType
from louver.trusted.lake.keys import Ring, TableKeys
from louver.trusted.lake.parquet import read_type
from louver.trusted.lake.planning import plan_at_home, verify_kept, without_unknown
from louver.trusted.lake.settings import IndexSettings
from louver.trusted.lake.snapshots import Snapshot, Snapshots, name_of
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.pin import Pin
from louver.untrusted.lake.files import File
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import Everything, FileEntry, Kept, Where

__all__ = ["LakeStore", "Snapshot"]

#: Rows of a data file, where a table's settings do not say.
ROWS_PER_FILE = 122_880
#: Files that nothing refers to may belong to a writer that has not committed yet.
GRACE_SECONDS = 24 * 3_600


class Pruner(Protocol):
    """Who plans in the store's place; knows no key."""

    def plan(self, table: str, snapshot_id: int, where: Where) -> Kept:
        """The files of a snapshot that may hold what is wanted."""
        ...


class Range(Protocol):
    """An inclusive range of mapped values of a column, by id."""

    @property
    def column(self) -> int:
        """The column's id."""
        ...

    @property
    def low(self) -> int:
        """Least value."""
        ...

    @property
    def high(self) -> int:
        """Greatest value."""
        ...


class LakeStore:
    """All tables of one warehouse under one key ring; safe to use from several threads."""

    def __init__(
        self,
        warehouse: Warehouse,
        ring: Ring,
        pin: Pin | None = None,
        pruner: Pruner | None = None,
        arrow: ArrowType | None = None,
        settings: IndexSettings | None = None,
    ) -> None:
        """A store.

        Args:
            warehouse: where the tables lie.
            ring: their keys.
            pin: where the newest snapshots seen are remembered between processes.
            pruner: plans queries; this process does without.
            arrow: the Arrow type of a DuckDB type; DuckDB's own answer without.
            settings: of the index of new tables.
        """
        self.warehouse = warehouse
        self.pruner = pruner
        self._new = settings or IndexSettings()
        self._ring = ring
        self._keys: dict[int, TableKeys] = {}
        self._written: dict[bytes, tuple[File, dict[int, Bound]]] = {}
        declared = arrow or arrow_type
        self._lake = Lake(
            warehouse, ring, Snapshots(warehouse, pin), lambda type_: read_type(declared(type_))
        )

    # ------------------------------------------------------------------ tables

    def settings_of_new_tables(self) -> dict[str, Any]:
        """What stands in the `lake` field of a new table."""
        return {**self._new.as_dict(), "rows_per_file": ROWS_PER_FILE}

    def create(self, table: Table) -> None:
        """Make an empty table."""
        self.warehouse.create_table(name_of(table), [column.id for column in table.columns])

    def drop(self, table: Table) -> None:
        """Delete a table with all its snapshots and files; nothing when there is none."""
        self.warehouse.drop_table(name_of(table))
        self._lake.snapshots.forget(table)

    def add_column(self, table: Table, column: Column) -> None:
        """A new column, NULL in all rows that there are."""
        self.warehouse.add_column(name_of(table), column.id)

    # ------------------------------------------------------------------ reading

    def snapshot(self, table: Table, at: int | datetime | None = None) -> Snapshot:
        """The newest snapshot, that of an id, or the newest one at a time; verified.

        `lake.rollback` when a newer one was seen before, `lake.tampered` when it is not signed,
        `lake.snapshot` when there is no such snapshot.
        """
        keys = self._of(table)
        if at is None:
            return self._lake.snapshots.head(table, keys)
        return self._lake.snapshots.at(table, keys, at)

    def token(self, table: Table, span: Range, sides: bool = False) -> bytes:
        """What shows the server one inclusive range of a column's mapped values."""
        column = _column(table, span.column)
        spec = IndexSettings.of(table.lake).spec
        keys = self._of(table)
        return keys.token(column.id, column.generation, spec, span.low, span.high, sides)

    def plan(self, table: Table, snapshot: Snapshot, where: Where, verify: bool = False) -> Kept:
        """The files of a snapshot that may hold rows wanted; every one is in the signed list.

        In this process the index rows that are read are verified too, so that no file can be
        hidden. A pruner elsewhere could leave files out; it cannot add one. With `verify` its
        answer is compared with a plan made here: `lake.hidden` when files are missing.
        """
        if not snapshot.files_total:
            return Kept(snapshot.id, 0, ())
        keys = self._of(table)
        known = without_unknown(table, keys, snapshot, where)
        if self.pruner is None or known == Everything():
            # The signed list itself says which files there are: nobody need be asked, or believed.
            return plan_at_home(self.warehouse.objects, table, keys, snapshot, known)
        kept = self.pruner.plan(name_of(table), snapshot.id, known)
        verify_kept(self.warehouse.objects, table, snapshot, kept)
        if verify:
            own = plan_at_home(self.warehouse.objects, table, keys, snapshot, known)
            hidden = {entry.number for entry in own.files} - {entry.number for entry in kept.files}
            if hidden:
                raise errors.make("lake.hidden", table=table.label, count=len(hidden))
        return kept

    def read(
        self,
        table: Table,
        files: Sequence[FileEntry],
        columns: Sequence[Column],
        row_ids: bool = False,
    ) -> Iterator[pa.Table]:
        """The rows of files, one table a file, in their order.

        Columns have their declared names and types; one that a file lacks is NULL. `row_ids` adds
        a column `row_id`: the file's number above 32 bits of the row's place.
        """
        objects, keys = self.warehouse.objects, self._of(table)
        return data.read(objects, table, keys, files, columns, self._lake.arrow, row_ids)

    def traffic_bytes(self) -> int:
        """Bytes of files read and written so far."""
        traffic = self.warehouse.objects.traffic
        return traffic.bytes_in + traffic.bytes_out

    def opened_share(self, table: Table, spans: Iterable[Range]) -> dict[int, float]:
        """The share of all bits that tokens for these ranges open, by column id."""
        keys, bits = self._of(table), IndexSettings.of(table.lake).bits
        found: dict[int, set[int]] = {}
        for span in spans:
            positions = keys.opened(self.token(table, span))
            found.setdefault(span.column, set()).update(positions)
        return {column: len(positions) / bits for column, positions in found.items()}

    # ------------------------------------------------------------------ changes

    def write(
        self, table: Table, batches: Iterator[pa.Table], rows_per_file: int | None = None
    ) -> list[FileEntry]:
        """Write rows as data files that no snapshot has yet; to be committed, or discarded."""
        made: list[FileEntry] = []
        rows = rows_per_file or int(table.lake.get("rows_per_file", ROWS_PER_FILE))
        try:
            objects = self.warehouse.objects
            for file, bounds in data.write(objects, table, self._of(table), batches, rows):
                self._written[file.file_id] = (file, bounds)
                made.append(changes.entry_of(table, file, len(made)))
        except BaseException:
            self.discard(table, made)
            raise
        return made

    def discard(self, table: Table, files: Sequence[FileEntry]) -> None:
        """Delete files that `write` made and nobody committed."""
        known = [self._written.pop(entry.file_id, None) for entry in files]
        self._lake.discard(table, [item[0] for item in known if item is not None])

    def commit(
        self,
        table: Table,
        snapshot: Snapshot,
        gone: pa.Array | None = None,
        written: Sequence[FileEntry] = (),
        alone: bool = False,
    ) -> Snapshot:
        """One commit: rows of `snapshot` gone by number, files of `write` added.

        Files with rows gone are rewritten without them. `lake.conflict` when somebody else removed
        one of these files since or, with `alone`, committed anything; whatever else others did is
        kept.
        """
        keys = self._of(table)
        removed: list[changes.Removed] = []
        copies: list[data.Written] = []
        if gone is not None and len(gone):
            removed, copies = changes.rewritten(self._lake, table, keys, snapshot, gone)
        added = [*copies, *(self._written[entry.file_id] for entry in written)]
        if not added and not removed:
            return snapshot
        try:
            made = changes.change(self._lake, table, keys, snapshot, added, removed, alone=alone)
        except errors.Error as error:
            if error.code != "lake.unsure":
                self._lake.discard(table, [file for file, _ in copies])
            raise
        for entry in written:
            self._written.pop(entry.file_id, None)
        return made

    def append(
        self, table: Table, batches: Iterator[pa.Table], rows_per_file: int | None = None
    ) -> int:
        """Append rows as they come, in one commit; how many they were."""
        written = self.write(table, batches, rows_per_file)
        self._commit_or_discard(table, self.snapshot(table), None, written)
        return sum(entry.rows for entry in written)

    def replace(
        self, table: Table, snapshot: Snapshot, row_ids: pa.Array, batches: Iterator[pa.Table]
    ) -> int:
        """Delete rows of a snapshot by number and append others, in one commit; how many these
        were. `lake.conflict` as in `commit`.
        """
        written = self.write(table, batches)
        self._commit_or_discard(table, snapshot, row_ids, written)
        return sum(entry.rows for entry in written)

    # ------------------------------------------------------------------ upkeep

    def compact(
        self, table: Table, rows_per_file: int | None = None, order_by: Sequence[Column] = ()
    ) -> Snapshot:
        """Rewrite files that are too small, or all of them in another order; see `upkeep`."""
        rows = rows_per_file or int(table.lake.get("rows_per_file", ROWS_PER_FILE))
        return maintenance.compact(self._lake, table, self._of(table), rows, order_by)

    def reindex(self, table: Table) -> Snapshot:
        """Make the index of all files anew under the table's present settings; reads no data."""
        return maintenance.reindex(self._lake, table, self._of(table))

    def history(self, table: Table) -> pa.Table:
        """All snapshots, the oldest first: snapshot_id, sequence, made, files, rows, bytes."""
        return maintenance.history(self._lake, table, self._of(table))

    def expire(self, table: Table, keep_last: int = 1) -> int:
        """Forget all snapshots but the last ones, and delete what only they had; how many."""
        return maintenance.expire(self._lake, table, self._of(table), keep_last)

    def clean(self, table: Table, grace_seconds: float = GRACE_SECONDS) -> list[str]:
        """Delete files older than the grace period that no snapshot refers to; their paths."""
        return maintenance.clean(self._lake, table, self._of(table), grace_seconds)

    def encrypt_iceberg(
        self,
        source: IcebergTable,
        table: Table,
        progress: migrate.Progress | None = None,
        files_per_commit: int = migrate.FILES_PER_COMMIT,
    ) -> migrate.Migration:
        """Take over a plaintext Iceberg table, or go on with that; see `migrate`."""
        keys = self._of(table)
        return migrate.encrypt_iceberg(self._lake, source, table, keys, progress, files_per_commit)

    # ------------------------------------------------------------------ inside

    def _commit_or_discard(
        self,
        table: Table,
        snapshot: Snapshot,
        gone: pa.Array | None,
        written: Sequence[FileEntry],
    ) -> None:
        try:
            self.commit(table, snapshot, gone, written)
        except errors.Error as error:
            if error.code != "lake.unsure":
                self.discard(table, written)
            raise

    def _of(self, table: Table) -> TableKeys:
        found = self._keys.get(table.id)
        if found is None:
            found = self._keys[table.id] = self._ring.lake_table(table.id)
        return found


@cache
def arrow_type(type_: str) -> pa.DataType:
    """What DuckDB makes of one of its own types in Arrow, without loss."""
    with duckdb.connect(config={"arrow_lossless_conversion": "true"}) as connection:
        found = connection.execute(f"SELECT NULL::{type_} AS c").to_arrow_table()
    return found.schema.field(0).type


def _column(table: Table, column_id: int) -> Column:
    found = next((column for column in table.columns if column.id == column_id), None)
    if found is None:
        raise errors.make("internal", detail="a range of no column of the table")
    return found
