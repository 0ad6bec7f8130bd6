"""Leaks: nothing at rest but the number of values; a query shows which rows it adds.
Answers: SUM, AVG, COUNT of whole numbers of at most 32 bits.
Stored as: BIGINT: the number plus a mask of its row, and the same of a flag.
Spec: this file.
Broken by: nothing that is known while no row number is used twice; a server may add other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.trusted.vault import sums
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import (
    COUNT,
    ROW_ID,
    ROWS,
    TOTAL,
    Addends,
    Answer,
    Leak,
    Representation,
    Scheme,
    SumPart,
)
from louver.trusted.vault.stored_types import LIMB

_PARTS = ("toysum", "toysum_flag")


def _applies(_: Column, protection: Protection) -> Sequence[str]:
    return _PARTS if protection.scheme == "toysum" else ()


def _sums(addends: Addends) -> Sequence[SumPart]:
    """Sums of the masked numbers and flags, and the rows whose masks they carry."""
    if addends.rows >= 1 << 31:
        return ()
    flags = SumPart("flags", "limb_sum", ("toysum_flag",))
    rows = SumPart("rows", "gathered", (ROW_ID,), names_rows=True)
    if addends.what == TOTAL:
        return SumPart("numbers", "limb_sum", ("toysum",)), flags, rows
    return flags, rows


SCHEME = Scheme(
    name="toysum",
    stored_as="the number plus a mask of its row, and a flag for values that are not NULL",
    spec="tests/toy/summing.py",
    ceiling="access",
    at_rest=Leak(
        "size", "toysum.rest", "the server knows how many numbers {column} of {table} has"
    ),
    lengths=None,
    operations={"SUM, AVG, COUNT": ROWS},
    broken_by="nothing known while no row number is used twice",
    representations=tuple(Representation(name, "y", lambda _: LIMB) for name in _PARTS),
    applies=_applies,
    answers={"SUM": Answer(leak="rows")},
    using=True,
    takes=lambda type_: type_ in ("TINYINT", "SMALLINT", "INTEGER"),
    sums=_sums,
)


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """Numbers and flags under their masks; NULL is a 0 whose flag is 0."""
    rows, numbers = row_ids.to_pylist(), values.to_pylist()
    flags = [int(number is not None) for number in numbers]
    exact = {"toysum": [number or 0 for number in numbers], "toysum_flag": flags}
    return {
        name: pa.array(
            [
                _signed(number + _mask(keys, table, column, name, row))
                for number, row in zip(exact[name], rows, strict=True)
            ],
            pa.int64(),
        )
        for name in _PARTS
    }


def open_sum(
    keys: KeySource, table: Table, column: Column, what: str, parts: sums.Parts, most: int
) -> list[int | None]:
    """The masks of the rows that were added, taken away group by group."""
    groups = [
        [row for row in rows if row is not None] if isinstance(rows, list) else []
        for rows in sums.part(parts, "rows")
    ]
    sums.require_rows(table, [len(rows) for rows in groups], most)

    def opened(part: str, name: str) -> list[int]:
        totals = sums.whole_numbers(sums.part(parts, part))
        return [
            _signed(total - sum(_mask(keys, table, column, name, row) for row in rows))
            for total, rows in zip(totals, groups, strict=True)
        ]

    numbers = opened("flags", "toysum_flag")
    if any(not 0 <= n <= len(rows) for n, rows in zip(numbers, groups, strict=True)):
        raise sums.Mismatch
    if what == COUNT:
        return list(numbers)
    totals = opened("numbers", "toysum")
    sums.require_bounds(column, totals, numbers)
    return [total if n else None for total, n in zip(totals, numbers, strict=True)]


def _mask(keys: KeySource, table: Table, column: Column, name: str, row: int) -> int:
    label = f"{table.id}.{column.id}.{column.generation} {name} {row}"
    return int.from_bytes(keys.keyring.mac("toysum", label.encode())[:8], "big")


def _signed(number: int) -> int:
    """A number of 64 bits with a sign."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
