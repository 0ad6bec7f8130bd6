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

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from louver.trusted.vault.catalog import UNIT_COLUMN, Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import SdbSpace
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme_row import CAO, ZEROS, Leak, Representation, Scheme, in_bytes
from louver.trusted.vault.types import can_share

_RATIO = "the server can compute the ratio of {column} in every row of {table}"
_VALUES = "the server can compute every value of {column} in {table}"
_RATIOS = "the server can compute all ratios of values of {column} in {table}"


def _applies(_: Column, protection: Protection) -> Sequence[str]:
    return ("sdb",) if protection.scheme == "sdb" else ()


SCHEME = Scheme(
    name="sdb",
    stored_as="a share of 2,048 bits per value, and three helper shares per row",
    spec="spec/sdb.md",
    ceiling="plaintext",
    at_rest=Leak(
        "equality",
        "sdb.rest",
        "the server can tell which values of {column} in {table} are 0 and which are NULL, and "
        "one bit of each other value (its Jacobi symbol)",
        ZEROS,
    ),
    lengths=None,
    operations={
        "A × B, A × u, A × P, −A": None,
        "IS NULL, COUNT": None,
        "A + B, A − B": Leak("plaintext", "sdb.add", _RATIO, CAO),
        "A ± u, A ± P": Leak("plaintext", "sdb.add/constant", _VALUES, CAO),
        "A = B, A < B …": Leak("plaintext", "sdb.compare", _RATIO, CAO),
        "A = u, A < u …": Leak("plaintext", "sdb.compare/constant", _VALUES, CAO),
        "A < 0 …": Leak(
            "plaintext",
            "sdb.compare/zero",
            "the server can compute the sign of {column} in every row of {table}, and its value up"
            " to R",
            CAO,
        ),
        "SUM, AVG": Leak("plaintext", "sdb.sum", _RATIOS, CAO),
        "GROUP BY, COUNT(DISTINCT)": Leak("plaintext", "sdb.group", _RATIOS, CAO),
        "equi-join": Leak("plaintext", "sdb.join", _RATIOS, CAO),
        "MIN, MAX": Leak(
            "plaintext",
            "sdb.order",
            "the server can compute order and ratios of values of {column} in {table}",
            CAO,
        ),
    },
    broken_by="Cao et al., PVLDB 2021, by ciphertext alone",
    representations=(Representation("sdb", "s", in_bytes),),
    applies=_applies,
    answers={},
    functions=(
        "sdb_mul", "sdb_linear", "sdb_add", "sdb_add_kept", "sdb_key_update", "sdb_compare",
        "sdb_compare_kept", "sdb_compare_sum", "sdb_sum", "sdb_cartprod", "sdb_residue",
        "sdb_order", "sdb_powers",
    ),
    using=True,
    takes=can_share,
    shares=True,
    profile="sdb",
)  # fmt: skip

_UNSIGNED = pa.opaque(pa.binary(16), "uhugeint", "DuckDB")


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """Values as shares; NULL stays NULL."""
    identity = (table.id, column.id, column.generation)
    if column.type == "UHUGEINT" and not isinstance(values, pa.ExtensionArray):
        # Of 128 bits only the extension says whether there is a sign.
        values = pa.ExtensionArray.from_storage(_UNSIGNED, values)
    return {"sdb": keys.space.seal(*identity, values, row_ids)}


def seal_table(
    keys: KeySource, table: Table, _rows: pa.Table, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """What shares need beside them in every row, by its name on the server."""
    return seal_helpers(keys.space, table, row_ids) if table.helper_one else {}


def seal_helpers(space: SdbSpace, table: Table, rows: pa.Array) -> dict[str, pa.Array]:
    """The helper columns S, R and U of some rows, by their names on the server."""
    ones = pa.array(np.ones(len(rows), dtype=np.int8))
    return {
        table.helper_one: space.seal_ones(table.id, table.generation, rows),
        table.helper_random: space.seal_random(table.id, table.generation, rows),
        table.helper_unit: space.seal(table.id, UNIT_COLUMN, table.generation, ones, rows),
    }
