"""Leaks: nothing at rest but the number of rows; a query shows which rows it adds.
Answers: SUM, AVG, COUNT of whole numbers and decimals of at most 64 bits.
Stored as: BLOB of twice the modulus's length: up to 15 columns of a row in one ciphertext.
Spec: spec/hom.md.
Broken by: factoring the modulus, so by a large quantum computer; a server may add other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver import errors
from louver.trusted.vault import sums
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import HomSpace
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import word
from louver.trusted.vault.scheme_row import (
    COUNT,
    PUBLIC,
    ROW_ID,
    ROWS,
    Addends,
    Answer,
    Entry,
    Leak,
    Packing,
    Representation,
    Scheme,
    SumPart,
    in_bytes,
)
from louver.trusted.vault.types import can_mask, code_domain, code_width

SLOTS = 15
"""Columns in one ciphertext."""


def _applies(_column: Column, _protection: Protection) -> Sequence[str]:
    """Its ciphertexts belong to the table."""
    return ()


def _packs(column: Column, protection: Protection) -> bool:
    """Whether a column has a slot in the ciphertexts of its table."""
    domain = code_domain(column.type) or ""
    fits = can_mask(column.type) and code_width(domain) == 8 and domain != "uint64"
    return protection.bundled("access") and word(protection, "sum") == "hom" and fits


def _sums(_addends: Addends) -> Sequence[SumPart]:
    """The product of the ciphertexts, and how many there were."""
    return SumPart("sum", "hom_sum", ("hom", PUBLIC)), SumPart("rows", COUNT, (ROW_ID,))


SCHEME = Scheme(
    name="hom",
    stored_as="one Paillier ciphertext a row, in which up to 15 columns are packed",
    spec="spec/hom.md",
    ceiling="access",
    at_rest=Leak(
        "size",
        "hom.rest",
        "the server knows how many packed numbers of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "SUM, AVG, COUNT": ROWS,
    },
    broken_by="factoring the modulus; a large quantum computer",
    representations=(Representation("hom", "a", in_bytes),),
    applies=_applies,
    answers={"SUM": Answer(leak="rows")},
    functions=("hom_sum",),
    policy=Entry("sum", ("hom",), says=lambda _: "hom"),
    sums=_sums,
    packs=Packing(_packs, SLOTS),
    former=("paillier",),
)


def seal_table(
    keys: KeySource, table: Table, rows: pa.Table, _row_ids: pa.Array
) -> dict[str, pa.Array]:
    """The packed columns of some rows, by their names on the server; a column that is gone leaves
    its slot empty.
    """
    names = {column.id: column.name for column in table.columns}
    return {
        stored: seal(keys.hom_space, [_slot(rows, names.get(id_)) for id_ in ids], rows.num_rows)
        for stored, ids in table.packs.items()
    }


def _slot(rows: pa.Table, name: str | None) -> pa.Array:
    if name is None:
        return pa.nulls(rows.num_rows, pa.int64())
    values = rows.column(name).combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    return values


def seal(space: HomSpace, columns: list[pa.Array], rows: int) -> pa.Array:
    """One ciphertext a row, of all columns together."""
    return space.seal(columns, rows)


def open(  # noqa: A001 - the scheme's two verbs are seal and open
    space: HomSpace, sums: pa.Array, rows: list[int]
) -> list[list[tuple[int, int]]]:
    """Total and number of values of every column, sum by sum."""
    return space.open(sums, rows)


def public(keys: KeySource) -> bytes:
    """The modulus under which ciphertexts are added."""
    return keys.hom_space.modulus


def open_sum(
    keys: KeySource, table: Table, column: Column, what: str, parts: sums.Parts, most: int
) -> list[int | None]:
    """The totals of a column, or how many values were added, group by group.

    A row may be counted ``most`` times. A sum of no value is NULL. Raises `sums.Mismatch`.
    """
    ciphertexts, rows = sums.part(parts, "sum"), sums.whole_numbers(sums.part(parts, "rows"))
    slot = next(ids.index(column.id) for ids in table.packs.values() if column.id in ids)
    groups = [group for group, sum_ in enumerate(ciphertexts) if sum_ is not None]
    added = [rows[group] for group in groups]
    sums.require_rows(table, added, most)
    try:
        slots = open(
            keys.hom_space, pa.array([ciphertexts[group] for group in groups], pa.binary()), added
        )
    except errors.VerificationError as error:
        raise sums.Mismatch from error
    entries = [entry[slot] for entry in slots]
    sums.require_bounds(column, [total for total, _ in entries], [number for _, number in entries])
    results: list[int | None] = [0 if what == COUNT else None] * len(ciphertexts)
    for group, (total, number) in zip(groups, entries, strict=True):
        results[group] = number if what == COUNT else total if number else None
    return results
