"""Leaks: the number of rows, the lengths of text in 16-byte steps, or of 1,024 texts together
compressed, which rows a query touches.
Answers: nothing on the server; read back and finished locally.
Stored as: BLOB: version, nonce, ciphertext, tag; bound to table, column, row and key.
Spec: spec/rnd.md, spec/tile.md.
Broken by: nothing that is known, within 2^32 values per column key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from louver.trusted.vault import native
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import FILES, Protection
from louver.trusted.vault.scheme_row import (
    BY_ROW,
    ROWS,
    VOLUMES,
    Leak,
    Representation,
    Scheme,
    in_bytes,
)


def _applies(_: Column, protection: Protection) -> Sequence[str]:
    return ("rnd",) if protection.encrypted and protection.scheme != FILES else ()


SCHEME = Scheme(
    name="rnd",
    stored_as="AES-256-GCM per value, NULL included, text padded; on DuckDB also 1,024 at a time",
    spec="spec/rnd.md",
    ceiling="size",
    at_rest=Leak(
        "size",
        "rnd.rest",
        "the server knows how many values {column} of {table} has",
    ),
    lengths=Leak(
        "size",
        "rnd.lengths",
        "the server knows the length of each value of {column} in {table}, in steps of 16 bytes, or"
        " of 1,024 compressed together",
        "guessing by length, where lengths differ much",
    ),
    widths=Leak(
        "size",
        "rnd.widths",
        "the server knows how many bits the numbers of {column} in {table} need, in steps of four",
        "guessing how large the largest one is",
    ),
    operations={
        "read whole": Leak(
            "size", "scan", "the server can tell that {column} of {table} was read whole"
        ),
        "read": ROWS,
        "UPDATE, DELETE": Leak(
            "access",
            "rows.write",
            "the server can tell which rows of {table} were changed or deleted ({column})",
            VOLUMES,
            counted=True,
        ),
        "SELECT FOR UPDATE, FOR SHARE": Leak(
            "access",
            "rows.lock",
            "the server can tell which rows of {table} were locked ({column})",
            VOLUMES,
            counted=True,
        ),
        "choosing the rows of another change": Leak(
            "access",
            "rows.chosen",
            "a change of {target} shows the server which rows were chosen by {column} of {table}",
            VOLUMES,
            counted=True,
        ),
        "a copy of chosen rows": Leak(
            "access",
            "rows.copied",
            "the server can tell which rows of {table} were copied, chosen by {column}",
            VOLUMES,
            counted=True,
        ),
        "so many rows written or removed": Leak(
            "size",
            "rows.counted",
            "the server can tell how many rows a change of {target} wrote or removed, which may"
            " depend on {column} of {table}",
            VOLUMES,
            counted=True,
        ),
        "writing its values into plain columns": Leak(
            "plaintext",
            "write.plain",
            "values of {column} of {table} may have been written into plain columns of {target}",
            "reading them",
        ),
        "SET ENC": Leak(
            "plaintext",
            "enc.set",
            "the server stored {column} of {table} in plain text until it was encrypted",
            "reading it",
        ),
        "DROP ENC": Leak(
            "plaintext",
            "enc.dropped",
            "the server stores {column} of {table} in plain text since its encryption was dropped",
            "reading it",
        ),
    },
    broken_by="nothing known, within 2³² values per column key",
    representations=(Representation("rnd", "e", in_bytes),),
    applies=_applies,
    answers={},
    reading=BY_ROW,
    former=("sealed",),
)


def step(table: Table, column: Column) -> Any:
    """Values as sealed BLOBs, each bound to its row id."""
    return native.module().recipe.sealed_step((table.id, column.id, column.generation))


def open(  # noqa: A001 - the scheme's two verbs are seal and open
    keys: KeySource,
    table: Table,
    column: Column,
    sealed: pa.Array,
    rows: pa.Array,
    type_: pa.DataType,
) -> pa.Array:
    """Undo `step`; a value that was altered, or moved to another place, raises."""
    identity = (table.id, column.id, column.generation)
    return keys.keyring.open_column(*identity, sealed, rows, type_)
