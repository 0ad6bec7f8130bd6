"""Leaks: the number of rows, the lengths of text in 16-byte steps, which rows a query touches.
Answers: nothing on the server; read back and finished at home.
Stored as: BLOB: version, nonce, ciphertext, tag; bound to table, column, row and key.
Spec: spec/sealed.md.
Broken by: nothing that is known, within 2^32 values per column key.
"""

from __future__ import annotations

import pyarrow as pa

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.scheme import Leak, Scheme

SCHEME = Scheme(
    name="sealed",
    representation="rnd",
    stored_as="AES-256-GCM per value, NULL included, text padded in 16-byte steps",
    spec="spec/sealed.md",
    ceiling="size",
    at_rest=Leak(
        "size",
        "sealed.rest",
        "the server knows how many values {column} of {table} has",
    ),
    lengths=Leak(
        "size",
        "sealed.lengths",
        "the server knows the length of each value of {column} in {table}, in steps of 16 bytes",
    ),
    operations={"read": Leak("access", "rows", "which rows a query reads")},
    broken_by="nothing known, within 2³² values per column key",
)


def seal(keys: KeyRing, table: Table, column: Column, values: pa.Array, rows: pa.Array) -> pa.Array:
    """Values as sealed BLOBs, each bound to its row number."""
    return keys.seal_column(table.id, column.id, column.generation, values, rows)


def open(  # noqa: A001 - the scheme's two verbs are seal and open
    keys: KeyRing,
    table: Table,
    column: Column,
    sealed: pa.Array,
    rows: pa.Array,
    type_: pa.DataType,
) -> pa.Array:
    """Undo `seal`; a value that was altered, or moved to another place, raises."""
    return keys.open_column(table.id, column.id, column.generation, sealed, rows, type_)
