"""Files of a DuckLake warehouse: data in its folder, side files in its catalog.

The files in a table's `metadata/` (roots, indexes, lists) are rows of `louver_index`, in chunks, so
that one transaction of the catalog contains a whole commit.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from louver import errors
from louver.untrusted.engines.engine import Traffic
from louver.untrusted.lake.ducklake_catalog import DuckLakeCatalog, insert
from louver.untrusted.lake.objects import Buffer, Objects, Range, parts_of

PIECE_BYTES = 1 << 20
#: The limit of side files cached in memory between queries.
KEPT_BYTES = 512 << 20

_SIDE = re.compile(r"louver/t[0-9]+/metadata/")


class CatalogObjects:
    """`Objects` over a folder and a catalog."""

    def __init__(self, files: Objects, catalog: DuckLakeCatalog) -> None:
        """Data files in `files`, side files in `catalog`."""
        self._files, self._catalog = files, catalog
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self.traffic: Traffic = files.traffic

    @property
    def location(self) -> str:
        """The location of the data files."""
        return self._files.location

    def size(self, path: str) -> int:
        """Length in bytes."""
        return int(self._fact(path, "size")) if _is_side(path) else self._files.size(path)

    def modified(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        return self._fact(path, "written") if _is_side(path) else self._files.modified(path)

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        if not _is_side(path):
            return self._files.read(path, offset, length)
        if offset < 0 or length < 0:
            raise errors.make("internal", detail="a range before the beginning of a file")
        with self._lock:
            whole = self._kept.get(path)
        if whole is not None:
            data = whole[offset : offset + length]
        else:
            first, last = offset // PIECE_BYTES, (offset + max(length, 1) - 1) // PIECE_BYTES
            start = offset - first * PIECE_BYTES
            data = self._pieces(path, first, last)[start : start + length]
        if len(data) != length:
            raise errors.make("lake.short", path=path, place=self.location)
        return data

    def read_many(self, ranges: Sequence[Range]) -> list[bytes]:
        """The same for several ranges, in their order."""
        if any(_is_side(path) for path, _, _ in ranges):
            return [self.read(*each) for each in ranges]
        return self._files.read_many(ranges)

    def map(self, path: str) -> Buffer:
        """The whole file; side files are cached in memory up to a limit."""
        if not _is_side(path):
            return self._files.map(path)
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
                return self._kept[path]
        size = self.size(path)
        data = self._pieces(path, 0, size // PIECE_BYTES)
        if len(data) != size:
            raise errors.make("lake.short", path=path, place=self.location)
        with self._lock:
            self._kept[path] = data
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > KEPT_BYTES:
                self._kept.popitem(last=False)
        return data

    def create(self, path: str, data: Buffer) -> None:
        """Write a file that does not exist yet: complete and durable, or not at all."""
        if not _is_side(path):
            self._files.create(path, data)
            return
        with self._catalog.writing() as connection:
            self.put(connection, path, data)

    def put(self, connection: sqlite3.Connection, path: str, data: Buffer) -> None:
        """Write a side file in a transaction of the catalog."""
        parts_of(path, self.location)
        view = memoryview(data).cast("B")
        try:
            insert(connection, "louver_file", (path, len(view), time.time()))
        except sqlite3.IntegrityError as error:
            raise errors.make("lake.exists", path=path, place=self.location) from error
        starts = range(0, len(view), PIECE_BYTES)
        rows = ((path, at // PIECE_BYTES, bytes(view[at : at + PIECE_BYTES])) for at in starts)
        connection.executemany("INSERT INTO louver_index VALUES (?, ?, ?)", rows)
        self._count(out=len(view))

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is not an error."""
        if not _is_side(path):
            self._files.delete(path)
            return
        with self._lock:
            self._kept.pop(path, None)
        with self._catalog.writing() as connection:
            for table in ("louver_file", "louver_index"):
                connection.execute(f"DELETE FROM {table} WHERE path = ?", (path,))

    def list(self, prefix: str) -> Iterator[str]:
        """The paths of all files below a folder, sorted."""
        folder = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        sql = "SELECT path FROM louver_file WHERE substr(path, 1, ?) = ?"
        with self._catalog.reading() as connection:
            side = [str(path) for (path,) in connection.execute(sql, (len(folder), folder))]
        yield from sorted({*self._files.list(prefix), *side})

    def _fact(self, path: str, column: str) -> float:
        parts_of(path, self.location)
        with self._catalog.reading() as connection:
            sql = f"SELECT {column} FROM louver_file WHERE path = ?"
            row = connection.execute(sql, (path,)).fetchone()
        if row is None:
            raise errors.make("lake.missing", path=path, place=self.location)
        if not isinstance(row[0], int | float) or row[0] < 0:
            raise errors.make("lake.format", path=path, detail="its length or time is not valid")
        return row[0]

    def _pieces(self, path: str, first: int, last: int) -> bytes:
        parts_of(path, self.location)
        sql = (
            "SELECT bytes FROM louver_index WHERE path = ? AND piece BETWEEN ? AND ? "
            "ORDER BY piece LIMIT ?"
        )
        with self._catalog.reading() as connection:
            rows = connection.execute(sql, (path, first, last, last - first + 1)).fetchall()
        if not all(isinstance(row[0], bytes) and len(row[0]) <= PIECE_BYTES for row in rows):
            raise errors.make(
                "lake.format", path=path, detail="a part differs from the data that was written"
            )
        data = b"".join(row[0] for row in rows)
        if not data and first == 0:
            self._fact(path, "size")
        self._count(into=len(data))
        return data

    def _count(self, into: int = 0, out: int = 0) -> None:
        with self._lock:
            self.traffic.statements += 1
            self.traffic.bytes_in += into
            self.traffic.bytes_out += out


def _is_side(path: str) -> bool:
    return _SIDE.match(path) is not None
