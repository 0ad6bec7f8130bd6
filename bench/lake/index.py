"""Our side: indexes of made-up bounds, their tokens and sweeps, through the compiled part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.lake.ranges import SIGN, Bounds, Range

SEGMENT_FILES = 32_768
TABLE, COLUMN, GENERATION = 61, 1, 0
KINDS = {"basic": 0, "register": 1, "split-64": 2, "split-256": 3, "sectorized": 4}
ENCRYPTIONS = {"none": 0, "xor-bit": 1, "xor-block": 2, "aes": 3, "aes-empty-iv": 4}
AES_HASH = 0


@dataclass(frozen=True, slots=True)
class Spec:
    """What an index is made of; the default is the product's."""

    kind: str = "split-64"
    encryption: str = "xor-bit"
    bits: int = 16_384
    k: int = 8

    def encode(self) -> bytes:
        """The eight bytes that segments and tokens bear."""
        head = [KINDS[self.kind], AES_HASH, ENCRYPTIONS[self.encryption], self.k]
        return bytes(head) + self.bits.to_bytes(4, "little")

    def __str__(self) -> str:
        return f"{self.kind}, {self.encryption}, {self.bits:,} bits"


def keys(folder: Path) -> Any:
    """Keys of one table, of a fresh key file in a folder."""
    from louver.trusted.vault import native

    path = str(folder / "bench.louverkey")
    ring = native.module()
    if not Path(path).exists():
        ring.KeyRing.create(path, "")
    return ring.KeyRing.open(path).lake_table(TABLE)


def segments(
    table: Any, spec: Spec, given: Bounds, files: int = SEGMENT_FILES
) -> Iterator[tuple[slice, bytes]]:
    """The segments of an index over these files, and which files each is of."""
    lows, highs = given.mapped()
    for start in range(0, len(given), files):
        part = slice(start, min(start + files, len(given)))
        yield part, segment(table, spec, lows[part], highs[part])


def segment(table: Any, spec: Spec, lows: NDArray[np.uint64], highs: NDArray[np.uint64]) -> bytes:
    """One segment, under a fresh id."""
    states = pa.array(np.zeros(len(lows), np.uint8))
    made = table.segment(COLUMN, GENERATION, spec.encode(), pa.array(lows), pa.array(highs), states)
    return bytes(made)


def token(table: Any, spec: Spec, one: Range, sides: bool = False, column: int = COLUMN) -> bytes:
    """What the client shows for a range of BIGINT."""
    low, high = one
    made = table.token(column, GENERATION, spec.encode(), low + SIGN, high + SIGN, sides=sides)
    return bytes(made)


def sweep(segment: bytes, token: bytes) -> NDArray[np.bool_]:
    """Which files are kept; the last bits of the last byte are of no file."""
    from louver import _rust

    return np.unpackbits(np.frombuffer(_rust.sweep(segment, token), np.uint8), bitorder="little")


def pool(threads: int) -> ThreadPoolExecutor:
    """Threads for sweeps, which let go of the interpreter."""
    return ThreadPoolExecutor(threads)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def one_core() -> None:
    """Bind this process to one core: what 'one thread' means for both sides."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
