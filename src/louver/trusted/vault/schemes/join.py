"""Leaks: which rows of a column have the same value, and which are NULL; once it is adjusted to
another column, also which values of the two are equal.
Answers: equi-joins of columns that were put in no join group.
Stored as: BLOB: a point of ristretto255, the column's secret times a hash of the value.
Spec: spec/join.md.
Broken by: frequency analysis (Naveed, Kamara, Wright, CCS 2015).
"""

from __future__ import annotations

import pyarrow as pa

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.scheme import Leak, Scheme

SCHEME = Scheme(
    name="join",
    representation="join",
    stored_as="a point of 33 bytes, which a factor of 33 brings under another column's key",
    spec="spec/join.md",
    ceiling="equality",
    at_rest=Leak(
        "equality",
        "join.rest",
        "the server can tell which rows of {table} have the same {column}, and which have none",
    ),
    lengths=None,
    operations={
        "A = B of two columns": Leak(
            "equality",
            "join.adjusted",
            "the server can tell which values of {column} in {table} and of the other column are "
            "equal",
        ),
    },
    broken_by="frequency analysis: Naveed, Kamara and Wright, CCS 2015",
)


def seal(keys: KeyRing, table: Table, column: Column, domain: str, values: pa.Array) -> pa.Array:
    """Values of a domain as points; NULL stays NULL."""
    return keys.join_points(table.id, column.id, column.generation, domain, values)


def delta(keys: KeyRing, source: tuple[Table, Column], target: tuple[Table, Column]) -> bytes:
    """What the server multiplies the points of one column by to have those of another."""
    (a, b), (c, d) = source, target
    return keys.join_delta((a.id, b.id, b.generation), (c.id, d.id, d.generation))
