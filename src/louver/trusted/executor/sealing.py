"""A column's values as the server is to hold them: every representation, in its layer's state."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.schemes import rnd
from louver.trusted.vault.types import code_domain, shifted

_SUMS = ("sum", "sum_high", "sum_count")


def forms(
    keys: KeyRing, table: Table, column: Column, values: pa.Array, rows: pa.Array
) -> dict[str, pa.Array]:
    """Every representation but shares, by the name of its column on the server.

    ``values`` are in Arrow's storage types, NULLs among them.
    """
    held = column.stored
    place = (table.id, column.id, column.generation)
    made = {held["rnd"]: rnd.seal(keys, table, column, values, rows)}
    for onion in ("eq", "ord"):
        if onion in held:
            made[held[onion]] = layered(keys, table, column, onion, values, rows)
    if "ore" in held:
        domain, low = code_domain(column.type) or "", column.low or 0
        made[held["ore"]] = keys.ore_seal(*place, domain, low, column.bits, values)
    if "text" in held:
        made[held["text"]] = keys.text_seal(*place, values, rows)
    if "sum" in held:
        parts = dict(zip(_SUMS, keys.sum_seal(*place, values, rows), strict=True))
        made |= {held[name]: part for name, part in parts.items() if name in held}
    return made


def layered(
    keys: KeyRing, table: Table, column: Column, onion: str, values: pa.Array, rows: pa.Array
) -> pa.Array:
    """Codes under the layers that are still there."""
    place = (table.id, column.id, column.generation)
    state = column.layers.get(onion, "closed")
    found = codes(keys, table, column, onion, values)
    if state == "closed":
        found = keys.close_codes(*place, onion, found, rows)
    if pa.types.is_fixed_size_binary(found.type):
        return pa.ExtensionArray.from_storage(pa.uuid(), found)
    return found


def codes(keys: KeyRing, table: Table, column: Column, onion: str, values: pa.Array) -> pa.Array:
    """Codes without the outermost layer; NULL for NULL."""
    place = (table.id, column.id, column.generation)
    domain = code_domain(column.type) or ""
    if onion == "ord":
        low = column.low or 0
        if column.coarse:
            bits = column.bits - column.coarse
            found = buckets(values, low, column.coarse)
            return keys.ord_codes(*place, column.group, "int", 0, bits, found)
        return keys.ord_codes(*place, column.group, domain, low, column.bits, values)
    if column.layers.get("eq") == "join":
        return keys.eq_join_codes(column.group, domain, values)
    return keys.eq_codes(*place, column.group, domain, values)


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
        places = (ranks - np.uint64(low % (1 << 64))) >> np.uint64(coarse)
    return pa.array(places.astype(np.int64), mask=~scaled.is_valid().to_numpy(zero_copy_only=False))
