"""Codes of a key ring (`spec/eq.md`, `spec/ord.md`, `spec/onion.md`)."""

import pyarrow as pa

from louver._rust import Epochs, KeyRing

def eq_codes(
    ring: KeyRing,
    id: tuple[int, int, int],
    group: str,
    domain: str,
    values: pa.Array | pa.ChunkedArray,
) -> pa.Array: ...
def eq_join_codes(
    ring: KeyRing, group: str, domain: str, values: pa.Array | pa.ChunkedArray
) -> pa.Array: ...
def ord_codes(
    ring: KeyRing,
    id: tuple[int, int, int],
    group: str,
    domain: str,
    low: int,
    bits: int,
    values: pa.Array | pa.ChunkedArray,
) -> pa.Array: ...
def close_codes(
    ring: KeyRing,
    id: tuple[int, int, int],
    epochs: Epochs,
    onion: str,
    codes: pa.Array | pa.ChunkedArray,
    row_ids: pa.Array | pa.ChunkedArray,
) -> pa.Array: ...
def ore_seal(
    ring: KeyRing,
    id: tuple[int, int, int],
    domain: str,
    low: int,
    bits: int,
    values: pa.Array | pa.ChunkedArray,
) -> pa.Array: ...
def ore_token(
    ring: KeyRing,
    id: tuple[int, int, int],
    domain: str,
    low: int,
    bits: int,
    value: pa.Array | pa.ChunkedArray,
) -> bytes: ...
def layer_key(
    ring: KeyRing, id: tuple[int, int, int], epochs: Epochs, onion: str, row_id: int
) -> bytes: ...
def det_key(ring: KeyRing, id: tuple[int, int, int]) -> bytes: ...
