"""Columns of tables as single arrays."""

from __future__ import annotations

import pyarrow as pa


def joined(values: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if values.num_chunks == 1:
        return values.chunk(0)
    if not values.num_chunks:
        return pa.nulls(0, values.type)
    combined = values.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return pa.concat_arrays(combined.chunks)
    return combined


def stored(values: pa.ChunkedArray) -> pa.Array:
    """A column as one array of its storage type."""
    array = joined(values)
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def widened(values: pa.Array) -> pa.Array:
    """Values of which Arrow's functions, and the schemes, know the type: decimals in 16 bytes."""
    type_ = values.type
    if not pa.types.is_decimal64(type_):
        return values
    return values.cast(pa.decimal128(type_.precision, type_.scale))
