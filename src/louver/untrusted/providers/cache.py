"""The folder of prepared tables: bounded in bytes, the least recently used go first."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from louver import errors
from louver.untrusted.providers import tables
from louver.untrusted.providers.preparing import Sections
from louver.untrusted.providers.tables import Table
from louver.wire.questions import Prepared, Protocol

_END = ".table"


class Cache:
    """Tables of one version of the data, in a folder that other versions use too."""

    def __init__(self, folder: Path, version: bytes, most_bytes: int) -> None:
        """`folder` exists, and belongs to this process."""
        self._folder = folder
        self._version = version
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._open: dict[bytes, Table] = {}
        self._clear()

    def find(self, shape_id: bytes) -> Table | None:
        """The table of a shape, if it is there; it is marked as used."""
        path = self._path(shape_id)
        with self._lock:
            try:
                os.utime(path)
            except FileNotFoundError:
                self._open.pop(shape_id, None)
                return None
            found = self._open.get(shape_id)
            if found is None:
                found = self._opened(path, shape_id)
            if found is not None:
                self._open[shape_id] = found
            return found

    def put(self, protocol: Protocol, prepared: Prepared, sections: Sections) -> Table:
        """Keep a table, and drop others until all fit.

        Raises:
            errors.Error: `provider.large`, `disk.full`.
        """
        size = sum(array.nbytes for array in sections.values())
        if size > self._most_bytes:
            raise errors.make("provider.large", bytes=size, most=self._most_bytes)
        path = self._path(prepared.shape_id)
        self._make_room(size, path)
        tables.write(path, protocol, prepared, sections)
        table = tables.read(path, verify=False)
        with self._lock:
            self._open[prepared.shape_id] = table
        return table

    def close(self) -> None:
        """Let go of all files; they stay for the next start."""
        with self._lock:
            self._open.clear()

    def _opened(self, path: Path, shape_id: bytes) -> Table | None:
        """A table that an earlier process left, if it is whole."""
        try:
            found = tables.read(path, verify=True)
        except FileNotFoundError:
            return None
        except errors.Error:
            path.unlink(missing_ok=True)
            return None
        names = (found.prepared.version, found.prepared.shape_id)
        return found if names == (self._version, shape_id) else None

    def _path(self, shape_id: bytes) -> Path:
        return self._folder / f"{self._version.hex()[:32]}-{shape_id.hex()[:32]}{_END}"

    def _make_room(self, size: int, kept: Path) -> None:
        files = []
        for path in self._folder.glob(f"*{_END}"):
            with suppress(FileNotFoundError):
                state = path.stat()
                files.append((state.st_mtime_ns, path, state.st_size))
        total = size + sum(each[2] for each in files if each[1] != kept)
        for _, path, length in sorted(files):
            if total <= self._most_bytes:
                break
            if path != kept:
                path.unlink(missing_ok=True)
                total -= length

    def _clear(self) -> None:
        """Remove what processes that ended have not finished writing."""
        for path in self._folder.glob(f"writing-*{_END}"):
            if not path.name.startswith(f"writing-{os.getpid()}-"):
                path.unlink(missing_ok=True)
