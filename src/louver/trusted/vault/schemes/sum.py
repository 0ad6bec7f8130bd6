"""Leaks: nothing at rest but the number of values; a query shows which rows it adds.
Answers: SUM, AVG, COUNT of whole numbers and decimals.
Stored as: BIGINT or UBIGINT: two limbs of the masked number, a masked flag where it may be NULL.
Spec: spec/sum.md.
Broken by: nothing that is known while no row number is used twice; a server may add other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import ROWS, Answer, Leak, Representation, Scheme
from louver.trusted.vault.stored_types import LIMB, WIDE_LIMB
from louver.trusted.vault.types import can_mask, sums_wide

_PARTS = ("sum", "sum_high", "sum_count")


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    wanted = protection.bundled("access") and protection.sum == "masked"
    if not wanted or not can_mask(column.type):
        return ()
    return _PARTS if column.nullable else _PARTS[:2]


def _limb(column: Column) -> str:
    return WIDE_LIMB if sums_wide(column.type) else LIMB


def _flag(_: Column) -> str:
    return LIMB


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
    policy=("sum", ("masked",)),
)


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """The limbs under their masks, and the flags."""
    identity = (table.id, column.id, column.generation)
    return dict(zip(_PARTS, keys.keyring.sum_seal(*identity, values, row_ids), strict=True))
