"""Warehouses in object stores: S3, GCS, Azure and whatever else PyIceberg's FileIO reaches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.untrusted.lake.objects import Buffer, Range, Store, parts_of, side_by_side

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

#: What `map` keeps of files that cannot be mapped into memory.
CACHE_BYTES = 256 << 20


class ByteCache:
    """Whole files, the least recently used ones forgotten first."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        """`limit_bytes` bounds what is kept; a larger file passes through."""
        self._limit = limit_bytes
        self._held = 0
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, fetch: Callable[[], bytes]) -> bytes:
        """The file, from here or by `fetch`."""
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
        """Forget a file."""
        with self._lock:
            self._held -= len(self._files.pop(path, b""))


class FileIOObjects(Store):
    """What PyIceberg's FileIO reaches: S3, GCS, Azure and others, below one location.

    An object store shows an object when its last byte has arrived. It is asked before a write
    whether the name is taken; two writers of one name could still both pass, so names are random.
    """

    def __init__(self, io: FileIO, location: str, cache_bytes: int = CACHE_BYTES) -> None:
        """`location` is the URL of the root, such as ``s3://bucket/prefix``."""
        super().__init__(location.rstrip("/"))
        self._io = io
        self._cache = ByteCache(cache_bytes)

    def url(self, path: str) -> str:
        """The location of a file in the words of its store."""
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
        """Several ranges, many requests at a time."""
        return side_by_side(lambda each: self.read(*each), ranges)

    def map(self, path: str) -> Buffer:
        """The whole file; the last ones used are kept, up to a bound."""
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
        """Files below a folder, as far as the store can tell them."""
        from pyarrow.fs import FileSelector, FileType

        system, root = self._system()
        folders = parts_of(prefix.rstrip("/"), self.location) if prefix.strip("/") else []
        selector = FileSelector("/".join([root, *folders]), allow_not_found=True, recursive=True)
        with self._translated(prefix):
            infos = system.get_file_info(selector)
        files = [info.path for info in infos if info.type == FileType.File]
        yield from sorted(path.removeprefix(root).lstrip("/") for path in files)

    def _system(self) -> tuple[Any, str]:
        """Arrow's view of the store, which PyIceberg's own interface lacks: listing and times."""
        from pyiceberg.io.pyarrow import PyArrowFileIO

        if not isinstance(self._io, PyArrowFileIO):
            raise errors.make("lake.io", place=self.location, detail="this store cannot list files")
        scheme, host, path = self._io.parse_location(self.location)
        return self._io.fs_by_scheme(scheme, host), path.rstrip("/")
