"""Bounds of files and ranges of queries, the same at every run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DOMAIN = 1 << 63
"""Values lie in [0, 2^63), as the thesis' ranges of up to 2^63 values do."""
EXPONENTS = tuple(range(64))
"""The thesis' range sizes: 2^0 to 2^63."""
SIGN = 1 << 63
"""What the map of BIGINT to 64 bits adds: the least value becomes 0."""

Range = tuple[int, int]


@dataclass(slots=True)
class Bounds:
    """Least and greatest value of every file; the files lie side by side, in no order."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lows)

    def hit(self, low: int, high: int) -> NDArray[np.bool_]:
        """Which files' ranges meet [low, high]."""
        return (self.lows <= high) & (self.highs >= low)

    def mapped(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The bounds as the index takes them."""
        sign = np.uint64(SIGN)
        return self.lows.view(np.uint64) ^ sign, self.highs.view(np.uint64) ^ sign


def bounds(files: int) -> Bounds:
    """A slot of the domain per file; within it the file's range begins and ends somewhere."""
    rng = np.random.default_rng(files)
    slot = DOMAIN // files
    starts = np.arange(files, dtype=np.int64) * slot
    inner = np.sort(rng.integers(0, slot, (2, files), dtype=np.int64), axis=0)
    order = rng.permutation(files)
    return Bounds((starts + inner[0])[order], (starts + inner[1])[order])


def queries(seed: int = 0, exponents: tuple[int, ...] = EXPONENTS) -> list[Range]:
    """A range of 2^e values for every e, anywhere in the domain; that of 2^63 is all of it."""
    rng = np.random.default_rng([61, seed])
    results = []
    for exponent in exponents:
        size = 1 << exponent
        low = int(rng.integers(0, DOMAIN - size, endpoint=True, dtype=np.int64))
        results.append((low, low + size - 1))
    return results
