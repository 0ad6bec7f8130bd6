"""Warehouses in object stores: S3, GCS, Azure and others supported by PyIceberg's FileIO."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.untrusted.lake.objects import Buffer, Range, Store, parts_of, side_by_side

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

#: The limit of `map`'s cache for files that cannot be mapped into memory.
CACHE_BYTES = 256 << 20


class ByteCache:
    """Whole files; the least recently used ones are evicted first."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        """`limit_bytes` is the cache's limit; a larger file is not cached."""
        self._limit = limit_bytes
        self._held = 0
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, fetch: Callable[[], bytes]) -> bytes:
        """The file, from the cache or by `fetch`."""
        with self._lock:
            if path in self._files:
                self._files.move_to_end(path)
                return self._files[path]
        data = fetch()
        with self._lock:
            if path not in self._files and len(data) <= self._limit:
                self._files[path] = data
                self._held += len(data)
            while self._held > self._limit:
                self._held -= len(self._files.popitem(last=False)[1])
        return data

    def drop(self, path: str) -> None:
        """Evict a file."""
        with self._lock:
            self._held -= len(self._files.pop(path, b""))


class FileIOObjects(Store):
    """Files of a store supported by PyIceberg's FileIO, below one location.

    An object store shows an object after its last byte has arrived. Before a write, the name is
    checked; two writers of one name could still both pass, so names are random.
    """

    def __init__(self, io: FileIO, location: str, cache_bytes: int = CACHE_BYTES) -> None:
        """`location` is the URL of the root, such as ``s3://bucket/prefix``."""
        super().__init__(location.rstrip("/"))
        self._io = io
        self._cache = ByteCache(cache_bytes)

    def url(self, path: str) -> str:
        """The location of a file in the store's notation."""
        return "/".join([self.location, *parts_of(path, self.location)])

    def size(self, path: str) -> int:
        """Length in bytes."""
        with self._translated(path):
            return len(self._io.new_input(self.url(path)))

    def modified(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        system, root = self._system()
        with self._translated(path):
            info = system.get_file_info("/".join([root, *parts_of(path, self.location)]))
            return float(info.mtime_ns or 0) / 1e9

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        with self._translated(path), self._io.new_input(self.url(path)).open() as stream:
            stream.seek(offset)
            data = stream.read(length) if length else b""
        if len(data) != length:
            raise errors.make("lake.short", path=path, place=self.location)
        self._count(into=length)
        return bytes(data)

    def read_many(self, ranges: Sequence[Range]) -> list[bytes]:
        """Several ranges, many requests in parallel."""
        return side_by_side(lambda each: self.read(*each), ranges)

    def map(self, path: str) -> Buffer:
        """The whole file; the most recently used ones are cached, up to a limit."""
        return self._cache.get(path, lambda: self.read(path, 0, self.size(path)))

    def create(self, path: str, data: Buffer) -> None:
        """Write a file that does not exist yet."""
        view = memoryview(data).cast("B")
        output = self._io.new_output(self.url(path))
        with self._translated(path), output.create(overwrite=False) as stream:
            stream.write(view)  # type: ignore[arg-type]
        self._count(out=len(view))

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._cache.drop(path)
        with self._translated(path, missing=False):
            self._io.delete(self.url(path))

    def list(self, prefix: str) -> Iterator[str]:
        """Files below a folder, as far as the store can list them."""
        from pyarrow.fs import FileSelector, FileType

        system, root = self._system()
        folders = parts_of(prefix.rstrip("/"), self.location) if prefix.strip("/") else []
        selector = FileSelector("/".join([root, *folders]), allow_not_found=True, recursive=True)
        with self._translated(prefix):
            infos = system.get_file_info(selector)
        files = [info.path for info in infos if info.type == FileType.File]
        yield from sorted(path.removeprefix(root).lstrip("/") for path in files)

    def _system(self) -> tuple[Any, str]:
        """Arrow's view of the store, for what PyIceberg's interface lacks: listing and times."""
        from pyiceberg.io.pyarrow import PyArrowFileIO

        if not isinstance(self._io, PyArrowFileIO):
            raise errors.make("lake.io", place=self.location, detail="this store cannot list files")
        scheme, host, path = self._io.parse_location(self.location)
        return self._io.fs_by_scheme(scheme, host), path.rstrip("/")
