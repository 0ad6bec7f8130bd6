"""Masked sums opened: the masks of the rows that the server added are taken away.

Whether a sum is refused can depend on a value, and a server that lies may watch for that. So what
can be checked without a value is checked first: rows must be the table's, and as many as the server
says. What is left is a `Mismatch`, and one of them ends the server's sums of a column (`stopped`).
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from louver import errors
from louver.trusted.planner.ir import Output
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.types import code_domain, code_width, shifted

ROWS_LIMIT = 1 << 40
"""Most rows of a row set, each as often as it is counted (spec/rowset.md)."""


class Mismatch(Exception):
    """A sum cannot be one of the column's values: a check failed that depends on them."""


def opened(
    keys: KeyRing,
    table: Table,
    column: Column,
    output: Output,
    parts: dict[str, list[object]],
    most: int,
) -> list[int | None]:
    """The totals, or the numbers of values that are not NULL, of every group.

    ``parts`` are the answer's columns by name; a row may be counted ``most`` times. A sum of no
    value is NULL. Raises `Mismatch`.
    """
    low, high, count, rows = (parts.get(name) for name in output.parts)
    if low is None or count is None:
        raise errors.make("reply.format", detail="a part of a sum is missing")
    sets, sizes = _row_sets(keys, table, rows, len(low), most)
    flagged = "sum_count" in column.stored and column.nullable
    if not flagged and [int(str(n or 0)) for n in count] != sizes:
        raise errors.make("result.tampered", detail="a sum is of more or fewer rows than it names")
    bits = keys.sum_limb_bits(code_width(code_domain(column.type) or "") == 16)
    identity = (table.id, column.id, column.generation, bits)
    if output.kind == "flags":
        _, numbers = keys.sum_open(*identity, [0] * len(low), None, _limbs(low), sets)
        return list(_counted(numbers or [], sizes))
    totals, numbers = keys.sum_open(
        *identity,
        _limbs(low),
        None if high is None else _limbs(high),
        _limbs(count) if flagged else None,
        sets,
    )
    added = sizes if numbers is None else _counted(numbers, sizes)
    require_bounds(column, totals, added)
    return [total if number else None for total, number in zip(totals, added, strict=True)]


def require_bounds(column: Column, totals: list[int], added: list[int]) -> None:
    """Every total must be one of as many values of the column; raises `Mismatch`."""
    low, high = column.minimum or 0, column.maximum or 0
    if any(not low * n <= total <= high * n for total, n in zip(totals, added, strict=True)):
        raise Mismatch


def _counted(numbers: list[int], sizes: list[int]) -> list[int]:
    """Numbers of values that are not NULL, of rows of which at most all are such."""
    if any(number > size for number, size in zip(numbers, sizes, strict=True)):
        raise Mismatch
    return numbers


def _row_sets(
    keys: KeyRing, table: Table, rows: list[object] | None, groups: int, most: int
) -> tuple[list[bytes], list[int]]:
    """The row set of every group, and how many rows it counts; all of them rows of the table."""
    known = [(first, count) for first, count in table.runs] if table.runs_known else None
    if rows is None:
        # The server adds all rows that there are, so it need not say which.
        sets = [keys.run_set(known or [])] * groups
    else:
        empty = keys.run_set([])
        sets = [row if isinstance(row, bytes) and row else empty for row in rows]
    sizes = keys.set_sizes(sets, known, min(most, ROWS_LIMIT))
    if any(size > table.row_count * most for size in sizes):
        raise errors.make("result.tampered", detail="a sum is of more rows than the table has")
    return sets, sizes


def _limbs(values: list[object]) -> list[int]:
    """Sums of limbs as they are; of no row the server sends NULL."""
    return [int(str(value or 0)) for value in values]


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
