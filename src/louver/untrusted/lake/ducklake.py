"""A DuckLake warehouse: the tables, files and roots of an Iceberg warehouse, in another catalog.

Data files are listed in `ducklake_data_file` with the snapshots in which they begin and end, their
rows and sizes, and their wrapped keys; bounds are NULL. Louver's own data is stored in the same
SQLite file: `louver_index` (indexes, encrypted lists, signed roots) and `louver_snapshot` (the root
of each snapshot). A commit is one transaction.
"""

from __future__ import annotations

import sqlite3
import uuid
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from pyiceberg.table import Table

from louver import errors
from louver.untrusted.lake import root as roots
from louver.untrusted.lake.commit import TRIES, Base, Build, built, new_name, pause
from louver.untrusted.lake.ducklake_catalog import (
    NAMESPACE,
    DuckLakeCatalog,
    add_snapshot,
    head,
    insert,
    milliseconds,
)
from louver.untrusted.lake.ducklake_objects import CatalogObjects
from louver.untrusted.lake.files import File
from louver.untrusted.lake.objects import LocalObjects
from louver.untrusted.lake.root import Root
from louver.untrusted.lake.warehouse import DUCKLAKE_FILE, Listed, Listing, Warehouse

_TABLE_ID = (
    "SELECT table_id FROM ducklake_table JOIN ducklake_schema USING (schema_id) "
    "WHERE schema_name = ? AND table_name = ? AND ducklake_table.end_snapshot IS NULL"
)
#: All catalog tables with rows about one table.
_OF_TABLE = (
    "ducklake_table",
    "ducklake_column",
    "ducklake_data_file",
    "ducklake_file_column_stats",
    "ducklake_table_stats",
    "ducklake_table_column_stats",
    "ducklake_schema_versions",
    "louver_snapshot",
)


class DuckLakeWarehouse(Warehouse):
    """A directory with a DuckLake catalog in it; opened by the property `format=ducklake`."""

    def __init__(self, location: str, properties: Mapping[str, str]) -> None:
        """A warehouse at an absolute directory, created if missing."""
        if "://" in location or properties:
            detail = f"of its properties {', '.join(properties)}" if properties else "it is a URL"
            raise errors.make("lake.ducklake", place=location, detail=detail)
        self.location = location
        self._roots = {}
        self._lock = Lock()
        self._lake = DuckLakeCatalog(Path(location) / DUCKLAKE_FILE, f"{location}/")
        self._sides = CatalogObjects(LocalObjects(location), self._lake)
        self.objects = self._sides

    # ------------------------------------------------------------------ tables

    def create_table(self, name: str, column_ids: Sequence[int]) -> None:
        """Create a table; `lake.table.exists` if the name is taken."""
        with self._lake.writing() as connection:
            if _table_id(connection, name) is not None:
                raise errors.make("lake.table.exists", table=name, place=self.location)
            change = f'created_table:"{NAMESPACE}"."{name}"'
            _, version, table, _ = head(connection)
            snapshot = add_snapshot(connection, change, schema=1, entries=1)
            row = (table, str(uuid.uuid4()), snapshot, None, 1, name, f"{name}/", 1)
            insert(connection, "ducklake_table", row)
            insert(connection, "ducklake_table_stats", (table, 0, 0, 0))
            insert(connection, "ducklake_schema_versions", (snapshot, version + 1, table))
            for position, column in enumerate(column_ids, 1):
                _add_column(connection, table, snapshot, position, column)

    def drop_table(self, name: str) -> None:
        """Remove a table from the catalog and delete its files; nothing if it does not exist."""
        with self._lake.writing() as connection:
            table = _table_id(connection, name)
            if table is not None:
                add_snapshot(connection, f"dropped_table:{table}", schema=1)
                for table_name in _OF_TABLE:
                    connection.execute(f"DELETE FROM {table_name} WHERE table_id = ?", (table,))
        for path in list(self.objects.list(f"{NAMESPACE}/{name}/")):
            self.objects.delete(path)

    def add_column(self, name: str, column_id: int) -> None:
        """Add a column, NULL in all existing files; nothing if it exists."""
        with self._lake.writing() as connection:
            table = self._required(connection, name)
            sql = "SELECT column_name, column_id FROM ducklake_column WHERE table_id = ?"
            known = dict(connection.execute(sql, (table,)).fetchall())
            if f"c{column_id}" in known:
                return
            _, version, _, _ = head(connection)
            snapshot = add_snapshot(connection, f"altered_table:{table}", schema=1)
            insert(connection, "ducklake_schema_versions", (snapshot, version + 1, table))
            _add_column(connection, table, snapshot, max(known.values(), default=0) + 1, column_id)

    def table(self, name: str) -> Table:
        """Not supported: there is no Iceberg table here."""
        raise errors.make("internal", detail=f"{name} is requested as an Iceberg table")

    def tables(self) -> list[str]:
        """The names of all tables."""
        sql = (
            "SELECT table_name FROM ducklake_table JOIN ducklake_schema USING (schema_id) "
            "WHERE schema_name = ? AND ducklake_table.end_snapshot IS NULL"
        )
        with self._lake.reading() as connection:
            return sorted(str(name) for (name,) in connection.execute(sql, (NAMESPACE,)))

    # ------------------------------------------------------------------ snapshots

    def listing(self, name: str) -> Listing:
        """The snapshots of a table."""
        with self._lake.reading() as connection:
            entries = _listed(connection, self._required(connection, name))
        return Listing(_pointer(entries), entries[-1] if entries else None, entries)

    def pointer(self, name: str) -> str:
        """A value that changes with every commit."""
        return self.listing(name).pointer

    def root(self, name: str, snapshot_id: int | None = None) -> Root | None:
        """The stored root of a snapshot (the current one by default), not verified."""
        listing = self.listing(name)
        if snapshot_id is None:
            wanted = listing.current
            if wanted is None:
                return None
        else:
            wanted = next((s for s in listing.snapshots if s.id == snapshot_id), None)
            if wanted is None:
                raise errors.make("lake.snapshot", table=name, snapshot=snapshot_id)
        return self._root_at(name, wanted.root_path)

    def expire(self, name: str, ids: Sequence[int]) -> bool:
        """Remove these oldest snapshots, and files that ended before the others."""
        with self._lake.writing() as connection:
            table = self._required(connection, name)
            known = [entry.id for entry in _listed(connection, table)]
            if known[: len(ids)] != sorted(ids) or len(ids) >= len(known):
                return False
            for identifier in ids:
                for other in ("louver_snapshot", "ducklake_snapshot", "ducklake_snapshot_changes"):
                    connection.execute(f"DELETE FROM {other} WHERE snapshot_id = ?", (identifier,))
            first = known[len(ids)]
            connection.execute(
                "DELETE FROM ducklake_file_column_stats WHERE data_file_id IN (SELECT data_file_id "
                "FROM ducklake_data_file WHERE table_id = ? AND end_snapshot <= ?)",
                (table, first),
            )
            sql = "DELETE FROM ducklake_data_file WHERE table_id = ? AND end_snapshot <= ?"
            connection.execute(sql, (table, first))
        return True

    def own_files(self, name: str, ids: Sequence[int]) -> set[str]:
        """Paths of the catalog's own files of these snapshots: their roots."""
        wanted = set(ids)
        listed = self.listing(name).snapshots
        return {f"{NAMESPACE}/{name}/{entry.root_path}" for entry in listed if entry.id in wanted}

    def table_files(self, name: str) -> set[str]:
        """Empty: the catalog is not one of the table's files."""
        with self._lake.reading() as connection:
            self._required(connection, name)
        return set()

    # ------------------------------------------------------------------ commits

    def commit(
        self, name: str, added: Sequence[File], removed: Sequence[File], build: Build
    ) -> tuple[Root, str]:
        """One transaction; see `louver.untrusted.lake.commit.commit`."""
        for attempt in range(TRIES):
            with self._lake.reading() as connection:
                table = self._required(connection, name)
                listed = _listed(connection, table)
                newest = head(connection)[0]
            last = listed[-1] if listed else None
            base = (
                Base(last.id, last.root_path, newest + 1) if last else Base(None, None, newest + 1)
            )
            root = built(build, base, self, name, _pointer(listed))
            if root is None:
                pause(attempt)
                continue
            path = new_name("root")
            with self._lake.writing() as connection:
                if head(connection)[0] == newest and _table_id(connection, name) == table:
                    snapshot = add_snapshot(
                        connection,
                        _changes(table, added, removed),
                        made_ms=root.made_ms,
                        files=len(added),
                    )
                    self._end(connection, name, table, removed, snapshot)
                    _begin(connection, table, added, snapshot, root)
                    insert(connection, "louver_snapshot", (snapshot, table, path))
                    data = roots.encode(root)
                    self._sides.put(connection, f"{NAMESPACE}/{name}/{path}", data)
                    return root, path
            pause(attempt)
        raise errors.make("lake.crowded", table=name, tries=TRIES)

    def _end(
        self,
        connection: sqlite3.Connection,
        name: str,
        table: int,
        files: Sequence[File],
        snapshot: int,
    ) -> None:
        """End files with this snapshot; each must have been live until now."""
        sql = (
            "UPDATE ducklake_data_file SET end_snapshot = ? "
            "WHERE table_id = ? AND path = ? AND end_snapshot IS NULL"
        )
        for file in files:
            if connection.execute(sql, (snapshot, table, file.path)).rowcount != 1:
                raise errors.make("lake.conflict", table=name)

    def _required(self, connection: sqlite3.Connection, name: str) -> int:
        identifier = _table_id(connection, name)
        if identifier is None:
            raise errors.make("lake.table", table=name, place=self.location)
        return identifier


def _table_id(connection: sqlite3.Connection, name: str) -> int | None:
    row = connection.execute(_TABLE_ID, (NAMESPACE, name)).fetchone()
    if row is None:
        return None
    if not isinstance(row[0], int):
        raise ValueError("a table without a number")
    return row[0]


def _listed(connection: sqlite3.Connection, table: int) -> tuple[Listed, ...]:
    """A table's snapshots, oldest first."""
    rows = connection.execute(
        "SELECT snapshot_id, snapshot_time, root FROM louver_snapshot "
        "JOIN ducklake_snapshot USING (snapshot_id) WHERE table_id = ? ORDER BY snapshot_id",
        (table,),
    )
    entries = []
    for number, moment, path in rows:
        if not isinstance(number, int) or not roots.is_root_path(path):
            raise ValueError("a snapshot does not name a Louver root")
        entries.append(Listed(number, milliseconds(moment), path))
    return tuple(entries)


def _pointer(listed: Sequence[Listed]) -> str:
    return f"{listed[-1].root_path} {len(listed)}" if listed else ""


def _add_column(
    connection: sqlite3.Connection, table: int, snapshot: int, position: int, column_id: int
) -> None:
    row = (
        position,
        snapshot,
        None,
        table,
        position,
        f"c{column_id}",
        "blob",
        None,
        "NULL",
        1,
        None,
    )
    insert(connection, "ducklake_column", (*row, "literal", "duckdb"))
    unknown = (table, position, None, None, None, None, None)
    insert(connection, "ducklake_table_column_stats", unknown)


def _changes(table: int, added: Sequence[File], removed: Sequence[File]) -> str:
    words = (("inserted_into_table", added), ("deleted_from_table", removed))
    return ",".join(f"{word}:{table}" for word, files in words if files)


def _begin(
    connection: sqlite3.Connection, table: int, files: Sequence[File], snapshot: int, root: Root
) -> None:
    """Begin files with this snapshot: rows, sizes and wrapped keys, without bounds or counts."""
    sql = "SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?"
    (row_id,) = connection.execute(sql, (table,)).fetchone()
    number = head(connection)[3] - len(files)
    sql = "SELECT column_id FROM ducklake_column WHERE table_id = ? AND end_snapshot IS NULL"
    columns = [column for (column,) in connection.execute(sql, (table,))]
    file_rows, unknown = [], []
    for position, file in enumerate(files, number):
        key = b64encode(file.key_metadata).decode()
        file_rows.append(
            (position, table, snapshot, None, None, file.path, 1, "parquet", file.rows, file.size)
            + (None, row_id, None, key, None, None)
        )
        row_id += file.rows
        unknown += [(position, table, column, *[None] * 7) for column in columns]
    insert(connection, "ducklake_data_file", *file_rows)
    # DuckLake's own pruning would omit a file without a row here.
    insert(connection, "ducklake_file_column_stats", *unknown)
    connection.execute(
        "UPDATE ducklake_table_stats SET record_count = ?, next_row_id = ?, file_size_bytes = ? "
        "WHERE table_id = ?",
        (root.rows, row_id, root.size, table),
    )
