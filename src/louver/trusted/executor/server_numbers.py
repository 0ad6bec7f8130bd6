"""Numbers that a server has added, or stores as they are, as the local engine has them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from louver import errors
from louver.trusted.vault.types import shifted


def declared(values: pa.Array, field: pa.Field) -> pa.Array:
    """Plain numbers in their declared type: a server may have none that is as narrow."""
    wanted, given = field.type, values.type
    if given == wanted:
        return values
    if isinstance(wanted, pa.OpaqueType):
        return _opaque(values, wanted)
    integers = pa.types.is_integer(wanted) and pa.types.is_integer(given)
    decimals = pa.types.is_decimal(wanted) and pa.types.is_decimal(given)
    if not (integers or decimals):
        return values
    try:
        return values.cast(wanted)
    except pa.ArrowInvalid as error:
        raise errors.make("reply.format", detail="a number beyond its column's type") from error


def _opaque(values: pa.Array, wanted: pa.OpaqueType) -> pa.Array:
    """Values of a type that Arrow has none for, by their form; one that is a text may be stored as
    one.
    """
    given, form = values.type, wanted.storage_type
    if pa.types.is_string(given) and pa.types.is_binary(form):
        values = values.cast(form)
    elif given != form:
        raise errors.make("reply.format", detail=f"{given} where {wanted.type_name} is stored")
    return pa.ExtensionArray.from_storage(wanted, values)


def quotients(total: pa.Array, count: pa.Array) -> pa.Array:
    """DuckDB's AVG from sum and count: the quotient of two extended-precision numbers."""
    scale = total.type.scale if pa.types.is_decimal(total.type) else 0
    sums = [None if value is None else _unscaled(value, scale) for value in python_values(total)]
    counts = count.to_pylist()
    divisor = np.longdouble(10**scale)
    results = [
        None if value is None or not number else float(_wide(value) / (number * divisor))
        for value, number in zip(sums, counts, strict=True)
    ]
    return pa.array(results, pa.float64())


def _wide(value: int) -> np.longdouble:
    low, high = value & (1 << 64) - 1, value >> 64
    return np.longdouble(high) * np.longdouble(18446744073709551616.0) + np.longdouble(low)


def _unscaled(value: object, scale: int) -> int:
    return int(shifted(value, scale) if isinstance(value, Decimal) else str(value))


def python_values(values: pa.Array) -> list[object]:
    """Values as Python has them; wide integers are little-endian bytes in Arrow."""
    if isinstance(values, pa.ExtensionArray):
        raw = values.storage.to_pylist()
        return [None if v is None else int.from_bytes(v, "little", signed=True) for v in raw]
    return list(values.to_pylist())
