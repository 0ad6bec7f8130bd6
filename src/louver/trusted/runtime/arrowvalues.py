"""Which Arrow types give the values that DuckDB gives."""

from __future__ import annotations

import pyarrow as pa

#: Of dates and moments DuckDB makes values sooner, and infinity has another one in Arrow.
_SAME = (
    pa.types.is_integer, pa.types.is_string, pa.types.is_floating, pa.types.is_boolean,
    pa.types.is_decimal128, pa.types.is_binary, pa.types.is_null,
)  # fmt: skip


def extended(type_: pa.DataType) -> bool:
    """Whether a type is, or holds, one that DuckDB gives to Arrow as an extension."""
    if isinstance(type_, pa.BaseExtensionType):
        return True
    return any(extended(type_.field(i).type) for i in range(type_.num_fields))


def same(type_: pa.DataType) -> bool:
    """Whether Arrow gives the Python values that DuckDB gives; it then does so sooner."""
    return any(is_one(type_) for is_one in _SAME)
