"""Leaks: nothing at rest but the number of values; a query shows which rows it adds.
Answers: SUM, AVG, COUNT of whole numbers and decimals.
Stored as: BIGINT or UBIGINT: two limbs of the masked number, a masked flag where it may be NULL.
Spec: spec/sum.md.
Broken by: nothing that is known while no row number is used twice; a server may add other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from louver import errors
from louver.trusted.vault import native, sums
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import word
from louver.trusted.vault.scheme_row import (
    COUNT,
    ROW_ID,
    ROWS,
    TOTAL,
    Addends,
    Answer,
    Entry,
    Leak,
    Representation,
    Scheme,
    SumPart,
)
from louver.trusted.vault.stored_types import LIMB, WIDE_LIMB
from louver.trusted.vault.types import can_mask, code_domain, code_width, sums_wide, value_range

ROWS_LIMIT = 1 << 40
"""Most rows of a row set, each as often as it is counted (spec/rowset.md)."""
_PARTS = ("sum", "sum_high", "sum_count")
_LIMB_BITS = {8: 60, 16: 64}
"""Bits of a limb, by the width of the type's codes (spec/sum.md)."""


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    wanted = protection.bundled("access") and word(protection, "sum") == "masked"
    if not wanted or not can_mask(column.type):
        return ()
    return _PARTS if column.nullable else _PARTS[:2]


def _limb(column: Column) -> str:
    return WIDE_LIMB if sums_wide(column.type) else LIMB


def _flag(_: Column) -> str:
    return LIMB


def _sums(addends: Addends) -> Sequence[SumPart]:
    """The limbs that the server adds, how many rows it added, and which."""
    column, total = addends.column, addends.what == TOTAL
    flagged = column.nullable and "sum_count" in column.stored
    if flagged != column.nullable or not (total or flagged):
        return ()
    # The server sees what it is asked for: what is declared decides, not what is stored.
    most = _largest(column) * addends.rows
    width = code_width(code_domain(column.type) or "")
    if total and width == 16 and most >= 10**38:
        # The local engine's sum may overflow, and then the error is its own. Of 64-bit values no
        # server adds enough.
        return ()
    added = "wide_limb_sum" if sums_wide(column.type) else "limb_sum"
    parts = [
        SumPart("low", added, ("sum",)) if total else SumPart("low", "limb_sum", ("sum_count",))
    ]
    # The client takes the total from half of what one limb can tell apart.
    if total and most >= 1 << (_LIMB_BITS[width] - 1):
        parts.append(SumPart("high", added, ("sum_high",)))
    counting = ("limb_sum", ("sum_count",)) if flagged else (COUNT, (ROW_ID,))
    parts.append(SumPart("count", *counting))
    if not addends.whole:
        parts.append(SumPart("rows", "row_set", (ROW_ID,), names_rows=True))
    return parts


def _largest(column: Column) -> int:
    return max(map(abs, value_range(column.type) or (0,)))


SCHEME = Scheme(
    name="sum",
    stored_as="two limbs of the number plus a one-time mask, a masked flag where NULL may be",
    spec="spec/sum.md",
    ceiling="access",
    at_rest=Leak(
        "size",
        "sum.rest",
        "the server knows how many masked numbers of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "SUM, AVG, COUNT": ROWS,
    },
    broken_by="nothing known while no row number is used twice",
    representations=(
        Representation("sum", "a", _limb),
        Representation("sum_high", "a", _limb),
        Representation("sum_count", "a", _flag),
    ),
    applies=_applies,
    answers={"SUM": Answer(leak="rows")},
    functions=("row_set",),
    # Where values are in tiles, to read them costs less than to open a sum: docs/decisions/0045.
    policy=Entry("sum", ("masked", "none"), tiled="none", off="none", says=lambda _: "masked"),
    sums=_sums,
)


def step(table: Table, column: Column) -> Any:
    """The limbs under their masks, and the flags."""
    return native.module().recipe.sum_step((table.id, column.id, column.generation))


def open_sum(
    keys: KeySource, table: Table, column: Column, what: str, parts: sums.Parts, most: int
) -> list[int | None]:
    """The totals, or the numbers of values that are not NULL, of every group: the masks of the
    rows that the server added are taken away.

    A row may be counted ``most`` times. A sum of no value is NULL. Raises `sums.Mismatch`.
    """
    low, count, ring = sums.part(parts, "low"), sums.part(parts, "count"), keys.keyring
    sets, sizes = _row_sets(ring, table, parts.get("rows"), len(low), most)
    flagged = "sum_count" in column.stored and column.nullable
    if not flagged and sums.whole_numbers(count) != sizes:
        raise errors.make("result.tampered", detail="a sum is of more or fewer rows than it names")
    bits = ring.sum_limb_bits(code_width(code_domain(column.type) or "") == 16)
    identity = (table.id, column.id, column.generation, bits)
    if what == COUNT:
        _, numbers = ring.sum_open(*identity, [0] * len(low), None, sums.whole_numbers(low), sets)
        return list(_counted(numbers or [], sizes))
    high = parts.get("high")
    totals, numbers = ring.sum_open(
        *identity,
        sums.whole_numbers(low),
        None if high is None else sums.whole_numbers(high),
        sums.whole_numbers(count) if flagged else None,
        sets,
    )
    added = sizes if numbers is None else _counted(numbers, sizes)
    sums.require_bounds(column, totals, added)
    return [total if number else None for total, number in zip(totals, added, strict=True)]


def _counted(numbers: list[int], sizes: list[int]) -> list[int]:
    """Numbers of values that are not NULL, of rows of which at most all are such."""
    if any(number > size for number, size in zip(numbers, sizes, strict=True)):
        raise sums.Mismatch
    return numbers


def _row_sets(
    ring: KeyRing, table: Table, rows: list[object] | None, groups: int, most: int
) -> tuple[list[bytes], list[int]]:
    """The row set of every group, and how many rows it counts; all of them rows of the table."""
    known = [(first, count) for first, count in table.runs] if table.runs_known else None
    if rows is None:
        # The server adds all rows that there are, so it need not say which.
        sets = [ring.run_set(known or [])] * groups
    else:
        empty = ring.run_set([])
        sets = [row if isinstance(row, bytes) and row else empty for row in rows]
    sizes = ring.set_sizes(sets, known, min(most, ROWS_LIMIT))
    sums.require_rows(table, sizes, most)
    return sets, sizes
