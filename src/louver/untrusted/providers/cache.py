"""The cache of prepared tables: bounded in bytes, the least recently used are evicted first."""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from louver import errors
from louver.untrusted.providers import tables
from louver.untrusted.providers.preparing import Sections
from louver.untrusted.providers.tables import Table
from louver.wire.questions import Prepared, Protocol

_END = ".table"
#: Disk space that is left to other programs.
_SPARE_BYTES = 16 << 20


class Cache:
    """Tables of one version of the data, in a folder that other versions use too."""

    def __init__(self, folder: Path, version: bytes, most_bytes: int) -> None:
        """`folder` exists, and belongs to this process."""
        self._folder = folder
        self._version = version
        self._most_bytes = most_bytes
        self._shelf = _shelf(folder)

    def known(self, shape_id: bytes) -> Table | None:
        """The table of a shape, if it is open; marked as used."""
        return self._shelf.find(self._path(shape_id))

    def find(self, shape_id: bytes) -> Table | None:
        """The table of a shape, if it exists; marked as used."""
        path = self._path(shape_id)
        table = self._shelf.find(path)
        if table is None:
            table = self._left(path, shape_id)
            if table is not None:
                self._shelf.add(path, table)
        return table

    def put(self, protocol: Protocol, prepared: Prepared, sections: Sections) -> Table:
        """Store a table, and evict others until all fit.

        Raises:
            errors.Error: `provider.large`, `disk.full`.
        """
        size = sum(array.nbytes for array in sections.values())
        if size > self._most_bytes:
            raise errors.make("provider.large", bytes=size, most=self._most_bytes)
        path = self._path(prepared.shape_id)
        with self._shelf.room(size, path, self._most_bytes):
            tables.write(path, protocol, prepared, sections)
            table = tables.read(path, verify=False)
            self._shelf.add(path, table)
        return table

    def close(self) -> None:
        """Close this version's files, which remain for the next start."""
        self._shelf.forget(self._version.hex()[:32])

    def _left(self, path: Path, shape_id: bytes) -> Table | None:
        """A table left by an earlier process, if it is complete."""
        try:
            table = tables.read(path, verify=True)
        except FileNotFoundError:
            return None
        except errors.Error:
            path.unlink(missing_ok=True)
            return None
        names = (table.prepared.version, table.prepared.shape_id)
        return table if names == (self._version, shape_id) else None

    def _path(self, shape_id: bytes) -> Path:
        return self._folder / f"{self._version.hex()[:32]}-{shape_id.hex()[:32]}{_END}"


class _Shelf:
    """The files of a folder, and which of them are mapped, for all versions together.

    A deleted file uses disk space as long as it is mapped, so no file is deleted that stays mapped
    here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._open: dict[str, Table] = {}
        #: Bytes that are being written.
        self._coming: dict[str, int] = {}

    def find(self, path: Path) -> Table | None:
        """A mapped table; marked as used."""
        with self._lock:
            entry = self._open.get(path.name)
            if entry is not None:
                try:
                    os.utime(path)
                except OSError:
                    # Another process deleted it.
                    del self._open[path.name]
                    return None
            return entry

    def add(self, path: Path, table: Table) -> None:
        """Register a mapped table, unless its file was evicted meanwhile."""
        with self._lock:
            if path.exists():
                self._open[path.name] = table

    def forget(self, start: str) -> None:
        """Close the tables with this name prefix."""
        with self._lock:
            self._open = {name: entry for name, entry in self._open.items() if name[:32] != start}

    @contextmanager
    def room(self, size: int, path: Path, most: int) -> Iterator[None]:
        """Reserve space for a table while it is written; others are evicted for it.

        Raises:
            errors.Error: `disk.full`, if the disk still has no space.
        """
        with self._lock:
            self._make_room(size, path.name, most)
            self._coming[path.name] = size
        try:
            yield
        finally:
            with self._lock:
                del self._coming[path.name]

    def _make_room(self, size: int, spared: str, most: int) -> None:
        coming = sum(self._coming.values())
        files = sorted(file for file in self._files() if file[1] not in (spared, *self._coming))
        total = size + coming + sum(length for _, _, length in files)
        free = shutil.disk_usage(self._folder).free - _SPARE_BYTES
        for _, name, length in files:
            if total <= most and free >= size + coming:
                return
            with suppress(FileNotFoundError):
                (self._folder / name).unlink()
            self._open.pop(name, None)
            total, free = total - length, free + length
        if free < size + coming:
            raise errors.make("disk.full", place="the cache folder")

    def _files(self) -> Iterator[tuple[int, str, int]]:
        """Each table's time of last use, its name, its bytes."""
        for path in self._folder.glob(f"[0-9a-f]*{_END}"):
            with suppress(FileNotFoundError):
                state = path.stat()
                yield state.st_mtime_ns, path.name, state.st_size


_SHELVES: weakref.WeakValueDictionary[Path, _Shelf] = weakref.WeakValueDictionary()
_SHELVES_LOCK = threading.Lock()


def _shelf(folder: Path) -> _Shelf:
    """The shelf of a folder."""
    with _SHELVES_LOCK:
        shelf = _SHELVES.get(folder) or _Shelf(folder)
        _SHELVES[folder] = shelf
        return shelf
