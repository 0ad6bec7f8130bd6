"""Plain columns as a server sends them, in the types that were declared."""

from __future__ import annotations

import pyarrow as pa

from louver import errors


def declared(values: pa.Array, field: pa.Field) -> pa.Array:
    """Plain numbers in their declared type: a server may have none that is as narrow."""
    wanted, given = field.type, values.type
    integers = pa.types.is_integer(wanted) and pa.types.is_integer(given)
    decimals = pa.types.is_decimal(wanted) and pa.types.is_decimal(given)
    if given == wanted or not (integers or decimals):
        return values
    try:
        return values.cast(wanted)
    except pa.ArrowInvalid as error:
        raise errors.make("reply.format", detail="a number beyond its column's type") from error
