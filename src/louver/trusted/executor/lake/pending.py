"""What a transaction has changed of a lake's table and not committed yet."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver.trusted.lake.store import Snapshot
from louver.trusted.vault.catalog import Table
from louver.wire.prune import FileEntry

NUMBER_BITS = 32
"""A row id is the number of its file, above so many bits, and its place in the file."""


@dataclass(slots=True)
class Pending:
    """A table as its transaction sees it: a snapshot, files written beside it, rows gone."""

    table: Table
    snapshot: Snapshot
    written: list[FileEntry] = field(default_factory=list)
    gone: list[pa.Array] = field(default_factory=list)

    def add(self, files: list[FileEntry]) -> None:
        """Take in new files; their numbers follow those of the snapshot's files."""
        first = self.snapshot.files_total + len(self.written)
        for position, entry in enumerate(files):
            number = first + position
            self.written.append(
                FileEntry(
                    entry.path, entry.file_id, entry.size, entry.rows, entry.key_metadata, number
                )
            )

    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.written or self.gone)

    def rows(self) -> int:
        """How many rows the table has, as the transaction sees it."""
        fresh = sum(entry.rows for entry in self.written)
        return int(self.snapshot.rows + fresh - sum(len(ids) for ids in self.gone))

    def left(self, rows: pa.Table, row_ids: str) -> pa.Table:
        """Rows without those that are gone."""
        if not self.gone:
            return rows
        held = rows.column(row_ids).to_numpy()
        return rows.filter(pa.array(~np.isin(held, self._gone())))

    def gone_of_snapshot(self) -> pa.Array:
        """The numbers of rows gone that lie in files of the snapshot."""
        ids = self._gone()
        return pa.array(ids[ids < self._limit], pa.int64())

    def gone_of_written(self) -> pa.Array:
        """The numbers of rows gone that lie in files of this transaction."""
        ids = self._gone()
        return pa.array(ids[ids >= self._limit], pa.int64())

    @property
    def _limit(self) -> int:
        return int(self.snapshot.files_total) << NUMBER_BITS

    def _gone(self) -> NDArray[np.int64]:
        results = [
            np.zeros(0, np.int64),
            *(ids.to_numpy(zero_copy_only=False) for ids in self.gone),
        ]
        return np.concatenate(results)
