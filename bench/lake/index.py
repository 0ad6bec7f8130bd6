"""Our side: indexes of made-up bounds, their tokens and sweeps, through the compiled part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.lake.ranges import SIGN, Bounds, Range

if TYPE_CHECKING:
    from louver.trusted.vault.keyring import KeyRing

SEGMENT_FILES = 32_768
TABLE, COLUMN, GENERATION = 61, 1, 0
#: The product's words for kinds of filters, and their codes in a spec.
KINDS = {"basic": 0, "split-block": 2}
#: AES-128 as the hash, XOR per bit as the encryption.
HASH, ENCRYPTION = 0, 1


@dataclass(frozen=True, slots=True)
class Spec:
    """What an index is made of; the default is the product's."""

    kind: str = "split-block"
    bits: int = 16_384
    k: int = 8

    def encode(self) -> bytes:
        """The eight bytes that segments and tokens bear."""
        codes = [KINDS[self.kind], HASH, ENCRYPTION, self.k]
        return bytes(codes) + self.bits.to_bytes(4, "little")

    def __str__(self) -> str:
        return f"{self.kind}, {self.bits:,} bits"


def ring(folder: Path) -> KeyRing:
    """A key ring whose file lies in a folder; made when it is not there."""
    from louver.trusted.vault.keyring import KeyRing

    path = folder / "bench.louverkey"
    if not path.exists():
        KeyRing.create(path)
    return KeyRing.open(path)


def segments(
    keys: Any, spec: Spec, given: Bounds, files: int = SEGMENT_FILES
) -> Iterator[tuple[slice, bytes]]:
    """The segments of an index over these files, and which files each is of."""
    lows, highs = given.mapped()
    for start in range(0, len(given), files):
        part = slice(start, min(start + files, len(given)))
        yield part, segment(keys, spec, lows[part], highs[part])


def segment(keys: Any, spec: Spec, lows: NDArray[np.uint64], highs: NDArray[np.uint64]) -> bytes:
    """One segment, under a fresh id."""
    states = pa.array(np.zeros(len(lows), np.uint8))
    arrays = pa.array(lows), pa.array(highs), states
    return bytes(keys.segment(COLUMN, GENERATION, spec.encode(), *arrays))


def token(keys: Any, spec: Spec, item: Range, sides: bool = False) -> bytes:
    """What the client shows for a range of BIGINT."""
    low, high = item
    result = keys.token(COLUMN, GENERATION, spec.encode(), low + SIGN, high + SIGN, sides)
    return bytes(result)


def sweep(segment: bytes, token: bytes) -> NDArray[np.uint8]:
    """1 for every file that is kept; what comes after the last file is of none."""
    from louver.untrusted.lake import sweep as sweeps

    bits = np.frombuffer(sweeps.sweep(segment, token), np.uint8)
    return np.unpackbits(bits, bitorder="little")


def forget_tokens() -> None:
    """Let the next sweep make a token's key schedules anew, as for a query never asked."""
    from louver.untrusted.lake import sweep as sweeps

    sweeps._ready.cache_clear()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def one_core() -> None:
    """Bind this process to one core: what 'one core' means for both sides."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
