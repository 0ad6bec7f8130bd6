"""Searchable text of a key ring (`spec/text.md`)."""

import pyarrow as pa

from louver._rust import Epochs, KeyRing

def text_seal(
    ring: KeyRing,
    id: tuple[int, int, int],
    epochs: Epochs,
    values: pa.Array | pa.ChunkedArray,
    row_ids: pa.Array | pa.ChunkedArray,
) -> pa.Array: ...
def text_tokens(
    ring: KeyRing,
    id: tuple[int, int, int],
    kind: str,
    pattern: str,
    escape: str | None = None,
) -> bytes | None: ...
