"""Columns of tables as single arrays."""

from __future__ import annotations

import pyarrow as pa


def joined(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(values, pa.Array):
        return values
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


def storage(type_: pa.DataType) -> pa.DataType:
    """The storage type under an extension type."""
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def unwrapped(values: pa.Array) -> pa.Array:
    """Values without their extension type."""
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def wrapped(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values with their extension type again."""
    if isinstance(type_, pa.BaseExtensionType) and not isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(type_, values)
    return values
