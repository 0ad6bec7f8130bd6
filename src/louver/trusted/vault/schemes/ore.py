"""Leaks: nothing at rest but the number of values; each comparison shows which rows lie below its
constant, and for each row the first block in which it differs from that.
Answers: < <= > >= BETWEEN.
Stored as: BLOB: the right ciphertexts of Lewi and Wu, NULL like a value.
Spec: spec/ore.md.
Broken by: sorting attacks as order codes are, on what the comparisons have shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, boundary, in_domain
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import word
from louver.trusted.vault.scheme_row import Answer, Entry, Leak, Representation, Scheme, in_bytes
from louver.trusted.vault.types import UNORDERED, code_domain
from louver.wire.messages import Constant

_COMPARE = Answer(leak="ore.compare", operation="ore_compare", hides_nulls=True)


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    wanted = protection.bundled("order") and word(protection, "order") == "ore"
    ordered = code_domain(column.type) not in (None, *UNORDERED)
    return ("ore",) if wanted and ordered and column.bits else ()


SCHEME = Scheme(
    name="ore",
    stored_as="a right ciphertext that compares with a token of the client's, by a function",
    spec="spec/ore.md",
    ceiling="order",
    at_rest=Leak(
        "size",
        "ore.rest",
        "the server knows how many order-revealing values of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "A < u, A BETWEEN u AND w …": Leak(
            "order",
            "ore.compare",
            "the server can tell on which side of a value that a query asked for each {column} of"
            " {table} lies, and how close",
            "the attacks on order, on as much of it as comparisons have shown",
            counted=True,
        ),
    },
    broken_by="sorting attacks on what the comparisons have shown",
    representations=(Representation("ore", "r", in_bytes),),
    applies=_applies,
    answers=dict.fromkeys(("<", "<=", ">", ">="), _COMPARE),
    functions=("ore_compare",),
    policy=Entry("order", ("ore",), says=lambda _: "ore"),
)


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """Right ciphertexts; NULL is hidden among them."""
    domain, low = code_domain(column.type) or "", column.low or 0
    identity = (table.id, column.id, column.generation)
    return {"ore": keys.keyring.ore_seal(*identity, domain, low, column.bits, values)}


def encode(keys: KeySource, table: Table, column: Column, value: Exact, sign: str) -> Constant:
    """The token of the boundary that a comparison draws; below all values where there is none."""
    domain = code_domain(column.type) or ""
    edge = boundary(column, domain, value, sign)
    if edge is None:
        return b""
    array = in_domain(edge, domain)
    if array is None:
        return None
    identity = (table.id, column.id, column.generation)
    return keys.keyring.ore_token(*identity, domain, column.low or 0, column.bits, array)
