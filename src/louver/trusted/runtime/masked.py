"""Masked sums opened: the masks of the rows that the server added are taken away."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from louver import errors
from louver.trusted.planner.plan import Output
from louver.trusted.planner.types import code_domain, code_width, shifted
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing


def opened(
    keys: KeyRing, table: Table, column: Column, output: Output, parts: dict[str, list[object]]
) -> list[int | None]:
    """The totals, or the numbers of values that are no NULL, of every group.

    ``parts`` are the answer's columns by name. A sum of no value is NULL.
    """
    low, high, count, rows = (parts.get(name) for name in output.parts)
    if low is None or count is None:
        raise errors.make("reply.format", detail="a part of a sum is missing")
    if rows is None:
        sets = [keys.run_set([(first, number) for first, number in table.runs])] * len(low)
    else:
        sets = [found if isinstance(found, bytes) else b"" for found in rows]
    bits = keys.sum_limb_bits(code_width(code_domain(column.type) or "") == 16)
    place = (table.id, column.id, column.generation, bits)
    if output.kind == "flags":
        _, numbers = keys.sum_open(*place, [0] * len(low), None, _limbs(low), _full(keys, sets))
        return list(numbers or [])
    flagged = "sum_count" in column.stored and column.nullable
    totals, numbers = keys.sum_open(
        *place,
        _limbs(low),
        None if high is None else _limbs(high),
        _limbs(count) if flagged else None,
        _full(keys, sets),
    )
    added = numbers if numbers is not None else [int(str(n or 0)) for n in count]
    low_bound, high_bound = column.minimum or 0, column.maximum or 0
    for sum_, number in zip(totals, added, strict=True):
        if not low_bound * number <= sum_ <= high_bound * number:
            raise errors.make("result.tampered", detail="a sum is outside of the column's bounds")
    return [total if number else None for total, number in zip(totals, added, strict=True)]


def _full(keys: KeyRing, sets: list[bytes]) -> list[bytes]:
    """A group without rows has no set; its sum has no masks."""
    empty = keys.run_set([])
    return [found or empty for found in sets]


def _limbs(values: list[object]) -> list[int]:
    """Sums of limbs as they are; of no row the server sends NULL."""
    return [int(str(value or 0)) for value in values]


def as_type(values: list[int | None], field: pa.Field) -> pa.Array:
    """Whole numbers as DuckDB's type: BIGINT, HUGEINT, or a DECIMAL of which they are unscaled."""
    kind = field.type
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    try:
        if pa.types.is_decimal(storage):
            scale = storage.scale
            made = [None if v is None else shifted(Decimal(v), -scale) for v in values]
            return pa.array(made, storage)
        if pa.types.is_fixed_size_binary(storage):
            raw = [None if v is None else v.to_bytes(16, "little", signed=True) for v in values]
            return pa.ExtensionArray.from_storage(kind, pa.array(raw, storage))
        return pa.array(values, storage)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise errors.make("result.tampered", detail="a sum is outside of its type") from error
