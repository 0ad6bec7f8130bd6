"""HomSum sums: up to fifteen columns in one Paillier ciphertext a row (spec/hom.md)."""

from __future__ import annotations

import pyarrow as pa

from louver import errors
from louver.trusted.executor import masked_sums
from louver.trusted.planner.ir import Output
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import HomSpace
from louver.trusted.vault.schemes import hom


def opened(
    space: HomSpace,
    table: Table,
    column: Column,
    output: Output,
    parts: dict[str, list[object]],
    most: int,
) -> list[int | None]:
    """The totals of a column, or how many values were added, group by group.

    A row may be counted ``most`` times. A sum of no value is NULL. Raises `masked.Mismatch` for
    what cannot be a sum of so many values of the column.
    """
    ciphertexts, rows = (parts[name] for name in output.parts)
    slot = next(ids.index(column.id) for ids in table.packs.values() if column.id in ids)
    there = [position for position, results in enumerate(ciphertexts) if results is not None]
    added = [int(str(rows[position] or 0)) for position in there]
    if any(not 0 <= number <= table.row_count * most for number in added):
        raise errors.make("result.tampered", detail="a sum is of more rows than the table has")
    try:
        sums = hom.open(
            space, pa.array([ciphertexts[position] for position in there], pa.binary()), added
        )
    except errors.VerificationError as error:
        raise masked_sums.Mismatch from error
    numbers = [slots[slot][1] for slots in sums]
    masked_sums.require_bounds(column, [slots[slot][0] for slots in sums], numbers)
    counting = output.kind == "hom_count"
    results: list[int | None] = [0 if counting else None] * len(ciphertexts)
    for position, slots in zip(there, sums, strict=True):
        total, number = slots[slot]
        results[position] = number if counting else total if number else None
    return results
