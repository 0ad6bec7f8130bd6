"""Planning: which files of a snapshot may contain rows that match a condition over tokens.

Every part of the table is swept separately, in parallel. Files without an index for a token are
selected. A file that is not selected costs no more than its bits: only selected files are looped
over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any as Anything

import numpy as np
from numpy.typing import NDArray

from louver import errors
from louver.untrusted.lake import sweep
from louver.untrusted.lake.files import Buffer, FileList
from louver.untrusted.lake.objects import Objects
from louver.untrusted.lake.root import Blob, Part, Root, Segment
from louver.wire.binary import malformed_file
from louver.wire.prune import All, Any, Everything, FileEntry, FilePlan, Hit, Where, tokens

Bits = NDArray[np.uint8]
#: The client's check of every segment that a plan reads: it verifies the segment or raises.
Check = Callable[[Segment, Buffer, bytes], None]


def plan(
    objects: Objects,
    root: Root,
    where: Where,
    check: Check | None = None,
    threads: int | None = None,
) -> FilePlan:
    """The files to read, by number.

    Args:
        objects: the warehouse's files.
        root: the root of the snapshot.
        where: the condition.
        check: called with every segment swept, its bytes and the token.
        threads: the most threads; by default the number of processors.

    Raises:
        errors.Error: `lake.token` for a token of another table or index; `lake.format` if a file
            differs from the root's description.
    """
    wanted = {token: _index_id(token) for token in dict.fromkeys(tokens(where))}
    for index_id in wanted.values():
        if index_id not in root.indexes:
            raise errors.make("lake.token", table=f"t{root.table_id}")
    before = [0, *accumulate(part.live_count for part in root.parts)]
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        jobs = [_Job(objects, root, part, wanted, check) for part in root.parts]
        if len(jobs) < (os.cpu_count() or 1):
            list(pool.map(lambda pair: pair[0].hits(pair[1]), _pairs(jobs, wanted)))
        listed = pool.map(
            lambda pair: pair[0].surviving(where, pair[1]), zip(jobs, before, strict=False)
        )
        files = tuple(entry for entries in listed for entry in entries)
    return FilePlan(root.snapshot_id, root.files, files)


def files_of(objects: Objects, path: str, part: Part) -> FileList:
    """The list of a part's files, which is stored in the side file at `path`."""
    blob = part.files

    def fetch(ranges: list[tuple[int, int]]) -> Sequence[Buffer]:
        if any(start + size > blob.length for start, size in ranges):
            raise malformed_file(path, "a list of files has another length")
        return objects.read_many([(path, blob.offset + start, size) for start, size in ranges])

    return FileList(fetch, part.count, blob.length, part.digest, path)


def buffer_of(objects: Objects, path: str, blob: Blob) -> Buffer:
    """The bytes of a blob, without a copy if they are on this machine."""
    view = memoryview(objects.map(path))[blob.offset : blob.offset + blob.length]
    if len(view) != blob.length:
        raise malformed_file(path, "it is cut short")
    return view


def live_ordinals(part: Part) -> NDArray[np.int64]:
    """The ordinals of a part's live files."""
    return _ordinals(_live(part), part.count)


@dataclass(slots=True)
class _Job:
    """One part of the table under one condition."""

    objects: Objects
    root: Root
    part: Part
    index_ids: dict[bytes, bytes]
    check: Check | None
    swept: dict[bytes, Bits] = field(default_factory=dict)

    def surviving(self, where: Where, before: int) -> list[FileEntry]:
        """The selected files; `before` is the number of live files in earlier parts."""
        live = _live(self.part)
        ordinals = _ordinals(live & self.bits(where), self.part.count)
        if not len(ordinals):
            return []
        ranks = np.cumsum(np.unpackbits(live, bitorder="little"), dtype=np.int64)[ordinals]
        numbers = (ranks + (before - 1)).tolist()
        listed = files_of(self.objects, self.root.path(self.part.files), self.part).files(
            ordinals.tolist()
        )
        prefix = self.root.prefix
        return [
            FileEntry(prefix + f.path, f.file_id, f.size, f.rows, f.key_metadata, number)
            for f, number in zip(listed, numbers, strict=True)
        ]

    def bits(self, where: Where) -> Bits:
        """One bit per file of the part; a file without an index is selected."""
        match where:
            case Hit(token):
                return self.hits(token)
            case All(parts):
                bits = self._all(True)
                for part in parts:
                    bits = bits & self.bits(part)
                    if not bits.any():
                        break
                return bits
            case Any(parts):
                bits = self._all(False)
                for part in parts:
                    bits = bits | self.bits(part)
                return bits
            case Everything():
                return self._all(True)

    def hits(self, token: bytes) -> Bits:
        """The files that match a token; a segment is swept once per token."""
        hits = self.swept.get(token)
        if hits is None:
            hits = self.swept[token] = self._sweep(token)
        return hits

    def _sweep(self, token: bytes) -> Bits:
        index_id = self.index_ids[token]
        segment = next((s for s in self.part.segments if s.index_id == index_id), None)
        if segment is None:
            return self._all(True)
        path = self.root.path(segment.blob)
        data = buffer_of(self.objects, path, segment.blob)
        _require_same(segment, self.part, data, path)
        if self.check is not None:
            self.check(segment, data, token)
        try:
            hits = np.frombuffer(sweep.sweep(data, token), np.uint8)
        except ValueError as error:
            raise malformed_file(
                path, "a segment cannot be swept by a token of its index"
            ) from error
        if len(hits) < -(-self.part.count // 8):
            raise malformed_file(path, "a segment is of fewer files than its part")
        return hits[: -(-self.part.count // 8)]

    def _all(self, value: bool) -> Bits:
        return np.full(-(-self.part.count // 8), 255 if value else 0, np.uint8)


def _pairs(jobs: list[_Job], wanted: dict[bytes, bytes]) -> Iterator[tuple[_Job, bytes]]:
    return ((job, token) for job in jobs for token in wanted)


def _index_id(token: bytes) -> bytes:
    try:
        return bytes(sweep.token_header(token)["index_id"])
    except ValueError as error:
        raise errors.make("wire.format", detail="a token is malformed") from error


def _require_same(segment: Segment, part: Part, data: Buffer, path: str) -> None:
    """Require the segment that the root names, with this number of files."""
    try:
        header: dict[str, Anything] = sweep.segment_header(data)
    except ValueError as error:
        raise malformed_file(path, "a segment cannot be read") from error
    same = header["segment_id"] == segment.segment_id and header["index_id"] == segment.index_id
    if not same or header["n"] != part.count:
        raise malformed_file(path, "a segment differs from the one that the root names")


def _live(part: Part) -> Bits:
    if part.live:
        return np.frombuffer(part.live, np.uint8)
    live = np.full(-(-part.count // 8), 255, np.uint8)
    if part.count % 8:
        live[-1] = (1 << part.count % 8) - 1
    return live


def _ordinals(bits: Bits, count: int) -> NDArray[np.int64]:
    return np.flatnonzero(np.unpackbits(bits, count=count, bitorder="little"))
