"""Leaks: nothing at rest but the number of values; once its layer is open, the order of rows, and
roughly how close two values are.
Answers: < <= > >= BETWEEN, MIN, MAX, ORDER BY with LIMIT.
Stored as: BIGINT or UUID: an order-preserving code, under a pad of the row while it is closed.
Spec: spec/ord.md.
Broken by: sorting attacks (Naveed, Kamara, Wright, CCS 2015) once it is open.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.vault import layers
from louver.trusted.vault import native as compiled
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, boundary, in_domain, native
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import word
from louver.trusted.vault.scheme_row import (
    ORDER,
    TOGETHER,
    Answer,
    Entry,
    Layer,
    Leak,
    Representation,
    Scheme,
)
from louver.trusted.vault.stored_types import CODE, WIDE_CODE
from louver.trusted.vault.types import UNORDERED, code_domain, shifted
from louver.wire.messages import Constant

NARROW_BITS = 47
"""Codes of domains of at most so many bits have eight bytes, of others sixteen."""

_OPEN = Leak(
    "order",
    "ord.open",
    "the server can order the rows of {table} by {column}, and tell roughly how close they"
    " are{nulls}",
    ORDER,
)
_JOIN = Leak(
    "order",
    "ord.join",
    "the server can order the values of {pair} together, and tell roughly how close they are",
    f"{ORDER}, {TOGETHER}",
)
_WORDS = ("ope", "bucket")
_NATIVE = Answer(opens="open", pairs="open")


def _applies(column: Column, protection: Protection) -> Sequence[str]:
    """With shares, as buckets beside them, which are looked at first."""
    if protection.scheme == "sdb":
        wanted = word(protection, "order") == "bucket"
    else:
        wanted = protection.bundled("order") and word(protection, "order") in _WORDS
    ordered = code_domain(column.type) not in (None, *UNORDERED)
    return ("ord",) if wanted and ordered and column.bits else ()


def _stored_type(column: Column) -> str:
    return WIDE_CODE if column.bits - column.coarse > NARROW_BITS else CODE


SCHEME = Scheme(
    name="ord",
    stored_as="an order-preserving code of 8 or 16 bytes, under a pad per row until it is opened",
    spec="spec/ord.md",
    ceiling="order",
    at_rest=Leak(
        "size",
        "ord.rest",
        "the server knows how many order codes of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "A < u, A BETWEEN u AND w …": _OPEN,
        "MIN, MAX": _OPEN,
        "ORDER BY … LIMIT": _OPEN,
        "A < B of one join group": _JOIN,
    },
    broken_by="sorting and cumulative frequencies once open: Naveed, Kamara and Wright, CCS 2015",
    representations=(Representation("ord", "o", _stored_type),),
    applies=_applies,
    answers=dict.fromkeys(("<", "<=", ">", ">=", "MIN", "MAX", "ORDER BY"), _NATIVE),
    layers=(
        Layer("closed", "closed", "size"),
        Layer("open", "order", "order", joins=True),
    ),
    opened=_OPEN,
    paired=_JOIN,
    policy=Entry("order", _WORDS, says=lambda column: "bucket" if column.coarse else None),
)


def step(table: Table, column: Column) -> Any:
    """Codes under the layer where it is still there; those of buckets are of numbers that `seal`
    makes of the values.
    """
    if column.coarse:
        return None
    identity, domain = (table.id, column.id, column.generation), code_domain(column.type) or ""
    closed = column.layers.get("ord", "closed") == "closed"
    return compiled.module().recipe.ord_step(
        identity, column.group, domain, column.low or 0, column.bits, closed
    )


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """Codes of buckets under the layer where it is still there."""
    bare = codes(keys.keyring, table, column, values)
    return {"ord": layers.layered(keys.keyring, table, column, "ord", bare, row_ids)}


def codes(keys: KeyRing, table: Table, column: Column, values: pa.Array) -> pa.Array:
    """Codes without their layer; NULL for NULL."""
    low = column.low or 0
    if column.coarse:
        return _bucket_codes(keys, table, column, buckets(values, low, column.coarse))
    domain = code_domain(column.type) or ""
    return keys.ord_codes(
        table.id, column.id, column.generation, column.group, domain, low, column.bits, values
    )


def _bucket_codes(keys: KeyRing, table: Table, column: Column, numbers: pa.Array) -> pa.Array:
    bits = column.bits - column.coarse
    return keys.ord_codes(
        table.id, column.id, column.generation, column.group, "int", 0, bits, numbers
    )


def buckets(values: pa.Array, low: int, coarse: int) -> pa.Array:
    """The buckets of whole numbers, dates and times: their places in the order domain without its
    low bits (Hore, Mehrotra and Tsudik, VLDB 2004, with buckets of equal width).
    """
    if pa.types.is_decimal(values.type):
        scaled = pa.array(
            [None if v is None else int(shifted(v, values.type.scale)) for v in values.to_pylist()],
            pa.int64(),
        )
    else:
        whole = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
        scaled = values.cast(whole).cast(pa.int64())
    ranks = pc.fill_null(scaled, low).to_numpy(zero_copy_only=False).view(np.uint64)
    with np.errstate(over="ignore"):
        numbers = (ranks - np.uint64(low % (1 << 64))) >> np.uint64(coarse)
    valid = scaled.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(numbers.astype(np.int64), mask=~valid)


def encode(keys: KeySource, table: Table, column: Column, value: Exact, sign: str) -> Constant:
    """The code of the boundary that a comparison draws; below all codes where there is none."""
    domain = code_domain(column.type) or ""
    edge = boundary(column, domain, value, sign)
    if edge is None:
        return str(uuid.UUID(int=0)) if _stored_type(column) == WIDE_CODE else 0
    if column.coarse and isinstance(edge, Fraction):
        # The bucket that the boundary lies in; its other values are sorted out locally.
        bucket = pa.array([(int(edge) - (column.low or 0)) >> column.coarse], pa.int64())
        return native(_bucket_codes(keys.keyring, table, column, bucket))
    array = in_domain(edge, domain)
    return None if array is None else native(codes(keys.keyring, table, column, array))
