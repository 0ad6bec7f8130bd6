"""Leaks: at rest which values are 0 or NULL and each value's Jacobi symbol; after any sum,
comparison, SUM, GROUP BY or equi-join the whole column.
Answers: × + − and comparisons with columns, constants and plain columns; COUNT, SUM, AVG, MIN, MAX,
GROUP BY, equi-joins, products of tables.
Stored as: BLOB of the modulus's length: v·(m·g^(rx))⁻¹ mod n; helpers S, R and U per row.
Spec: spec/sdb.md.
Broken by: Cao, Liu, Lu and Ren, "Cryptanalysis of an Encrypted Database in SIGMOD '14", PVLDB
2021; docs/attacks.md and `louver attack` show it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from louver.trusted.vault.catalog import UNIT_COLUMN, Column, Table
from louver.trusted.vault.keyring import SdbSpace
from louver.trusted.vault.scheme import Leak, Scheme

_RATIO = "the server can compute the ratio of {column} in every row of {table}"
_VALUES = "the server can compute every value of {column} in {table}"
_RATIOS = "the server can compute all ratios of values of {column} in {table}"
SCHEME = Scheme(
    name="sdb",
    representation="sdb",
    stored_as="a share of 2,048 bits per value, and three helper shares per row",
    spec="spec/sdb.md",
    ceiling="plaintext",
    at_rest=Leak(
        "equality",
        "sdb.rest",
        "the server can tell which values of {column} in {table} are 0 and which are NULL, and "
        "one bit of each other value (its Jacobi symbol)",
    ),
    lengths=None,
    operations={
        "A × B, A × u, A × P, −A": None,
        "IS NULL, COUNT": None,
        "A + B, A − B": Leak("plaintext", "sdb.add", _RATIO),
        "A ± u, A ± P": Leak("plaintext", "sdb.add/constant", _VALUES),
        "A = B, A < B …": Leak("plaintext", "sdb.compare", _RATIO),
        "A = u, A < u …": Leak("plaintext", "sdb.compare/constant", _VALUES),
        "A < 0 …": Leak(
            "plaintext",
            "sdb.compare/zero",
            "the server can compute the sign of {column} in every row of {table}, and its value up"
            " to R",
        ),
        "SUM, AVG": Leak("plaintext", "sdb.sum", _RATIOS),
        "GROUP BY, COUNT(DISTINCT)": Leak("plaintext", "sdb.group", _RATIOS),
        "equi-join": Leak("plaintext", "sdb.join", _RATIOS),
        "MIN, MAX": Leak(
            "plaintext",
            "sdb.order",
            "the server can compute order and ratios of values of {column} in {table}",
        ),
    },
    broken_by="Cao et al., PVLDB 2021, by ciphertext alone",
)


def seal(
    space: SdbSpace, table: Table, column: Column, values: pa.Array, rows: pa.Array
) -> pa.Array:
    """Values as shares; NULL stays NULL."""
    return space.seal(table.id, column.id, column.generation, values, rows)


def seal_helpers(space: SdbSpace, table: Table, rows: pa.Array) -> dict[str, pa.Array]:
    """The helper columns S, R and U of some rows, by their names on the server."""
    ones = pa.array(np.ones(len(rows), dtype=np.int8))
    return {
        table.helper_one: space.seal_ones(table.id, table.generation, rows),
        table.helper_random: space.seal_random(table.id, table.generation, rows),
        table.helper_unit: space.seal(table.id, UNIT_COLUMN, table.generation, ones, rows),
    }
