"""Parts of a table: up to 32,768 files with their list, encrypted bounds and index, in side files.

A commit adds parts. When there are too many small ones they are merged: lists and bounds are read
back and segments rebuilt, without reading data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from louver.trusted.lake import bounds as sealed_bounds
from louver.trusted.lake.bounds import Bounds
from louver.trusted.lake.settings import IndexSettings
from louver.trusted.vault import levels
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.index_keys import LakeKeys, mappable
from louver.trusted.vault.index_keys import LakeKeys as TableKeys
from louver.untrusted.lake import files as lists
from louver.untrusted.lake import side, sweep
from louver.untrusted.lake.commit import new_name
from louver.untrusted.lake.files import File
from louver.untrusted.lake.objects import Objects
from louver.untrusted.lake.plan import files_of, live_ordinals
from louver.untrusted.lake.root import MAX_PART_FILES, Blob, Part, Root, Segment

#: Upper limit on a side file's segments, which bounds the cost of writing and fetching it.
SIDE_BYTES = 64 << 20
#: A part with fewer live files is small; more than MOST_SMALL small parts are merged.
SMALL_FILES = MAX_PART_FILES // 2
MOST_SMALL = 16
MERGED_SMALL = 8


@dataclass(frozen=True, slots=True)
class PartWithSides:
    """A part with the paths of the side files that its blobs refer to."""

    sides: tuple[str, ...]
    part: Part


def parts_with_sides(root: Root) -> list[PartWithSides]:
    """The parts of a root."""
    return [PartWithSides(root.sides, part) for part in root.parts]


def gathered(parts: Sequence[PartWithSides]) -> tuple[tuple[str, ...], tuple[Part, ...]]:
    """Renumber the parts' blobs onto one list of side files that contains only those in use."""
    sides: dict[str, int] = {}

    def moved(blob: Blob, known: tuple[str, ...]) -> Blob:
        return replace(blob, side=sides.setdefault(known[blob.side], len(sides)))

    result = []
    for item in parts:
        part, known = item.part, item.sides
        segments = tuple(replace(s, blob=moved(s.blob, known)) for s in part.segments)
        bounds = None if part.bounds is None else moved(part.bounds, known)
        files = moved(part.files, known)
        result.append(replace(part, files=files, bounds=bounds, segments=segments))
    return tuple(sides), tuple(result)


def indexed(table: Table) -> list[Column]:
    """The columns with an index: their ceiling allows the server to see which files a query
    touches, and their values have an order that can be mapped.
    """
    if not IndexSettings.of(table.lake).on:
        return []
    return [c for c in table.columns if levels.allows(c.ceiling, "access") and mappable(c.type)]


def index_ids(table: Table, keys: LakeKeys) -> dict[bytes, Column]:
    """All indexes of the table under its current settings."""
    spec = IndexSettings.of(table.lake).spec
    return {keys.index_id(c.id, c.generation, spec): c for c in indexed(table)}


@dataclass(slots=True)
class Parts:
    """Writes and merges the parts of one table; `created` lists the side files written."""

    table: Table
    keys: LakeKeys
    ring: Ring
    objects: Objects
    created: list[str] = field(default_factory=list)

    @property
    def _prefix(self) -> str:
        return f"louver/t{self.table.id}/"

    def write(self, files: Sequence[File], bounds: Bounds) -> list[PartWithSides]:
        """Write new parts for these files, in their order."""
        return [
            self._write(
                files[at : at + MAX_PART_FILES],
                bounds.take(np.arange(at, min(at + MAX_PART_FILES, len(files)))),
            )
            for at in range(0, len(files), MAX_PART_FILES)
        ]

    def merge(self, parts: Sequence[PartWithSides]) -> list[PartWithSides]:
        """Merge small parts if there are too many; otherwise return the parts unchanged."""
        small = sorted(
            (item for item in parts if item.part.live_count < SMALL_FILES),
            key=lambda item: item.part.live_count,
        )
        if len(small) <= MOST_SMALL:
            return list(parts)
        chosen = {id(item) for item in _chosen(small)}
        others = [item for item in parts if id(item) not in chosen]
        return [*self.remake([item for item in parts if id(item) in chosen]), *others]

    def remake(self, parts: Sequence[PartWithSides]) -> list[PartWithSides]:
        """New parts with the live files of these parts, under the table's current settings."""
        files: list[File] = []
        bounds = []
        for item in parts:
            files += self.files(item)
            bounds.append(self.bounds(item))
        return self.write(files, sealed_bounds.joined(bounds))

    def files(self, item: PartWithSides) -> Iterator[File]:
        """The live files of a part."""
        part = item.part
        listed = files_of(self.objects, self._path(item, part.files), part)
        yield from listed.files(live_ordinals(part).tolist())

    def bounds(self, item: PartWithSides) -> Bounds:
        """The bounds of a part's live files; unknown if the part has none stored."""
        part, ordinals = item.part, live_ordinals(item.part)
        if part.bounds is None:
            return _unknown(self.table, len(ordinals))
        path = self._path(item, part.bounds)
        data = self.objects.read(path, part.bounds.offset, part.bounds.length)
        context = self._context(part.digest)
        plain = self.ring.open_blob(sealed_bounds.PURPOSE, context, data)
        return sealed_bounds.decode(plain, path).take(ordinals)

    def discard(self) -> None:
        """Delete the side files written: the commit did not happen."""
        for path in self.created:
            self.objects.delete(self._prefix + path)
        self.created.clear()

    def _write(self, files: Sequence[File], bounds: Bounds) -> PartWithSides:
        settings = IndexSettings.of(self.table.lake)
        sides: list[str] = []
        out = side.Builder()
        listed = lists.encode(files)
        digest = lists.digest(listed, len(files))
        list_blob = Blob(0, out.add(side.FILES, listed), len(listed))
        plain = sealed_bounds.encode(bounds)
        shut = self.ring.seal_blob(sealed_bounds.PURPOSE, self._context(digest), plain)
        bounds_blob = Blob(0, out.add(side.BOUNDS, shut), len(shut))
        segments = []
        for column in indexed(self.table):
            lows, highs, states = bounds.ranges(column.id, settings.nulls == "any-value")
            data = self.keys.segment(
                column.id, column.generation, settings.spec,
                pa.array(lows), pa.array(highs), pa.array(states),
            )  # fmt: skip
            if out.size + len(data) > SIDE_BYTES:
                sides.append(self._create(out))
                out = side.Builder()
            header = sweep.segment_header(data)
            blob = Blob(len(sides), out.add(side.INDEX, data), len(data))
            segments.append(Segment(header["index_id"], header["segment_id"], blob))
        sides.append(self._create(out))
        part = Part(len(files), list_blob, digest, bounds_blob, b"", tuple(segments))
        return PartWithSides(tuple(sides), part)

    def _create(self, out: side.Builder) -> str:
        path = new_name("puffin")
        self.objects.create(self._prefix + path, out.finish())
        self.created.append(path)
        return path

    def _path(self, item: PartWithSides, blob: Blob) -> str:
        return self._prefix + item.sides[blob.side]

    def _context(self, digest: bytes) -> bytes:
        return struct.pack(">Q", self.table.id) + digest


def _chosen(small: Sequence[PartWithSides]) -> list[PartWithSides]:
    """The small parts to merge: enough of the smallest to leave few, and then each next one that
    is not larger than all before it together, so that a file is moved only a few times.
    """
    chosen: list[PartWithSides] = []
    total = 0
    for item in small:
        count = item.part.live_count
        enough = len(small) - len(chosen) < MERGED_SMALL
        if total + count > MAX_PART_FILES or (enough and count > total):
            break
        chosen.append(item)
        total += count
    return chosen


def _unknown(table: Table, count: int) -> Bounds:
    zeros = np.zeros(count, np.uint64)
    flags = np.full(count, sealed_bounds.UNKNOWN, np.uint8)
    extent = sealed_bounds.Extent(flags, zeros, zeros)
    return Bounds(count, {column.id: extent for column in table.columns})


__all__ = ["Ring", "TableKeys"]


class Ring(Protocol):
    """The part of the key ring that a lake uses."""

    def lake_table(self, table_id: int) -> TableKeys:
        """The keys of a table."""
        ...

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        """Encrypt and authenticate `plain`, bound to purpose and context."""
        ...

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        """Undo `seal_blob`; VerificationError when it does not authenticate."""
        ...
