"""Messages of the pruning service: tokens out, file lists back.

A `Where` is a condition whose leaves are tokens: opaque bytes, each of which opens one range of one
index. The planner weakens a query's WHERE to this form; what a token cannot express becomes
`Everything`. A `FilePlan` lists the files that may contain a matching row. Both start with a
version byte; every length is bounded before anything is allocated, so that arbitrary bytes either
are a message or raise `wire.format`. See spec/prune.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile

from louver.wire.binary import Reader, malformed

VERSION = 1
MAX_DEPTH = 32
MAX_TOKENS = 1_024
MAX_NODES = 8_192
MAX_BYTES = 64 << 20
#: Files of one snapshot: a row id has 31 bits for the number of a file.
MAX_FILES = 1 << 31
MAX_PLAN_BYTES = 4 << 30
MAX_PATH_BYTES = 4_096
MAX_KEY_METADATA_BYTES = 4_096

_HIT, _ALL, _ANY, _EVERYTHING = range(1, 5)
_HEAD = struct.Struct(">BqIIHH")
_ENTRY = struct.Struct(">16sQQIHH")
_CHUNK_FILES = 16_384


@dataclass(frozen=True, slots=True)
class Hit:
    """Files that may contain a value in the token's range; its header names the index."""

    token: bytes


@dataclass(frozen=True, slots=True)
class All:
    """Files that satisfy every part; without parts, all files."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Files that satisfy at least one part; without parts, no file."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Everything:
    """All files: a condition that no index supports."""


Where = Hit | All | Any | Everything


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One live data file of a snapshot, as known to the pruner.

    Attributes:
        path: relative to the warehouse.
        file_id: 16 bytes, never used for another file.
        size: in bytes.
        rows: the number of rows in it.
        key_metadata: the wrapped data key, opaque here.
        number: its position in the snapshot's list of live files.
    """

    path: str
    file_id: bytes
    size: int
    rows: int
    key_metadata: bytes
    number: int


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files that may contain matching rows, by number, out of `total` live files."""

    snapshot_id: int
    total: int
    files: tuple[FileEntry, ...]

    def encode(self) -> bytes:
        """The answer as bytes; `wire.format` if it exceeds a bound."""
        return b"".join(self.parts())

    def parts(self) -> Iterator[bytes]:
        """The same bytes in pieces, with bounded memory."""
        prefix, suffix = _common([file.path for file in self.files])
        head = (VERSION, self.snapshot_id, self.total, len(self.files), len(prefix), len(suffix))
        if not 0 <= self.total < MAX_FILES or not -(1 << 63) <= self.snapshot_id < 1 << 63:
            raise malformed("a snapshot with impossible figures")
        yield _HEAD.pack(*head) + prefix + suffix
        for start in range(0, len(self.files), _CHUNK_FILES):
            yield _entries(self, self.files[start : start + _CHUNK_FILES], prefix, suffix)

    @classmethod
    def decode(cls, data: bytes | memoryview) -> FilePlan:
        """The answer of `encode`; `wire.format` for any other bytes."""
        reader = _reader(data, MAX_PLAN_BYTES)
        version, snapshot_id, total, count, before, after = _HEAD.unpack(reader.take(_HEAD.size))
        if version != VERSION:
            raise malformed("another version")
        if total >= MAX_FILES or count > total or max(before, after) > MAX_PATH_BYTES:
            raise malformed("a snapshot with impossible figures")
        prefix, suffix = bytes(reader.take(before)), bytes(reader.take(after))
        files: list[FileEntry] = []
        while len(files) < count:
            files += _chunk(reader, min(_CHUNK_FILES, count - len(files)), prefix, suffix)
        reader.end()
        numbers = [file.number for file in files]
        if any(a >= b for a, b in pairwise(numbers)) or (numbers and numbers[-1] >= total):
            raise malformed("files out of order")
        return cls(snapshot_id, total, tuple(files))


def encode(where: Where) -> bytes:
    """Encode a condition; `wire.format` if it is deeper or larger than allowed."""
    parts: list[bytes] = [bytes((VERSION,))]
    _put(parts, where, 1)
    data = b"".join(parts)
    # The decoder checks the bounds on tokens and nodes.
    decode(data)
    return data


def decode(data: bytes | memoryview) -> Where:
    """The condition of `encode`; `wire.format` for any other bytes."""
    reader = _reader(data, MAX_BYTES)
    if reader.byte() != VERSION:
        raise malformed("another version")
    where = _Conditions(reader).take(1)
    reader.end()
    return where


def tokens(where: Where) -> Iterator[bytes]:
    """Every token of a condition, in order, including repeated ones."""
    match where:
        case Hit(token):
            yield token
        case All(parts) | Any(parts):
            for part in parts:
                yield from tokens(part)
        case Everything():
            return


def _put(out: list[bytes], where: Where, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise malformed("a condition is nested too deeply")
    match where:
        case Hit(token):
            out += [struct.pack(">BI", _HIT, len(token)), bytes(token)]
        case All(parts) | Any(parts):
            if len(parts) > MAX_NODES:
                raise malformed("a condition has too many parts")
            out.append(struct.pack(">BH", _ALL if isinstance(where, All) else _ANY, len(parts)))
            for part in parts:
                _put(out, part, depth + 1)
        case Everything():
            out.append(bytes((_EVERYTHING,)))


def _reader(data: bytes | memoryview, limit: int) -> Reader:
    if len(memoryview(data)) > limit:
        raise malformed("longer than allowed")
    return Reader(data)


class _Conditions:
    """Reads one condition and counts its nodes and tokens."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._nodes = 0
        self._tokens = 0

    def take(self, depth: int) -> Where:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise malformed("a condition is nested too deeply")
        if self._nodes > MAX_NODES:
            raise malformed("a condition has too many parts")
        kind = self._reader.byte()
        if kind == _HIT:
            self._tokens += 1
            if self._tokens > MAX_TOKENS:
                raise malformed("a condition has too many tokens")
            return Hit(bytes(self._reader.take(int.from_bytes(self._reader.take(4), "big"))))
        if kind in (_ALL, _ANY):
            count = int.from_bytes(self._reader.take(2), "big")
            parts = tuple(self.take(depth + 1) for _ in range(count))
            return All(parts) if kind == _ALL else Any(parts)
        if kind == _EVERYTHING:
            return Everything()
        raise malformed("an unknown kind of condition")


def _common(paths: list[str]) -> tuple[bytes, bytes]:
    """The prefix and the suffix shared by all paths, which an answer contains only once."""
    try:
        raw = [path.encode() for path in paths]
    except UnicodeEncodeError as error:
        raise malformed("a path that is not Unicode") from error
    prefix = _beginning(raw)
    suffix = _beginning([path[len(prefix) :][::-1] for path in raw])[::-1]
    if max((len(path) for path in raw), default=0) > MAX_PATH_BYTES:
        raise malformed("a path is too long")
    return prefix, suffix


def _beginning(texts: list[bytes]) -> bytes:
    """The common prefix of all texts, which is that of the first and the last in order."""
    first, last = min(texts, default=b""), max(texts, default=b"")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return first[: sum(1 for _ in same)]


def _entries(reply: FilePlan, files: tuple[FileEntry, ...], prefix: bytes, suffix: bytes) -> bytes:
    table: list[bytes] = []
    paths: list[bytes] = []
    for file in files:
        raw = file.path.encode()
        middle = raw[len(prefix) : len(raw) - len(suffix)]
        fits = len(file.file_id) == 16 and len(file.key_metadata) <= MAX_KEY_METADATA_BYTES
        if not fits or file.number >= reply.total:
            raise malformed("a file with impossible figures")
        sizes = (len(middle), len(file.key_metadata))
        try:
            table.append(_ENTRY.pack(file.file_id, file.size, file.rows, file.number, *sizes))
        except struct.error as error:
            raise malformed("a file with impossible figures") from error
        paths.append(middle)
    return b"".join([*table, *paths, *(file.key_metadata for file in files)])


def _chunk(reader: Reader, count: int, prefix: bytes, suffix: bytes) -> list[FileEntry]:
    rows = list(_ENTRY.iter_unpack(reader.take(count * _ENTRY.size)))
    if any(max(row[4] + len(prefix) + len(suffix), row[5]) > MAX_PATH_BYTES for row in rows):
        raise malformed("a path or key is too long")
    ends = list(accumulate(row[4] for row in rows))
    paths = bytes(reader.take(ends[-1]))
    stops = list(accumulate(row[5] for row in rows))
    keys = bytes(reader.take(stops[-1]))
    try:
        return [
            FileEntry(
                (prefix + paths[end - length : end] + suffix).decode(),
                file_id,
                size,
                count,
                keys[stop - wrapped : stop],
                number,
            )
            for (file_id, size, count, number, length, wrapped), end, stop in zip(
                rows, ends, stops, strict=True
            )
        ]
    except UnicodeDecodeError as error:
        raise malformed("a path that is not UTF-8") from error
