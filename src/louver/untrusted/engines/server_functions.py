"""The server's functions on ciphertext as DuckDB sees them: Arrow vectors in, Arrow vectors out.

The work is done in Rust (`louver._rust.server`), without any key but those of onion layers that the
client opens. DuckDB calls a function with at most 2,048 rows at a time and skips rows with a NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from duckdb.sqltypes import BIGINT, BLOB, BOOLEAN, TINYINT, UUID, DuckDBPyType

BLOBS: DuckDBPyType = duckdb.list_type(BLOB)


@dataclass(frozen=True, slots=True)
class ServerFunction:
    """One function of the server: its name, parameters and result, and whether it sees NULLs."""

    name: str
    parameters: tuple[DuckDBPyType, ...]
    returns: DuckDBPyType
    sees_null: bool = False


def _of_blobs(name: str, count: int, returns: DuckDBPyType = BLOB) -> ServerFunction:
    return ServerFunction(name, (BLOB,) * count, returns)


#: Shares (spec/sdb.md). a, b: ciphertexts; s: a row's one; r: its random; w: kept key updates;
#: k: a wire-form update; p: an exponent; x, y: columns stored under one key; z: an opened product;
#: n: the modulus (always last).
_SHARES: tuple[ServerFunction, ...] = (
    _of_blobs("sdb_mul", 3),  # a, b, n
    _of_blobs("sdb_key_update", 4),  # a, s, k, n
    _of_blobs("sdb_add", 6),  # a, b, s, ka, kb, n
    _of_blobs("sdb_add_kept", 7),  # a, b, wa, wb, ka, kb, n
    _of_blobs("sdb_compare", 2, TINYINT),  # z, n
    _of_blobs("sdb_compare_sum", 8, TINYINT),  # r, a, b, wa, wb, ka, kb, n
    _of_blobs("sdb_compare_kept", 5, TINYINT),  # x, y, kx, ky, n
    _of_blobs("sdb_linear", 5),  # x, y, kx, ky, n
    # A list without a value has no sum. List of z, n.
    ServerFunction("sdb_sum", (BLOBS, BLOB), BLOB, sees_null=True),
    _of_blobs("sdb_int_add", 3),  # r1, r2, n
    _of_blobs("sdb_cartprod", 4),  # a, s, p, n
    _of_blobs("sdb_power", 3),  # s, p, n
    ServerFunction("sdb_powers", (BLOB, BLOBS, BLOB), BLOBS),  # s, list of p, n
    _of_blobs("sdb_order", 2),  # z, n
    _of_blobs("sdb_residue", 2),  # text of a public number, n
)
_SUMS: tuple[ServerFunction, ...] = (
    # The rows that were added, in few bytes (spec/rowset.md): a list of row ids.
    ServerFunction("row_set", (duckdb.list_type(BIGINT),), BLOB),
    # Sums under Paillier's encryption (spec/hom.md): list of ciphertexts, n squared.
    ServerFunction("hom_sum", (BLOBS, BLOB), BLOB, sees_null=True),
    # Whether a row's filter holds all tokens (spec/text.md): filter, row id, trapdoors.
    ServerFunction("text_match", (BLOB, BIGINT, BLOB), BOOLEAN),
)
_CODES: tuple[ServerFunction, ...] = (
    # A code without its row's pad (spec/onion.md): code, row id, key. Some pads hide a NULL.
    ServerFunction("onion_open", (BIGINT, BIGINT, BLOB), BIGINT, sees_null=True),
    ServerFunction("onion_open_wide", (UUID, BIGINT, BLOB), UUID, sees_null=True),
    # A group's code from a column's (spec/eq.md): code, key.
    ServerFunction("onion_join", (BIGINT, BLOB), BIGINT),
    ServerFunction("onion_join_wide", (UUID, BLOB), UUID),
    # -1, 0 or 1: how a value compares with a token's (spec/ore.md): value, token.
    ServerFunction("ore_compare", (BLOB, BLOB), TINYINT),
)
FUNCTIONS: tuple[ServerFunction, ...] = (*_SHARES, *_SUMS, *_CODES)


def register(
    connection: duckdb.DuckDBPyConnection, functions: Iterable[ServerFunction] = FUNCTIONS
) -> None:
    """Make functions known to a database instance (all its connections share them)."""
    for function in functions:
        try:
            connection.create_function(
                function.name,
                _body(function.name, len(function.parameters)),
                list(function.parameters),
                function.returns,
                type=PythonUDFType.ARROW,
                null_handling=(
                    FunctionNullHandling.SPECIAL
                    if function.sees_null
                    else FunctionNullHandling.DEFAULT
                ),
            )
        except duckdb.CatalogException:
            # Another connection of this process holds the same file and has registered them.
            continue


def _body(name: str, arity: int) -> Callable[..., pa.Array]:
    """The Rust function, looked up at the first call: opening a database needs no arithmetic."""
    function: Callable[..., pa.Array] | None = None

    def call(*columns: Any) -> pa.Array:
        nonlocal function
        if function is None:
            from louver._rust import server

            function = getattr(server, name)
        return function(*columns)

    call.__name__ = name
    # DuckDB asks for the signature and would count `*columns` as one parameter.
    places = [Parameter(f"c{position}", Parameter.POSITIONAL_ONLY) for position in range(arity)]
    call.__signature__ = Signature(places)  # type: ignore[attr-defined]
    return call
