"""Leaks: that a key comes back after its row was deleted, and which changes are about one key.
Answers: whether a PRIMARY KEY or UNIQUE constraint is kept, by the server's own unique index.
Stored as: UUID: a tag of 16 bytes per constraint, of all its columns together.
Spec: spec/key.md.
Broken by: reconstruction from many queries (Kellaris and others, CCS 2016), by which rows are met.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme_row import VOLUMES, Leak, Representation, Scheme
from louver.trusted.vault.stored_types import WIDE_CODE
from louver.trusted.vault.types import code_domain, code_width

_TAG_BYTES = 16
_AGAIN = Leak(
    "access",
    "key.rest",
    "the server can tell when a key of {table} comes back after its row was deleted or changed, and"
    " which changes are about the same key",
    VOLUMES,
)


def _applies(_column: Column, _protection: Protection) -> Sequence[str]:
    """Its tags belong to the table."""
    return ()


def _stored_type(_: Column) -> str:
    return WIDE_CODE


SCHEME = Scheme(
    name="key",
    stored_as="a keyed tag of 16 bytes per PRIMARY KEY or UNIQUE constraint, under a unique index",
    spec="spec/key.md",
    ceiling="access",
    at_rest=_AGAIN,
    lengths=None,
    operations={"PRIMARY KEY, UNIQUE": _AGAIN},
    broken_by=VOLUMES,
    representations=(Representation("key_tag", "k", _stored_type),),
    applies=_applies,
    answers={},
    tags=True,
)


def seal_table(
    keys: KeySource, table: Table, rows: pa.Table, _row_ids: pa.Array
) -> dict[str, pa.Array]:
    """The tags of some rows, by their names on the server."""
    return {
        stored: pa.ExtensionArray.from_storage(pa.uuid(), _hidden(part))
        for stored, part in tags(keys, table, rows).items()
    }


def tags(keys: KeySource, table: Table, rows: pa.Table) -> dict[str, pa.Array]:
    """The tags of some rows as bytes; NULL where a column of the key is NULL."""
    columns = {column.id: column for column in table.columns}
    results: dict[str, pa.Array] = {}
    for stored, ids in table.tags.items():
        label = f"key:{table.id}:{stored}"
        codes = [_codes(keys, f"{label}:value", columns[id_], rows) for id_ in ids]
        images = pc.binary_join_element_wise(*codes, b"")
        results[stored] = keys.keyring.eq_join_codes(label, "blob", images)
    return results


def row_of(keys: KeySource, table: Table, rows: pa.Table, tag: str) -> tuple[str, int] | None:
    """The server's column and the row whose tag a server has named; None if there is no such."""
    for stored, part in tags(keys, table, rows).items():
        position = pc.index(part, pa.scalar(uuid.UUID(tag).bytes, part.type)).as_py()
        if position >= 0:
            return stored, position
    return None


def _codes(keys: KeySource, label: str, column: Column, rows: pa.Table) -> pa.Array:
    """A column's equality codes as bytes of one length."""
    domain = code_domain(column.type) or ""
    values = rows.column(column.name).combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    codes = keys.keyring.eq_join_codes(label, domain, values)
    if code_width(domain) == _TAG_BYTES:
        return codes.cast(pa.binary())
    held = pa.Array.from_buffers(pa.binary(8), len(codes), codes.buffers(), codes.null_count)
    return held.cast(pa.binary())


def _hidden(part: pa.Array) -> pa.Array:
    """A key with a NULL is none: its tag is drawn, and looks like any other."""
    if not part.null_count:
        return part
    drawn = pa.array((secrets.token_bytes(_TAG_BYTES) for _ in range(len(part))), part.type)
    return pc.if_else(part.is_valid(), part, drawn)
