"""Which representations a column has on the server: by its scheme, ceiling and type.

The sealed copy is always there. What a ceiling allows is added when the column is made, so that a
query finds it; layers stay closed until one needs them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from louver.names import fold
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.define.constraints import Known
from louver.trusted.executor.policy import FILES, Protection
from louver.trusted.vault import stored_types
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.levels import allows
from louver.trusted.vault.types import can_mask, code_domain, code_width, sums_wide

#: First letters of the server's columns; they tell which function a column serves, and no more.
_LETTERS = {
    "rnd": "e", "sdb": "s", "eq": "q", "ord": "o", "ore": "r", "text": "t", "sum": "a",
    "sum_high": "a", "sum_count": "a",
}  # fmt: skip
LETTERS = "".join(sorted({*_LETTERS.values(), "h", "w"}))
"""Those letters, and h and w of the helpers of shares: plain columns are not named so."""
_UNORDERED = ("uuid", "blob")
SLOTS = 15
"""Columns in one Paillier ciphertext."""
BUCKET_BITS = 8
"""With buckets the order codes of a column tell so many bits of its domain."""
NARROW_ORDER_BITS = 47
"""Order codes of domains of at most so many bits are narrow, of others wide."""


def wanted(type_: str, kept: Protection, nullable: bool) -> list[str]:
    """The representations of an encrypted column."""
    found = ["rnd"]
    domain, ceiling = code_domain(type_), kept.ceiling
    if kept.scheme == "sdb":
        return [*found, "sdb", *(["ord"] if kept.order == "bucket" and domain else [])]
    if allows(ceiling, "access") and can_mask(type_) and kept.sum == "masked":
        found += ["sum", "sum_high", *(["sum_count"] if nullable else [])]
    if domain is None or not allows(ceiling, "equality"):
        return found
    found.append("eq")
    if kept.text and type_ == "VARCHAR":
        found.append("text")
    if allows(ceiling, "order") and domain not in _UNORDERED:
        found.append("ore" if kept.order == "ore" else "ord")
    return found


def fit(column: Column, kept: Protection, known: Known) -> tuple[list[str], list[str]]:
    """Give a column in the catalog what it is to have and take what it is not.

    Returns the representations that are new, and the server's columns that are to be dropped.
    """
    if kept.scheme == FILES:
        return _in_files(column)
    names = wanted(column.type, kept, known.nullable)
    if not column.bits:
        domain = known.order_domain(column.type)
        column.low, column.bits = domain or (None, 0)
        numbers = code_domain(column.type) not in ("text", "double", "float", "uint64")
        if kept.order == "bucket" and numbers:
            column.coarse = max(column.bits - BUCKET_BITS, 0)
    if not column.bits:
        names = [name for name in names if name not in ("ord", "ore")]
    gone = [column.stored.pop(name) for name in list(column.stored) if name not in names]
    fresh = [name for name in names if name not in column.stored]
    for name in fresh:
        column.stored[name] = pseudonym(_LETTERS[name])
    states = {name: column.layers.get(name, "closed") for name in ("eq", "ord")}
    column.layers = {name: state for name, state in states.items() if name in column.stored}
    return fresh, gone


def _in_files(column: Column) -> tuple[list[str], list[str]]:
    """A column of a lake: in the files, and in their index where it may be asked for by ranges."""
    from louver.trusted.vault.index_keys import mappable

    column.stored = {"file": f"c{column.id}"}
    if allows(column.ceiling, "access") and code_domain(column.type) and mappable(column.type):
        column.stored["eds"] = f"c{column.id}"
    return [], []


def pack(table: Table, protections: Mapping[str, Protection]) -> None:
    """Give a new table its packed sums: up to fifteen columns in one ciphertext a row. What is
    packed stays so for the table's life; a column that goes leaves its slot empty.
    """
    ids = [
        column.id
        for column in table.columns
        if (kept := protections.get(fold(column.name))) is not None
        and column.encrypted
        and kept.sum == "paillier"
        and kept.scheme != "sdb"
        and allows(kept.ceiling, "access")
        and can_mask(column.type)
        and code_width(code_domain(column.type) or "") == 8
        and code_domain(column.type) != "uint64"
    ]
    for start in range(0, len(ids), SLOTS):
        table.packs[pseudonym("a")] = ids[start : start + SLOTS]


def pseudonym(letter: str) -> str:
    """A server column name that says nothing."""
    return f"{letter}_{secrets.token_hex(6)}"


def stored_type(column: Column, representation: str) -> str:
    """What a stored column is made of (`vault.stored_types`); a plain one is what was declared."""
    match representation:
        case "eq":
            return _code(code_width(code_domain(column.type) or "") == 16)
        case "ord":
            return _code(column.bits - column.coarse > NARROW_ORDER_BITS)
        case "sum" | "sum_high":
            return stored_types.WIDE_LIMB if sums_wide(column.type) else stored_types.LIMB
        case "sum_count":
            return stored_types.LIMB
    return stored_types.BYTES


def _code(wide: bool) -> str:
    return stored_types.WIDE_CODE if wide else stored_types.CODE


def columns_of(
    column: Column, backend: Backend, only: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """The stored columns with their types on the server."""
    return [
        (
            name,
            backend.plain_type(column.type)
            if kind == "plain"
            else backend.stored_type(stored_type(column, kind)),
        )
        for kind, name in column.stored.items()
        if only is None or kind in only
    ]
