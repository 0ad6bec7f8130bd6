"""The list of a part's data files: pages of fixed-width records, each with a digest.

A query selects few of many files, so a page is read and checked only if one of its files is
selected. The blob is: head (magic `LVFL`, version, zero, files per page, number of files), a
directory (the end of each page, and its SHA-256), then the pages (records, then their wrapped
keys). The SHA-256 of head and directory is stored in the signed root, so a page that matches was
written by the client. Paths are not stored: a data file is named by its id.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from louver.untrusted.lake.root import MAX_PART_FILES
from louver.wire.binary import malformed_file

VERSION = 1
PAGE_FILES = 128
MAX_KEY_BYTES = 4_096
#: Adjacent pages are read together up to this size.
READ_BYTES = 1 << 20

_MAGIC = b"LVFL"
_HEAD = struct.Struct(">4sBBHI")
_ENTRY = struct.Struct(">I32s")
_RECORD = struct.Struct(">16sQQI")

Buffer = bytes | memoryview
#: Reads ranges (offset, length) of the blob.
Fetch = Callable[[list[tuple[int, int]]], Sequence[Buffer]]


class File(NamedTuple):
    """A data file: its id (16 bytes, never used again), size in bytes, rows, wrapped key."""

    file_id: bytes
    size: int
    rows: int
    key_metadata: bytes

    @property
    def path(self) -> str:
        """Its path, relative to its table."""
        return f"data/{self.file_id.hex()}.parquet"


def encode(files: Sequence[File]) -> bytes:
    """The list as a blob."""
    pages = [_page(files[at : at + PAGE_FILES]) for at in range(0, len(files), PAGE_FILES)]
    directory, end = [], 0
    for page in pages:
        end += len(page)
        directory.append(_ENTRY.pack(end, hashlib.sha256(page).digest()))
    head = _HEAD.pack(_MAGIC, VERSION, 0, PAGE_FILES, len(files))
    return b"".join([head, *directory, *pages])


def head_length(count: int) -> int:
    """Bytes of head and directory for a list of `count` files."""
    return _HEAD.size + _ENTRY.size * -(-count // PAGE_FILES)


def digest(blob: Buffer, count: int) -> bytes:
    """The digest of a list in its root: SHA-256 of head and directory."""
    return hashlib.sha256(blob[: head_length(count)]).digest()


class FileList:
    """A list that is read page by page; every page is checked."""

    def __init__(self, fetch: Fetch, count: int, length: int, known: bytes, name: str) -> None:
        """A list of `count` files, `length` bytes, with digest `known`; `name` is for errors."""
        self._fetch, self._count, self._name = fetch, count, name
        self._known = known
        self._length = length
        self._ends: list[int] | None = None
        self._digests: list[bytes] = []

    def files(self, ordinals: Sequence[int]) -> Iterator[File]:
        """The files with these ascending ordinals."""
        wanted: dict[int, list[int]] = {}
        for ordinal in ordinals:
            wanted.setdefault(ordinal // PAGE_FILES, []).append(ordinal % PAGE_FILES)
        for run in self._runs(list(wanted)):
            for number, page in self._pages(run):
                yield from self._records(number, page, wanted[number])

    def _directory(self) -> list[int]:
        """The end of every page; read once."""
        if self._ends is None:
            size = head_length(self._count)
            data = bytes(self._fetch([(0, size)])[0])
            if not hmac.compare_digest(hashlib.sha256(data).digest(), self._known):
                raise malformed_file(
                    self._name, "a list of files differs from the one that was written"
                )
            if not 0 < self._count <= MAX_PART_FILES or len(data) != size:
                raise malformed_file(self._name, "a list of files has another length")
            if _HEAD.unpack_from(data) != (_MAGIC, VERSION, 0, PAGE_FILES, self._count):
                raise malformed_file(self._name, "a list of files is of another kind or version")
            rows = list(_ENTRY.iter_unpack(data[_HEAD.size :]))
            ends = [row[0] for row in rows]
            if ends != sorted(ends) or size + ends[-1] != self._length:
                raise malformed_file(self._name, "a list of files has another length")
            self._ends, self._digests = ends, [row[1] for row in rows]
        return self._ends

    def _runs(self, pages: list[int]) -> Iterator[list[int]]:
        """Pages in groups that are read together."""
        ends = self._directory()
        run: list[int] = []
        for page in pages:
            if run and (page != run[-1] + 1 or ends[page] - ends[run[0]] > READ_BYTES):
                yield run
                run = []
            run.append(page)
        if run:
            yield run

    def _pages(self, run: list[int]) -> Iterator[tuple[int, Buffer]]:
        ends = self._directory()
        base = head_length(self._count)
        first = ends[run[0] - 1] if run[0] else 0
        data = self._fetch([(base + first, ends[run[-1]] - first)])[0]
        for number in run:
            start = ends[number - 1] if number else 0
            page = data[start - first : ends[number] - first]
            if not hmac.compare_digest(hashlib.sha256(page).digest(), self._digests[number]):
                raise malformed_file(
                    self._name, "a list of files differs from the one that was written"
                )
            yield number, page

    def _records(self, number: int, page: Buffer, places: list[int]) -> Iterator[File]:
        count = min(PAGE_FILES, self._count - number * PAGE_FILES)
        keys = count * _RECORD.size
        if len(page) < keys:
            raise malformed_file(self._name, "a list of files is cut short")
        for position in places:
            file_id, size, rows, end = _RECORD.unpack_from(page, position * _RECORD.size)
            before = (
                page[position * _RECORD.size - 4 : position * _RECORD.size] if position else b""
            )
            start = int.from_bytes(before, "big")
            if not start <= end <= len(page) - keys or end - start > MAX_KEY_BYTES:
                raise malformed_file(self._name, "a wrapped key lies outside of its page")
            yield File(file_id, size, rows, bytes(page[keys + start : keys + end]))


def _page(files: Sequence[File]) -> bytes:
    records, end = [], 0
    for file in files:
        end += len(file.key_metadata)
        records.append(_RECORD.pack(file.file_id, file.size, file.rows, end))
    return b"".join([*records, *(file.key_metadata for file in files)])
