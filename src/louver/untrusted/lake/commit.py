"""Commits: add and remove data files, and write a new root, as one Iceberg snapshot.

The order of writing is data files, side files, root, Iceberg's own files, and finally the catalog's
pointer. So a crash leaves the table unchanged, with some unreferenced files. Two writers race for
the pointer; the loser builds a new root on the other's commit, and retries.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    RESTError,
    ValidationException,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update.snapshot import _SnapshotProducer
from pyiceberg.typedef import Record
from sqlalchemy.exc import SQLAlchemyError

from louver import errors
from louver.untrusted.lake import root as roots
from louver.untrusted.lake.files import File
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.warehouse import NAMESPACE, ROOT_KEY, Warehouse, root_path

#: Tries before a writer gives up, and the pauses between them.
TRIES = 40
FIRST_WAIT_MS = 10
LONGEST_WAIT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Base:
    """The base of a commit: the previous snapshot and its root, both None at first; and the id
    that the new snapshot will have.
    """

    parent: int | None
    parent_root: str | None
    snapshot_id: int


#: Creates the signed root of the new snapshot; called again for every try.
Build = Callable[[Base], Root]


@runtime_checkable
class Commits(Protocol):
    """A warehouse with its own way to commit."""

    def commit(
        self, name: str, added: Sequence[File], removed: Sequence[File], build: Build
    ) -> tuple[Root, str]:
        """Like the function `commit`."""
        ...


class _Transaction(Transaction):
    """Computes its metadata once for what is staged; PyIceberg copies it at every access."""

    _made: tuple[TableMetadata, object, TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        base, updates = self._table.metadata, self._updates
        if self._made is None or self._made[0] is not base or self._made[1] is not updates:
            self._made = (base, updates, super().table_metadata)
        return self._made[2]


def new_name(ending: str) -> str:
    """A unique path in a table's metadata."""
    return f"metadata/louver-{secrets.token_hex(16)}.{ending}"


def commit(
    warehouse: Warehouse, name: str, added: Sequence[File], removed: Sequence[File], build: Build
) -> tuple[Root, str]:
    """Commit; returns the new root and its path relative to the table.

    `lake.conflict` if a file to remove no longer exists, `lake.crowded` if other writers always
    won, `lake.unsure` if the catalog did not report whether the commit happened.
    """
    if isinstance(warehouse, Commits):
        return warehouse.commit(name, added, removed, build)
    for attempt in range(TRIES):
        table = warehouse.table(name)
        head = table.current_snapshot()
        transaction = _Transaction(table)
        update = transaction.update_snapshot()
        producer = update.overwrite() if removed else update.merge_append()
        base = Base(head.snapshot_id if head else None, root_path(table), producer.snapshot_id)
        root = built(build, base, warehouse, name, table.metadata_location)
        if root is None:
            pause(attempt)
            continue
        path = new_name("root")
        full = f"{NAMESPACE}/{name}/{path}"
        warehouse.objects.create(full, roots.encode(root))
        producer.snapshot_properties = {ROOT_KEY: path}
        for file in added:
            producer.append_data_file(_data_file(table, file))
        for file in removed:
            producer.delete_data_file(_data_file(table, file))
        try:
            _stage(producer, name)
            transaction.commit_transaction()
            return root, path
        except CommitFailedException:
            warehouse.objects.delete(full)
        except errors.Error:
            warehouse.objects.delete(full)
            raise
        except ValidationException as error:
            warehouse.objects.delete(full)
            raise errors.make("lake.conflict", table=name) from error
        except (CommitStateUnknownException, RESTError, SQLAlchemyError, OSError) as error:
            if _landed(warehouse, name, base.snapshot_id):
                return root, path
            if _in_vain(warehouse, error):
                warehouse.objects.delete(full)
            _require_retry(warehouse, name, error)
        pause(attempt)
    raise errors.make("lake.crowded", table=name, tries=TRIES)


def built(build: Build, base: Base, warehouse: Warehouse, name: str, pointer: str) -> Root | None:
    """The new root; None if another writer was faster, so that `pointer` is outdated.

    A concurrent thread may then have seen a newer snapshot than the base, as after a rollback.
    """
    try:
        return build(base)
    except errors.VerificationError as error:
        if error.code != "lake.rollback" or warehouse.pointer(name) == pointer:
            raise
        return None


def _stage(producer: _SnapshotProducer[Any], name: str) -> None:
    """Write Iceberg's own files. PyIceberg may fail in any way on malformed old ones."""
    try:
        producer.commit()
    except (ValidationException, CommitFailedException, OSError, errors.Error):
        raise
    except Exception as error:
        detail = f"metadata that cannot be read ({type(error).__name__})"
        raise errors.make("lake.format", path=name, detail=detail) from error


def _in_vain(warehouse: Warehouse, error: Exception) -> bool:
    """Whether a commit that is not visible cannot appear later.

    An SQL catalog is updated last, in one transaction; a file that could not be written ends a
    commit before that. Over HTTP a commit may still be in transit.
    """
    here = isinstance(warehouse.catalog, SqlCatalog)
    return isinstance(error, SQLAlchemyError) or (here and isinstance(error, OSError))


def _require_retry(warehouse: Warehouse, name: str, error: Exception) -> None:
    """Raise, unless another try may help and cannot commit twice."""
    if not _in_vain(warehouse, error):
        raise errors.make("lake.unsure", table=name, detail=type(error).__name__) from error
    if isinstance(error, OSError):
        cause = error.__cause__
        if isinstance(cause, errors.Error):
            raise cause
        detail = error.strerror or type(error).__name__
        raise errors.make("lake.io", place=warehouse.location, detail=detail) from error


def _landed(warehouse: Warehouse, name: str, snapshot_id: int) -> bool:
    return warehouse.table(name).snapshot_by_id(snapshot_id) is not None


def pause(attempt: int) -> None:
    """Wait longer each time, with jitter against other writers."""
    longest = min(LONGEST_WAIT_MS, FIRST_WAIT_MS << min(attempt, 10))
    time.sleep(secrets.randbelow(longest * 1_000) / 1e6)


def _data_file(table: Table, file: File) -> DataFile:
    """A file's entry in a manifest: without bounds, counts or column sizes."""
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        key_metadata=file.key_metadata,
    )
    data_file.spec_id = table.spec().spec_id
    return data_file
