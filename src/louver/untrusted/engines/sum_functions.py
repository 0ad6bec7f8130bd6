"""Functions for masked sums, packed sums and searchable text, as DuckDB sees them.

Like `sdb_functions`: the work is done in Rust (`louver._rust.server`), without any key.
"""

from __future__ import annotations

import duckdb
from duckdb.sqltypes import BIGINT, BLOB, BOOLEAN

from louver.untrusted.engines.sdb_functions import BLOBS, ServerFunction

FUNCTIONS: tuple[ServerFunction, ...] = (
    # The rows that were added, in few bytes (spec/rowset.md): a list of row ids.
    ServerFunction("row_set", (duckdb.list_type(BIGINT),), BLOB),
    # Sums under Paillier's encryption (spec/hom.md): list of ciphertexts, n squared.
    ServerFunction("hom_sum", (BLOBS, BLOB), BLOB, sees_null=True),
    # Whether a row's filter holds all tokens (spec/text.md): filter, row id, trapdoors.
    ServerFunction("text_match", (BLOB, BIGINT, BLOB), BOOLEAN),
)
NAMES: frozenset[str] = frozenset(function.name for function in FUNCTIONS)
