"""What holds for every sum that a server computed and this machine opens.

Whether a sum is refused can depend on a value, and a server that lies may watch for that. So what
can be checked without a value is checked first: rows must be the table's, and as many as the server
says. What is left is a `Mismatch`, and one of them ends the server's sums of a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from louver import errors
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.types import shifted

Parts = Mapping[str, list[object]]
"""Columns of the answer by the names of `scheme.SumPart`, a value for each group."""


class Mismatch(Exception):
    """A sum cannot be one of the column's values: a check failed that depends on them."""


def part(parts: Parts, name: str) -> list[object]:
    """One part of a sum, which the server must have sent."""
    if name not in parts:
        raise errors.make("reply.format", detail="a part of a sum is missing")
    return parts[name]


def whole_numbers(values: Sequence[object]) -> list[int]:
    """Sums of limbs and numbers of rows as they are; of no row the server sends NULL."""
    return [int(str(value or 0)) for value in values]


def require_rows(table: Table, sizes: Sequence[int], most: int) -> None:
    """No sum may be of more rows than the table has, each ``most`` times."""
    if any(not 0 <= size <= table.most_rows * most for size in sizes):
        raise errors.make("result.tampered", detail="a sum is of more rows than the table has")


def require_bounds(column: Column, totals: Sequence[int], added: Sequence[int]) -> None:
    """Every total must be one of as many values of the column; raises `Mismatch`."""
    low, high = column.minimum or 0, column.maximum or 0
    if any(not low * n <= total <= high * n for total, n in zip(totals, added, strict=True)):
        raise Mismatch


def as_type(values: list[int | None], field: pa.Field) -> pa.Array:
    """Whole numbers as DuckDB's type: BIGINT, HUGEINT, or a DECIMAL of which they are unscaled.

    Raises `Mismatch` where one does not fit.
    """
    kind = field.type
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    try:
        if pa.types.is_decimal(storage):
            scale = storage.scale
            entries = [None if v is None else shifted(Decimal(v), -scale) for v in values]
            return pa.array(entries, storage)
        if pa.types.is_fixed_size_binary(storage):
            raw = [None if v is None else v.to_bytes(16, "little", signed=True) for v in values]
            return pa.ExtensionArray.from_storage(kind, pa.array(raw, storage))
        return pa.array(values, storage)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise Mismatch from error
