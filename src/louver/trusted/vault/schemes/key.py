"""Leaks: that a key comes back after its row was deleted, and which changes are about one key.
Answers: whether a PRIMARY KEY or UNIQUE constraint is kept, by the server's own unique index;
= and IN over the columns of a key.
Stored as: UUID: a tag of 16 bytes per constraint, of all its columns together.
Spec: spec/key.md.
Broken by: reconstruction from many queries (Kellaris and others, CCS 2016), by which rows are met.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.vault import arrays
from louver.trusted.vault import native as compiled
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, among, in_domain, native
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.recipes import Step
from louver.trusted.vault.scheme_row import (
    FREQUENCY,
    VOLUMES,
    Answer,
    Leak,
    Representation,
    Scheme,
)
from louver.trusted.vault.stored_types import WIDE_CODE
from louver.trusted.vault.types import code_domain
from louver.wire.messages import Constant

_TAG_BYTES = 16
_ASKED = Leak(
    "access",
    "key.asked",
    "the server can tell which queries and changes ask for the same key of {table} ({column}),"
    " and which row has it",
    VOLUMES,
)
_AGAIN = Leak(
    "access",
    "key.rest",
    "the server can tell when a key of {table} comes back after its row was deleted or changed, and"
    " which changes are about the same key",
    VOLUMES,
)

_REFERS = Leak(
    "equality",
    "key.refers",
    "the server can tell which row of {target} a new row of {table} refers to by {column}, and so"
    " which rows refer to the same one",
    FREQUENCY,
)
# A row whose key has a NULL bears a tag that says nothing.
_LOOKED_UP = Answer(leak=_ASKED.name, hides_nulls=True)


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
    operations={
        "PRIMARY KEY, UNIQUE": _AGAIN,
        "A = u, A IN (…) of a key, AND of = over all of its columns": _ASKED,
        "REFERENCES": _REFERS,
    },
    broken_by=VOLUMES,
    representations=(Representation("key_tag", "k", _stored_type),),
    applies=_applies,
    answers={"=": _LOOKED_UP, "IN": _LOOKED_UP},
    tags=True,
)


def steps(table: Table, names: Collection[str]) -> list[Step]:
    """The tags of the keys of a table that have these columns alone."""
    columns = {column.id: column for column in table.columns}
    listed = []
    for stored, ids in table.tags.items():
        known = [columns[id_] for id_ in ids]
        if all(column.name in names for column in known):
            domains = [code_domain(column.type) or "" for column in known]
            step = compiled.module().recipe.tag_step(_label(table, stored), domains)
            listed.append(Step(step, tuple(column.name for column in known), (stored,)))
    return listed


def tags(keys: KeySource, table: Table, rows: pa.Table) -> dict[str, pa.Array]:
    """The tags of some rows as bytes, of the keys whose columns these have; NULL where a column of
    the key is NULL.
    """
    columns = {column.id: column for column in table.columns}
    results: dict[str, pa.Array] = {}
    for stored, ids in table.tags.items():
        if not {columns[id_].name for id_ in ids} <= set(rows.column_names):
            continue
        known = [columns[id_] for id_ in ids]
        values = [arrays.stored(rows.column(column.name)) for column in known]
        results[stored] = _tags(keys, table, stored, known, values)
    return results


def tag(keys: KeySource, table: Table, columns: Sequence[Column], values: Sequence[Exact]) -> str:
    """The tag of one key, whose columns are in the order of the constraint and have these values,
    as it is bound. Of a value that a column cannot hold it is drawn: no row has it.
    """
    arrays = [
        in_domain(value, code_domain(column.type) or "")
        for column, value in zip(columns, values, strict=True)
    ]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return str(uuid.UUID(bytes=secrets.token_bytes(_TAG_BYTES)))
    return str(native(_tags(keys, table, _stored(table, columns), columns, known)))


def matches(
    keys: KeySource,
    table: Table,
    columns: Sequence[Column],
    values: Sequence[pa.Array],
    constants: Sequence[Constant],
) -> pa.Array:
    """Whether rows have one of some tags; not where a column of the key is NULL."""
    return among(_tags(keys, table, _stored(table, columns), columns, values), constants)


def key_codes(keys: KeySource, table: Table, column: Column, values: pa.Array) -> pa.Array:
    """The tags of values of other columns, by which rows with these keys are asked for."""
    return _tags(keys, table, _stored(table, [column]), [column], [values])


def _stored(table: Table, columns: Sequence[Column]) -> str:
    """The server's column of the tags of a key."""
    wanted = [column.id for column in columns]
    return next(stored for stored, ids in table.tags.items() if ids == wanted)


def _tags(
    keys: KeySource,
    table: Table,
    stored: str,
    columns: Sequence[Column],
    values: Sequence[pa.Array],
) -> pa.Array:
    domains = [code_domain(column.type) or "" for column in columns]
    return keys.keyring.key_tags(_label(table, stored), domains, values)


def label_of(table: Table, columns: Sequence[Column]) -> str:
    """What the tags of a key are derived for."""
    return _label(table, _stored(table, columns))


def _label(table: Table, stored: str) -> str:
    return f"key:{table.id}:{stored}"


def row_of(keys: KeySource, table: Table, rows: pa.Table, tag: str) -> tuple[str, int] | None:
    """The server's column and the row whose tag a server has named; None if there is no such."""
    for stored, part in tags(keys, table, rows).items():
        position = pc.index(part, pa.scalar(uuid.UUID(tag).bytes, part.type)).as_py()
        if position >= 0:
            return stored, position
    return None
