"""Leaks: nothing at rest but the number of values; a query shows which rows it adds.
Answers: SUM, AVG, COUNT of whole numbers and decimals.
Stored as: BIGINT or UBIGINT: two limbs of the masked number, a masked flag where it may be NULL.
Spec: spec/sum.md.
Broken by: nothing that is known while no row number is used twice; a server may add other rows.
"""

from __future__ import annotations

from louver.trusted.vault.scheme import ROWS, Leak, Scheme

SCHEME = Scheme(
    name="sum",
    representation="sum",
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
)
