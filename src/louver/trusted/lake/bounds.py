"""Bounds of data files: least and greatest mapped value of each column; read by the client only.

They are stored encrypted next to the file list, so that segments can be merged, and indexes rebuilt
under other settings, without reading data. The server sees their length: 17 bytes per file and
column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louver.untrusted.lake.root import MAX_PART_FILES
from louver.wire.binary import Reader, Writer

VERSION = 1
PURPOSE = "lake bounds"
MAX_COLUMNS = 65_536

#: What is known about a column in a file.
VALUES, NULLS, UNKNOWN = 1, 2, 4
#: States of a file in a segment.
RANGE, NO_VALUE, ANY_VALUE = range(3)

Numbers = NDArray[np.uint64]
Flags = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Bound:
    """One column in one file; `low` and `high` are valid only if the flag VALUES is set."""

    flags: int
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class Extent:
    """One column in several files: one flag, least value and greatest value per file."""

    flags: Flags
    lows: Numbers
    highs: Numbers

    def take(self, ordinals: NDArray[np.int64]) -> Extent:
        """The extent of the given files."""
        return Extent(self.flags[ordinals], self.lows[ordinals], self.highs[ordinals])


@dataclass(frozen=True, slots=True)
class Bounds:
    """All columns, by id, in `count` files. A missing column did not exist at their writing."""

    count: int
    columns: dict[int, Extent]

    @staticmethod
    def of(files: Sequence[dict[int, Bound]]) -> Bounds:
        """Bounds of files, each given by column id."""
        ids = dict.fromkeys(column for file in files for column in file)
        absent = Bound(NULLS)
        columns = {}
        for column in ids:
            entries = [file.get(column, absent) for file in files]
            columns[column] = Extent(
                np.array([bound.flags for bound in entries], np.uint8),
                np.array([bound.low for bound in entries], np.uint64),
                np.array([bound.high for bound in entries], np.uint64),
            )
        return Bounds(len(files), columns)

    def take(self, ordinals: NDArray[np.int64]) -> Bounds:
        """The bounds of the given files."""
        columns = {column: extent.take(ordinals) for column, extent in self.columns.items()}
        return Bounds(len(ordinals), columns)

    def extent(self, column: int) -> Extent:
        """A column's extent; all NULL if the column did not exist yet."""
        extent = self.columns.get(column)
        if extent is not None:
            return extent
        zeros = np.zeros(self.count, np.uint64)
        return Extent(np.full(self.count, NULLS, np.uint8), zeros, zeros)

    def ranges(self, column: int, any_value: bool) -> tuple[Numbers, Numbers, Flags]:
        """Lows, highs and states for a segment; `any_value`: a NULL counts as any value."""
        extent = self.extent(column)
        flags = extent.flags
        states = np.where(flags & VALUES, RANGE, NO_VALUE)
        open_ = (flags & UNKNOWN) != 0
        if any_value:
            open_ |= (flags & NULLS) != 0
        states = np.where(open_, ANY_VALUE, states).astype(np.uint8)
        counted = states == RANGE
        none = np.uint64(0)
        return np.where(counted, extent.lows, none), np.where(counted, extent.highs, none), states


def joined(several: Sequence[Bounds]) -> Bounds:
    """The bounds of all these files, in this order."""
    ids = dict.fromkeys(column for bounds in several for column in bounds.columns)
    columns = {}
    for column in ids:
        extents = [bounds.extent(column) for bounds in several]
        columns[column] = Extent(
            np.concatenate([extent.flags for extent in extents]),
            np.concatenate([extent.lows for extent in extents]),
            np.concatenate([extent.highs for extent in extents]),
        )
    return Bounds(sum(bounds.count for bounds in several), columns)


def encode(bounds: Bounds) -> bytes:
    """Encode the bounds as plain bytes, to be encrypted."""
    out = Writer()
    out.byte(VERSION)
    out.word(bounds.count)
    out.word(len(bounds.columns))
    for column, extent in bounds.columns.items():
        out.long(column)
        out.raw(extent.flags.tobytes())
        out.raw(extent.lows.astype("<u8").tobytes())
        out.raw(extent.highs.astype("<u8").tobytes())
    return out.finish()


def decode(data: bytes, name: str) -> Bounds:
    """Decode the result of `encode`; `lake.format` for other bytes."""
    reader = Reader.of_file(data, name)
    if reader.byte() != VERSION:
        raise reader.malformed("its bounds are of another version")
    count = reader.count(MAX_PART_FILES)
    columns = {}
    for _ in range(reader.count(MAX_COLUMNS)):
        column = reader.long()
        flags = np.frombuffer(reader.take(count), np.uint8)
        lows = np.frombuffer(reader.take(8 * count), "<u8").astype(np.uint64)
        highs = np.frombuffer(reader.take(8 * count), "<u8").astype(np.uint64)
        columns[column] = Extent(flags, lows, highs)
    reader.end()
    return Bounds(count, columns)
