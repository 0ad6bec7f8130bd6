"""The tables of a lake: create, read, change; rows read back are those written, or an error.

A table is one Iceberg table of encrypted files. Every change is one snapshot, signed by the client.
The server (or anyone with access to the files) can deny service; an attempt to return rows that
were not written, or a state older than one seen by this client, is detected.
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
from louver.trusted.lake.parquet import read_type
from louver.trusted.lake.parts import Ring
from louver.trusted.lake.planning import plan_locally, verify_plan, without_unknown
from louver.trusted.lake.settings import IndexSettings
from louver.trusted.lake.snapshots import Snapshot, Snapshots, name_of
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.index_keys import LakeKeys
from louver.trusted.vault.pin import Pin
from louver.untrusted.lake.files import File
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import Everything, FileEntry, FilePlan, Where

__all__ = ["LakeStore", "Snapshot"]

#: Rows per data file, unless a table's settings say otherwise.
ROWS_PER_FILE = 122_880
#: Unreferenced files may belong to a writer that has not committed yet.
GRACE_SECONDS = 24 * 3_600


class Pruner(Protocol):
    """Plans on behalf of the store; holds no key."""

    def plan(self, table: str, snapshot_id: int, where: Where) -> FilePlan:
        """The files of a snapshot that may contain matching rows."""
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
        """Create a store.

        Args:
            warehouse: where the tables are stored.
            ring: their keys.
            pin: stores the newest snapshots seen, between processes.
            pruner: plans queries; without one, this process plans.
            arrow: the Arrow type of a DuckDB type; by default DuckDB's own mapping.
            settings: index settings of new tables.
        """
        self.warehouse = warehouse
        self.pruner = pruner
        self._new = settings or IndexSettings()
        self._ring = ring
        self._keys: dict[int, LakeKeys] = {}
        self._written: dict[bytes, tuple[File, dict[int, Bound]]] = {}
        declared = arrow or arrow_type
        self._lake = Lake(
            warehouse, ring, Snapshots(warehouse, pin), lambda type_: read_type(declared(type_))
        )

    # ------------------------------------------------------------------ tables

    def settings_of_new_tables(self) -> dict[str, Any]:
        """The `lake` field of a new table."""
        return {**self._new.as_dict(), "rows_per_file": ROWS_PER_FILE}

    def create(self, table: Table) -> None:
        """Create an empty table."""
        self.warehouse.create_table(name_of(table), [column.id for column in table.columns])

    def drop(self, table: Table) -> None:
        """Delete a table with all its snapshots and files; nothing if it does not exist."""
        self.warehouse.drop_table(name_of(table))
        self._lake.snapshots.forget(table)

    def add_column(self, table: Table, column: Column) -> None:
        """Add a column, NULL in all existing rows."""
        self.warehouse.add_column(name_of(table), column.id)

    # ------------------------------------------------------------------ reading

    def snapshot(self, table: Table, at: int | datetime | None = None) -> Snapshot:
        """The newest snapshot, the one with an id, or the newest one at a time; verified.

        `lake.rollback` if a newer one was seen before, `lake.tampered` if it is not signed,
        `lake.snapshot` if it does not exist.
        """
        keys = self._of(table)
        if at is None:
            return self._lake.snapshots.head(table, keys)
        return self._lake.snapshots.at(table, keys, at)

    def token(self, table: Table, span: Range, sides: bool = False) -> bytes:
        """A token that lets the server match one inclusive range of a column's mapped values."""
        column = _column(table, span.column)
        spec = IndexSettings.of(table.lake).spec
        keys = self._of(table)
        return keys.token(column.id, column.generation, spec, span.low, span.high, sides)

    def plan(
        self, table: Table, snapshot: Snapshot, where: Where, verify: bool = False
    ) -> FilePlan:
        """The files of a snapshot that may contain matching rows; all are in the signed list.

        In this process the index rows that are read are verified too, so that no file can be
        hidden. A remote pruner could leave out files but cannot add one. With `verify` its answer
        is compared with a local plan: `lake.hidden` if files are missing.
        """
        if not snapshot.files_total:
            return FilePlan(snapshot.id, 0, ())
        keys = self._of(table)
        known = without_unknown(table, keys, snapshot, where)
        if self.pruner is None or known == Everything():
            # The signed list is the answer, so no server is needed or trusted.
            return plan_locally(self.warehouse.objects, table, keys, snapshot, known)
        answer = self.pruner.plan(name_of(table), snapshot.id, known)
        verify_plan(self.warehouse.objects, table, snapshot, answer)
        if verify:
            own = plan_locally(self.warehouse.objects, table, keys, snapshot, known)
            hidden = {entry.number for entry in own.files} - {
                entry.number for entry in answer.files
            }
            if hidden:
                raise errors.make("lake.hidden", table=table.label, count=len(hidden))
        return answer

    def read(
        self,
        table: Table,
        files: Sequence[FileEntry],
        columns: Sequence[Column],
        row_ids: bool = False,
    ) -> Iterator[pa.Table]:
        """The rows of files, one table per file, in their order.

        Columns have their declared names and types; a column missing in a file is NULL. `row_ids`
        adds a column `row_id`: the file's number shifted by 32 bits, plus the row's position.
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
        opened: dict[int, set[int]] = {}
        for span in spans:
            positions = keys.opened(self.token(table, span))
            opened.setdefault(span.column, set()).update(positions)
        return {column: len(positions) / bits for column, positions in opened.items()}

    # ------------------------------------------------------------------ changes

    def write(
        self, table: Table, batches: Iterator[pa.Table], rows_per_file: int | None = None
    ) -> list[FileEntry]:
        """Write rows as data files that belong to no snapshot yet; to be committed or discarded."""
        files: list[FileEntry] = []
        rows = rows_per_file or int(table.lake.get("rows_per_file", ROWS_PER_FILE))
        try:
            objects = self.warehouse.objects
            for file, bounds in data.write(objects, table, self._of(table), batches, rows):
                self._written[file.file_id] = (file, bounds)
                files.append(changes.entry_of(table, file, len(files)))
        except BaseException:
            self.discard(table, files)
            raise
        return files

    def discard(self, table: Table, files: Sequence[FileEntry]) -> None:
        """Delete files that `write` created and that were not committed."""
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
        """One commit: delete rows of `snapshot` by number, add files of `write`.

        Files with deleted rows are rewritten without them. `lake.conflict` if another writer
        removed one of these files since or, with `alone`, committed anything; other changes of
        other writers are retained.
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
            after = changes.change(self._lake, table, keys, snapshot, added, removed, alone=alone)
        except errors.Error as error:
            if error.code != "lake.unsure":
                self._lake.discard(table, [file for file, _ in copies])
            raise
        for entry in written:
            self._written.pop(entry.file_id, None)
        return after

    def append(
        self, table: Table, batches: Iterator[pa.Table], rows_per_file: int | None = None
    ) -> int:
        """Append rows as they arrive, in one commit; returns their count."""
        written = self.write(table, batches, rows_per_file)
        self._commit_or_discard(table, self.snapshot(table), None, written)
        return sum(entry.rows for entry in written)

    def replace(
        self, table: Table, snapshot: Snapshot, row_ids: pa.Array, batches: Iterator[pa.Table]
    ) -> int:
        """Delete rows of a snapshot by number and append others, in one commit; returns the count
        of appended rows. `lake.conflict` as in `commit`.
        """
        written = self.write(table, batches)
        self._commit_or_discard(table, snapshot, row_ids, written)
        return sum(entry.rows for entry in written)

    # ------------------------------------------------------------------ maintenance

    def compact(
        self, table: Table, rows_per_file: int | None = None, order_by: Sequence[Column] = ()
    ) -> Snapshot:
        """Rewrite files that are too small, or all of them in another order; see `maintenance`."""
        rows = rows_per_file or int(table.lake.get("rows_per_file", ROWS_PER_FILE))
        return maintenance.compact(self._lake, table, self._of(table), rows, order_by)

    def reindex(self, table: Table) -> Snapshot:
        """Rebuild the index of all files under the table's current settings; reads no data."""
        return maintenance.reindex(self._lake, table, self._of(table))

    def history(self, table: Table) -> pa.Table:
        """All snapshots, oldest first: snapshot_id, sequence, made, files, rows, bytes."""
        return maintenance.history(self._lake, table, self._of(table))

    def expire(self, table: Table, keep_last: int = 1) -> int:
        """Remove all but the last snapshots and the files only they used; returns how many."""
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
        """Convert a plaintext Iceberg table, or resume the conversion; see `migrate`."""
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

    def _of(self, table: Table) -> LakeKeys:
        keys = self._keys.get(table.id)
        if keys is None:
            keys = self._keys[table.id] = self._ring.lake_table(table.id)
        return keys


@cache
def arrow_type(type_: str) -> pa.DataType:
    """The Arrow type that DuckDB exports for one of its own types, without loss."""
    with duckdb.connect(config={"arrow_lossless_conversion": "true"}) as connection:
        rows = connection.execute(f"SELECT NULL::{type_} AS c").to_arrow_table()
    return rows.schema.field(0).type


def _column(table: Table, column_id: int) -> Column:
    result = next((column for column in table.columns if column.id == column_id), None)
    if result is None:
        raise errors.make("internal", detail="a range of no column of the table")
    return result
