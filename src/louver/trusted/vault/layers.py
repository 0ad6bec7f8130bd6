"""Codes of onions as the server holds them: under the pads of their rows until it has the key."""

from __future__ import annotations

import pyarrow as pa

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing


def layered(
    keys: KeyRing, table: Table, column: Column, onion: str, codes: pa.Array, row_ids: pa.Array
) -> pa.Array:
    """Codes under the layers that are still there; wide ones as UUIDs."""
    if column.layers.get(onion, "closed") == "closed":
        column_key = (table.id, column.id, column.generation)
        codes = keys.close_codes(*column_key, onion, codes, row_ids)
    if pa.types.is_fixed_size_binary(codes.type):
        return pa.ExtensionArray.from_storage(pa.uuid(), codes)
    return codes
