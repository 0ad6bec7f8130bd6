"""Leaks: nothing at rest but the number of rows; a query shows which rows it adds.
Answers: SUM, AVG, COUNT of whole numbers and decimals of at most 64 bits.
Stored as: BLOB of twice the modulus's length: up to 15 columns of a row in one ciphertext.
Spec: spec/paillier.md.
Broken by: factoring the modulus, so by a large quantum computer; a server may add other rows.
"""

from __future__ import annotations

import pyarrow as pa

from louver.trusted.vault.keyring import PaillierSpace
from louver.trusted.vault.scheme import ROWS, Leak, Scheme

SCHEME = Scheme(
    name="hom",
    representation="hom",
    stored_as="one Paillier ciphertext a row, in which up to 15 columns are packed",
    spec="spec/paillier.md",
    ceiling="access",
    at_rest=Leak(
        "size",
        "hom.rest",
        "the server knows how many packed numbers of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "SUM, AVG, COUNT": ROWS,
    },
    broken_by="factoring the modulus; a large quantum computer",
)


def seal(space: PaillierSpace, columns: list[pa.Array], rows: int) -> pa.Array:
    """One ciphertext a row, of all columns together."""
    return space.seal(columns, rows)


def open(  # noqa: A001 - the scheme's two verbs are seal and open
    space: PaillierSpace, sums: pa.Array, rows: list[int]
) -> list[list[tuple[int, int]]]:
    """Total and number of values of every column, sum by sum."""
    return space.open(sums, rows)
