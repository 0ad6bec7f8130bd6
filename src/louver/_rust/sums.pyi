"""Masked sums of a key ring (`spec/sum.md`)."""

from typing import Final

import pyarrow as pa

from louver._rust import Epochs, KeyRing

NARROW_BITS: Final[int]
WIDE_BITS: Final[int]

def sum_seal(
    ring: KeyRing,
    id: tuple[int, int, int],
    epochs: Epochs,
    values: pa.Array | pa.ChunkedArray,
    row_ids: pa.Array | pa.ChunkedArray,
) -> tuple[pa.Array, pa.Array, pa.Array]: ...
def sum_open(
    ring: KeyRing,
    id: tuple[int, int, int],
    epochs: Epochs,
    limb_bits: int,
    low: list[int],
    high: list[int] | None,
    count: list[int] | None,
    sets: list[bytes],
) -> tuple[list[int], list[int] | None]: ...
def run_set(runs: list[tuple[int, int]]) -> bytes: ...
def set_sizes(sets: list[bytes], known: list[tuple[int, int]] | None, most: int) -> list[int]: ...
