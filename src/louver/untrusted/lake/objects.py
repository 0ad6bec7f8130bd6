"""The files of a warehouse: written once, read by ranges, named by paths relative to its root.

No path leads out of the root. A file exists completely or not at all, and is never overwritten, so
reads can be cached.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from louver import errors
from louver.untrusted.engines.engine import Traffic

#: Bytes in any kind of memory.
Buffer = bytes | bytearray | memoryview | mmap.mmap
#: One range: path, offset, length.
Range = tuple[str, int, int]
MAX_PATH_BYTES = 4_096
_MAPS = 256
_THREADS = 16
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_TEMPORARY = ".tmp-"
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


class Objects(Protocol):
    """The files of one warehouse; all methods may be called from several threads."""

    #: Bytes read and written, and requests, so far.
    traffic: Traffic

    @property
    def location(self) -> str:
        """The warehouse's location: an absolute path or a URL."""
        ...

    def size(self, path: str) -> int:
        """Length in bytes; `lake.missing` if there is no such file."""
        ...

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Exactly these bytes; `lake.short` if the file ends before."""
        ...

    def read_many(self, ranges: Sequence[Range]) -> list[bytes]:
        """Several ranges, in their order, in parallel if that is faster."""
        ...

    def map(self, path: str) -> Buffer:
        """The whole file, read-only and, if possible, in memory only as far as it is used."""
        ...

    def create(self, path: str, data: Buffer) -> None:
        """Write a file that does not exist yet: complete and durable, or not at all."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is not an error."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """The paths of all files below a folder, sorted; none if the folder does not exist."""
        ...

    def modified(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        ...


def parts_of(path: str, location: str) -> list[str]:
    """The names in a relative path; `lake.path` unless it stays inside."""
    names = path.split("/")
    bad = any(name in ("", ".", "..") for name in names) or "\0" in path or "\\" in path
    if bad or len(path.encode(errors="surrogatepass")) > MAX_PATH_BYTES or not path.isprintable():
        raise errors.make("lake.path", path=f"{path!r:.200}", place=location)
    return names


class Store:
    """Common to all kinds of `Objects`: location, traffic counts, errors."""

    def __init__(self, location: str) -> None:
        """`location` is named in errors."""
        self.location = location
        self.traffic = Traffic()
        self._lock = threading.Lock()

    @contextmanager
    def _translated(self, path: str, missing: bool = True) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not missing and isinstance(error, FileNotFoundError):
                return
            raise translated(error, path, self.location) from error

    def _count(self, into: int = 0, out: int = 0) -> None:
        with self._lock:
            self.traffic.statements += 1
            self.traffic.bytes_in += into
            self.traffic.bytes_out += out


class LocalObjects(Store):
    """A directory. Links below its root are not followed."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """The directory need not exist before the first `create`."""
        self._root = Path(directory).resolve()
        super().__init__(str(self._root))
        self._maps: OrderedDict[str, Buffer] = OrderedDict()

    def size(self, path: str) -> int:
        """Length in bytes."""
        return self._stat(path).st_size

    def modified(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        return self._stat(path).st_mtime

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        with self._opened(path) as file:
            return self._ranged(file, path, offset, length)

    def read_many(self, ranges: Sequence[Range]) -> list[bytes]:
        """Several ranges; consecutive ranges of one file open it once."""
        pieces: list[bytes] = []
        offset = 0
        while offset < len(ranges):
            path = ranges[offset][0]
            with self._opened(path) as file:
                while offset < len(ranges) and ranges[offset][0] == path:
                    pieces.append(self._ranged(file, *ranges[offset]))
                    offset += 1
        return pieces

    def map(self, path: str) -> Buffer:
        """The file mapped into memory; a few hundred maps are cached."""
        with self._lock:
            if path in self._maps:
                self._maps.move_to_end(path)
                return self._maps[path]
        with self._opened(path) as file:
            size = os.fstat(file).st_size
            mapped: Buffer = mmap.mmap(file, size, access=mmap.ACCESS_READ) if size else b""
        with self._lock:
            self.traffic.statements += 1
            self._maps[path] = mapped
            while len(self._maps) > _MAPS:
                # A sweep that is still running holds the map; the last reference unmaps it.
                self._maps.popitem(last=False)
        return mapped

    def create(self, path: str, data: Buffer) -> None:
        """Write a temporary file, make it durable, and link it unless the name is taken."""
        view = memoryview(data).cast("B")
        *folders, name = parts_of(path, self.location)
        with self._translated(path), self._folder(folders, make=True) as folder:
            temporary = f"{_TEMPORARY}{secrets.token_hex(12)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            file = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                try:
                    _write(file, view)
                finally:
                    os.close(file)
                _settle(temporary, name, folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
            os.fsync(folder)
        self._count(out=len(view))

    def delete(self, path: str) -> None:
        """Remove a file, and its map."""
        *folders, name = parts_of(path, self.location)
        with self._lock:
            self._maps.pop(path, None)
        with self._translated(path, missing=False), self._folder(folders) as folder:
            os.unlink(name, dir_fd=folder)

    def list(self, prefix: str) -> Iterator[str]:
        """Files below a folder; files left half written by a crash are listed too."""
        folders = parts_of(prefix.rstrip("/"), self.location) if prefix.strip("/") else []
        top = self._root.joinpath(*folders)
        paths = []
        for folder, _, names in os.walk(top, followlinks=False):
            base = Path(folder).relative_to(self._root)
            paths += [(base / name).as_posix() for name in names]
        yield from sorted(paths)

    def _stat(self, path: str) -> os.stat_result:
        with self._opened(path) as file:
            return os.fstat(file)

    def _ranged(self, file: int, path: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise errors.make("internal", detail="a range before the beginning of a file")
        # Checked first, so that a bogus length allocates nothing.
        missing = length if offset + length <= os.fstat(file).st_size else -1
        pieces: list[bytes] = []
        while missing > 0 and (piece := os.pread(file, missing, offset + length - missing)):
            pieces.append(piece)
            missing -= len(piece)
        if missing:
            raise errors.make("lake.short", path=path, place=self.location)
        self._count(into=length)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        *folders, name = parts_of(path, self.location)
        with self._translated(path), self._folder(folders) as folder:
            # A pipe instead of a file must not block.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            file = os.open(name, flags, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise errors.make("lake.path", path=f"{path!r:.200}", place=self.location)
            with self._translated(path):
                yield file
        finally:
            os.close(file)

    @contextmanager
    def _folder(self, names: Sequence[str], make: bool = False) -> Iterator[int]:
        """Descend name by name, so that no link leads out of the root."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if make:
            self._root.mkdir(parents=True, exist_ok=True)
        folder = os.open(self._root, flags)
        try:
            for name in names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=folder)
                        os.fsync(folder)
                below = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def whole(objects: Objects, path: str) -> bytes:
    """A copy of a whole file: a map changes or breaks with the file behind it."""
    if isinstance(objects, LocalObjects):
        return objects.read(path, 0, objects.size(path))
    return bytes(objects.map(path))


def translated(error: OSError, path: str, location: str) -> errors.Error:
    """Translate an error of the operating system about one file to the lake's error."""
    if isinstance(error, FileNotFoundError):
        return errors.make("lake.missing", path=path, place=location)
    if isinstance(error, FileExistsError):
        return errors.make("lake.exists", path=path, place=location)
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}:
        return errors.make("lake.path", path=f"{path!r:.200}", place=location)
    if error.errno in _FULL:
        return errors.make("disk.full", place=location, detail=error.strerror or "")
    return errors.make("lake.io", place=location, detail=f"{path}: {error.strerror or error}")


def _write(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]
    os.fsync(file)


def _settle(temporary: str, name: str, folder: int) -> None:
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EMLINK}:
            raise
        # A file system without links: take the name first, so that nothing is overwritten.
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=folder))
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def side_by_side(work: Callable[[_Item], _Found], items: Iterable[_Item]) -> list[_Found]:
    """Process items in parallel, a few requests at a time; returns results in order."""
    wanted = list(items)
    if len(wanted) < 2:
        return [work(item) for item in wanted]
    with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
        return list(pool.map(work, wanted))
