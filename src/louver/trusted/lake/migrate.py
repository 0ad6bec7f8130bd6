"""Convert a plaintext Iceberg table to an encrypted one, file by file.

Progress is stored, encrypted, in the note of the table's signed root, so it changes in the same
commit as the files: an interrupted run resumes where it stopped, from any machine, and no file is
copied twice. The source is read at the snapshot of the first run and is not changed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

import duckdb
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as IcebergTable

from louver import errors
from louver.names import fold
from louver.trusted.lake import changes, data
from louver.trusted.lake.changes import Lake
from louver.trusted.lake.data import Written
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.index_keys import LakeKeys

#: Source files per commit: the most work that a crash can lose.
FILES_PER_COMMIT = 1_000
_PURPOSE = "lake migration"
#: A fixed size, so that the note's length does not reveal its content.
_NOTE_BYTES = 512

Progress = Callable[[int, int], None]
"""Called with the number of source files done and their total."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Progress of a conversion: `done` of `total` files of a snapshot of the source."""

    source: str
    snapshot: int
    total: int
    done: int = 0


def columns_of(source: IcebergTable) -> list[tuple[str, str]]:
    """The names and DuckDB types of a source's columns."""
    empty = schema_to_pyarrow(source.schema(), include_field_ids=False).empty_table()
    with duckdb.connect() as connection:
        connection.register("source", empty)
        rows = connection.execute("DESCRIBE source").fetchall()
    return [(str(row[0]), str(row[1])) for row in rows]


def encrypt_iceberg(
    lake: Lake,
    source: IcebergTable,
    table: Table,
    keys: LakeKeys,
    progress: Progress | None = None,
    files_per_commit: int = FILES_PER_COMMIT,
) -> Migration:
    """Append all rows of `source`; each of its files becomes one encrypted file.

    Columns are matched by name. A second call resumes; after completion it does nothing. Raises
    `lake.source` if the source does not fit, or if another one was begun and not completed.
    """
    state = _begin(lake, source, table, keys)
    _require_columns(source, table)
    tasks = _tasks(source, table, state)
    if len(tasks) != state.total:
        raise _unfit(source, table, "its files differ from those of the first run")
    while state.done < state.total:
        if progress is not None:
            progress(state.done, state.total)
        state = _take(lake, source, table, keys, state, tasks, files_per_commit)
    if progress is not None:
        progress(state.done, state.total)
    return state


def state_of(lake: Lake, table: Table, note: bytes) -> Migration | None:
    """The progress recorded in a root's note; None if no conversion was begun."""
    if not note:
        return None
    plain = lake.ring.open_blob(_PURPOSE, _context(table), note)
    return Migration(**json.loads(plain))


def _begin(lake: Lake, source: IcebergTable, table: Table, keys: LakeKeys) -> Migration:
    current = source.current_snapshot()
    uuid = str(source.metadata.table_uuid)
    known = state_of(lake, table, lake.snapshots.head(table, keys).root.note)
    if known is not None and known.source == uuid:
        if known.done == known.total and current and current.snapshot_id != known.snapshot:
            raise _unfit(source, table, "it was encrypted before, and has changed since")
        return known
    if known is not None and known.done < known.total:
        raise _unfit(source, table, "another source was started and is not finished yet")
    if current is None:
        return Migration(uuid, 0, 0)
    fresh = Migration(uuid, current.snapshot_id, 0)
    return replace(fresh, total=len(_tasks(source, table, fresh)))


def _tasks(source: IcebergTable, table: Table, state: Migration) -> list[FileScanTask]:
    """The source's files, always in the same order."""
    if not state.snapshot:
        return []
    if source.snapshot_by_id(state.snapshot) is None:
        raise _unfit(source, table, "the snapshot of the first run has expired")
    tasks = source.scan(snapshot_id=state.snapshot).plan_files()
    return sorted(tasks, key=lambda task: task.file.file_path)


def _require_columns(source: IcebergTable, table: Table) -> None:
    given = {fold(name) for name in source.schema().column_names if "." not in name}
    wanted = {fold(column.name) for column in table.columns}
    lacking = ", ".join(sorted(wanted - given) or sorted(given - wanted))
    if lacking:
        raise _unfit(source, table, f"only one of them has {lacking}")


def _take(
    lake: Lake,
    source: IcebergTable,
    table: Table,
    keys: LakeKeys,
    state: Migration,
    tasks: Sequence[FileScanTask],
    count: int,
) -> Migration:
    """Encrypt and commit the next files."""
    chosen = tasks[state.done : state.done + count]
    after = replace(state, done=state.done + len(chosen))

    def note(old: bytes) -> bytes:
        if (state_of(lake, table, old) or replace(state, done=0)) != state:
            raise _unfit(source, table, "another client is encrypting it")
        plain = json.dumps(asdict(after)).encode()
        padded = plain + b" " * (_NOTE_BYTES - len(plain))
        return lake.ring.seal_blob(_PURPOSE, _context(table), padded)

    def encrypt(task: FileScanTask, file_id: bytes) -> Written | None:
        rows = _rows(lake, source, table, task)
        objects = lake.warehouse.objects
        if not rows.num_rows:
            return None
        return data.write_one(objects, table, keys, rows, file_id)

    written: list[Written] = []
    try:
        with ThreadPoolExecutor(data.THREADS) as pool:
            for result in pool.map(encrypt, chosen, [data.new_id() for _ in chosen]):
                written += [result] if result is not None else []
        snapshot = lake.snapshots.head(table, keys)
        changes.change(lake, table, keys, snapshot, written, [], note=note)
    except BaseException as error:
        if not (isinstance(error, errors.Error) and error.code == "lake.unsure"):
            lake.discard(table, [file for file, _ in written])
        raise
    return after


def _rows(lake: Lake, source: IcebergTable, table: Table, task: FileScanTask) -> pa.Table:
    """One file's rows with the table's names and types, without rows deleted at the source."""
    scan = ArrowScan(source.metadata, source.io, source.schema(), AlwaysTrue())
    rows = scan.to_table([task])
    names = {fold(name): name for name in rows.column_names}
    schema = pa.schema([pa.field(c.name, lake.arrow(c.type)) for c in table.columns])
    chosen = rows.select([names[fold(column.name)] for column in table.columns])
    return chosen.rename_columns(schema.names).cast(schema)


def _context(table: Table) -> bytes:
    return struct.pack(">Q", table.id)


def _unfit(source: IcebergTable, table: Table, detail: str) -> errors.Error:
    name = ".".join(source.name())
    return errors.make("lake.source", source=name, table=table.label, detail=detail)
