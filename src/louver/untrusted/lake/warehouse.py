"""A warehouse: Iceberg tables at one location, in any catalog supported by PyIceberg.

By default a directory with an SQLite catalog in it. Tables are in the namespace `louver` with the
names `t<id>`; their columns are named `c<id>` and declared optional `binary`, whatever they
contain: real names and types are known to the client only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.io import load_file_io
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BinaryType, NestedField
from sqlalchemy import select
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from louver import errors
from louver.untrusted.lake import root as roots
from louver.untrusted.lake.catalogs import opened
from louver.untrusted.lake.objects import LocalObjects, Objects
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.stores import FileIOObjects

NAMESPACE = "louver"
CATALOG_FILE = "catalog.sqlite"
DUCKLAKE_FILE = "ducklake.sqlite"
#: The key of a snapshot's summary that names its root, relative to the table.
ROOT_KEY = "louver.root"
TRIES = 20

#: PyIceberg does not retry, since a root belongs to one base. File lists are deflated, not
#: compressed with zstd, which crashes DuckDB 1.5.
_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "write.avro.compression-codec": "gzip",
    "write.metadata.metrics.default": "none",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_KEPT_ROOTS = 16


@dataclass(frozen=True, slots=True)
class Listed:
    """A snapshot as Iceberg lists it: its id, time (ms since 1970), and its root's path."""

    id: int
    made_ms: int
    root_path: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A table's snapshots, oldest first; `pointer` changes with every commit."""

    pointer: str
    current: Listed | None
    snapshots: tuple[Listed, ...]


class Warehouse:
    """Tables, their metadata and files. Has no key; safe to use from several threads."""

    def __init__(self, location: str, catalog: Catalog, properties: Mapping[str, str]) -> None:
        """A warehouse at an absolute `location`; use `open`."""
        self.location = location
        self.catalog = catalog
        self._properties = dict(properties)
        self._roots: dict[tuple[str, str], Root] = {}
        self._lock = Lock()
        with translated(location), suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(NAMESPACE)

    @staticmethod
    def open(location: str, properties: Mapping[str, str] | None = None) -> Warehouse:
        """The warehouse at a directory or URI.

        Without properties, a directory with an SQLite catalog, created if missing. Properties are
        PyIceberg's (`uri`, `s3.endpoint`, `token` …), and `catalog` names the kind: rest, sql, glue
        and so on. `format=ducklake` is a directory with a DuckLake catalog instead; an existing one
        is detected without it.
        """
        given = dict(properties or {})
        format_ = given.pop("format", "")
        if format_ not in ("", "iceberg", "ducklake"):
            raise errors.make("lake.kind", kind=format_)
        kind = given.pop("catalog", "")
        if "://" not in location or location.startswith("file://"):
            location = str(Path(location.removeprefix("file://")).absolute())
            with translated(location):
                Path(location).mkdir(parents=True, exist_ok=True)
        location = location.rstrip("/")
        known = not format_ and not kind and Path(location, DUCKLAKE_FILE).exists()
        if known or format_ == "ducklake":
            from louver.untrusted.lake.ducklake import DuckLakeWarehouse

            return DuckLakeWarehouse(location, given | ({"catalog": kind} if kind else {}))
        if not kind and "://" in location:
            raise errors.make("lake.catalog", place=location)
        objects = _objects(location, given)
        with translated(location):
            catalog = opened(kind, given, location, objects) if kind else _sqlite(location, objects)
            warehouse = Warehouse(location, catalog, given)
        warehouse.objects = objects
        return warehouse

    @cached_property
    def objects(self) -> Objects:
        """The files of the warehouse; paths are relative to it."""
        return _objects(self.location, self._properties)

    def create_table(self, name: str, column_ids: Sequence[int]) -> None:
        """Create a table; `lake.table.exists` if the name is taken."""
        fields = [
            NestedField(position, f"c{column}", BinaryType(), required=False)
            for position, column in enumerate(column_ids, 1)
        ]
        with translated(self.location):
            try:
                self.catalog.create_table(
                    (NAMESPACE, name),
                    Schema(*fields),
                    location=f"{self.location}/{NAMESPACE}/{name}",
                    properties=_PROPERTIES,
                )
            except TableAlreadyExistsError as error:
                raise errors.make("lake.table.exists", table=name, place=self.location) from error

    def drop_table(self, name: str) -> None:
        """Remove a table from the catalog and delete its files; nothing if it does not exist."""
        with translated(self.location), suppress(NoSuchTableError):
            self.catalog.drop_table((NAMESPACE, name))
        for path in list(self.objects.list(f"{NAMESPACE}/{name}/")):
            self.objects.delete(path)

    def add_column(self, name: str, column_id: int) -> None:
        """Add a column, NULL in all existing files; nothing if it exists."""
        for attempt in range(TRIES):
            table = self.table(name)
            if f"c{column_id}" in table.schema().column_names:
                return
            with translated(self.location):
                try:
                    with table.update_schema() as update:
                        update.add_column(f"c{column_id}", BinaryType())
                    return
                except CommitFailedException:
                    time.sleep(0.01 * (attempt + 1))
        raise errors.make("lake.crowded", table=name, tries=TRIES)

    def table(self, name: str) -> Table:
        """The current state of the table; `lake.table` if it does not exist."""
        with translated(self.location):
            try:
                return self.catalog.load_table((NAMESPACE, name))
            except NoSuchTableError as error:
                raise errors.make("lake.table", table=name, place=self.location) from error

    def listing(self, name: str) -> Listing:
        """The snapshots of a table; those not written by Louver are omitted."""
        table = self.table(name)
        current = table.current_snapshot()
        path = root_path(table)
        return Listing(
            table.metadata_location,
            Listed(current.snapshot_id, current.timestamp_ms, path) if current and path else None,
            tuple(
                Listed(item.snapshot_id, item.timestamp_ms, item.summary[ROOT_KEY] or "")
                for item in sorted(table.snapshots(), key=lambda item: item.sequence_number or 0)
                if item.summary and roots.is_root_path(item.summary.get(ROOT_KEY) or "")
            ),
        )

    def tables(self) -> list[str]:
        """The names of all tables."""
        with translated(self.location):
            return sorted(identifier[-1] for identifier in self.catalog.list_tables(NAMESPACE))

    def pointer(self, name: str) -> str:
        """The location of the table's metadata, which changes with every commit."""
        if not isinstance(self.catalog, SqlCatalog):
            return self.table(name).metadata_location
        wanted = select(IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.catalog.name,
            IcebergTables.table_namespace == NAMESPACE,
            IcebergTables.table_name == name,
        )
        with translated(self.location), Session(self.catalog.engine) as session:
            pointer = session.scalar(wanted)
        if pointer is None:
            raise errors.make("lake.table", table=name, place=self.location)
        return pointer

    def root(self, name: str, snapshot_id: int | None = None) -> Root | None:
        """The stored root of a snapshot (the current one by default), not verified.

        None for a table without snapshots.
        """
        path = root_path(self.table(name), snapshot_id)
        return None if path is None else self._root_at(name, path)

    def expire(self, name: str, ids: Sequence[int]) -> bool:
        """Remove snapshots; False if another writer committed or expired the same ones."""
        try:
            self.table(name).maintenance.expire_snapshots().by_ids(list(ids)).commit()
        except (CommitFailedException, ValueError):
            return False
        return True

    def own_files(self, name: str, ids: Sequence[int]) -> set[str]:
        """Paths of the catalog's files of these snapshots: roots, lists, manifests."""
        table = self.table(name)
        used: set[str] = set()
        for snapshot in (table.snapshot_by_id(identifier) for identifier in ids):
            if snapshot is not None and snapshot.summary is not None:
                used.add(f"{NAMESPACE}/{name}/{snapshot.summary[ROOT_KEY]}")
                used.add(self._relative(snapshot.manifest_list))
                used |= {
                    self._relative(manifest.manifest_path)
                    for manifest in snapshot.manifests(table.io)
                }
        return used

    def table_files(self, name: str) -> set[str]:
        """Paths of the catalog's files of the table itself: its metadata, old versions too."""
        table = self.table(name)
        logged = [entry.metadata_file for entry in table.metadata.metadata_log]
        return {self._relative(path) for path in (*logged, table.metadata_location)}

    def _relative(self, location: str) -> str:
        return location.removeprefix(self.location).lstrip("/")

    def _root_at(self, name: str, path: str) -> Root:
        with self._lock:
            root = self._roots.get((name, path))
        if root is None:
            root = roots.decode(self.root_bytes(name, path), path)
            with self._lock:
                while len(self._roots) >= _KEPT_ROOTS:
                    self._roots.pop(next(iter(self._roots)))
                self._roots[(name, path)] = root
        return root

    def root_bytes(self, name: str, path: str) -> bytes:
        """The file of a root, whose path is relative to the table."""
        full = f"{NAMESPACE}/{name}/{path}"
        size = self.objects.size(full)
        if size > roots.MAX_BYTES:
            raise errors.make("lake.format", path=full, detail="it is too large")
        return bytes(self.objects.read(full, 0, size))


def root_path(table: Table, snapshot_id: int | None = None) -> str | None:
    """The path of a snapshot's root, relative to the table; None for a table without snapshots.

    `lake.snapshot` if the snapshot does not exist, `lake.format` if it names no root.
    """
    name = table.name()[-1]
    if snapshot_id is None:
        snapshot = table.current_snapshot()
        if snapshot is None:
            return None
    else:
        snapshot = table.snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise errors.make("lake.snapshot", table=name, snapshot=snapshot_id)
    path = snapshot.summary.get(ROOT_KEY) if snapshot.summary else None
    if path is None or not roots.is_root_path(path):
        raise errors.make("lake.format", path=name, detail="a snapshot does not name a Louver root")
    return path


def _objects(location: str, properties: dict[str, str]) -> Objects:
    if "://" not in location:
        return LocalObjects(location)
    return FileIOObjects(load_file_io(properties, location), location)


def _sqlite(location: str, objects: Objects) -> Catalog:
    """The catalog in the directory. A writer waits for others instead of failing immediately."""
    uri = f"sqlite:///{location}/{CATALOG_FILE}?timeout=60"
    for attempt in range(TRIES):
        try:
            return opened("sql", {"uri": uri}, location, objects)
        except OperationalError:
            # Another process is creating the same tables. A damaged file is another error.
            if attempt == TRIES - 1:
                raise
            time.sleep(0.05)
    raise AssertionError


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Translate errors of catalogs, disks and malformed metadata.

    They contain no secret, but a connection's URI may. PyIceberg may raise any exception for
    malformed metadata.
    """
    try:
        yield
    except errors.Error:
        raise
    except (OSError, SQLAlchemyError, RESTError) as error:
        cause = error.__cause__
        if isinstance(cause, errors.Error):
            raise cause from None
        detail = getattr(error, "strerror", None) or type(error).__name__
        raise errors.make("lake.io", place=location, detail=detail) from error
    except Exception as error:
        detail = f"metadata that cannot be read ({type(error).__name__})"
        raise errors.make("lake.format", path=location, detail=detail) from error
