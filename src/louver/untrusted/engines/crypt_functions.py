"""Functions on codes as DuckDB sees them: layers that are opened, comparisons of sealed orders.

Like `sdb_functions`: the work is done in Rust (`louver._rust.server`). The server is sent the keys
of layers that the client decided to open, and no other.
"""

from __future__ import annotations

from duckdb.sqltypes import BIGINT, BLOB, TINYINT, UUID

from louver.untrusted.engines.sdb_functions import ServerFunction

FUNCTIONS: tuple[ServerFunction, ...] = (
    # A code without its row's pad (spec/onion.md): code, row id, key. NULL lies under some pads.
    ServerFunction("onion_open", (BIGINT, BIGINT, BLOB), BIGINT, sees_null=True),
    ServerFunction("onion_open_wide", (UUID, BIGINT, BLOB), UUID, sees_null=True),
    # A group's code from a column's (spec/eq.md): code, key.
    ServerFunction("onion_join", (BIGINT, BLOB), BIGINT),
    ServerFunction("onion_join_wide", (UUID, BLOB), UUID),
    # -1, 0 or 1: how a value compares with a token's (spec/ore.md): value, token.
    ServerFunction("ore_compare", (BLOB, BLOB), TINYINT),
)
NAMES: frozenset[str] = frozenset(function.name for function in FUNCTIONS)
