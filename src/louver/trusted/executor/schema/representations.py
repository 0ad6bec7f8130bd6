"""Which representations a column has on the server: by its scheme, ceiling and type.

The sealed copy is always there. What a ceiling allows is added when the column is made, so that a
query finds it; layers stay closed until one needs them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from louver import errors
from louver.names import fold, quoted
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.local.engine import Binder
from louver.trusted.executor.schema.constraints import Known
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.levels import allows
from louver.trusted.vault.protection import FILES, Protection
from louver.trusted.vault.types import code_domain

BUCKET_BITS = 8
"""With buckets the order codes of a column tell so many bits of its domain."""


def letters() -> str:
    """First letters of the server's columns, h and w of the helpers of shares among them: plain
    columns are not named so.
    """
    used = {other.letter for row in scheme.rows() for other in row.representations}
    return "".join(sorted({*used, "h", "w"}))


def fit(
    column: Column, protection: Protection, known: Known, backend: Backend
) -> tuple[list[str], list[str]]:
    """Give a column in the catalog what it is to have and take what it is not.

    Returns the representations that are new, and the server's columns that are to be dropped.
    """
    if protection.scheme == FILES:
        # In the files of a lake a column is named by its id.
        column.stored = dict.fromkeys(scheme.held(column, protection), f"c{column.id}")
        return [], []
    column.nullable = known.nullable
    if not column.bits:
        domain = known.order_domain(column.type)
        column.low, column.bits = domain or (None, 0)
        numbers = code_domain(column.type) not in ("text", "double", "float", "uint64")
        if scheme.word(protection, "order") == "bucket" and numbers:
            column.coarse = max(column.bits - BUCKET_BITS, 0)
    required = scheme.using(protection.scheme)
    if required is not None and not backend.serves(required):
        raise errors.make(
            "engine.operation", engine=backend.name, operation=f"USING {protection.scheme}"
        )
    names = [
        name for name in scheme.held(column, protection) if backend.serves(scheme.scheme_of(name))
    ]
    gone = [column.stored.pop(name) for name in list(column.stored) if name not in names]
    fresh = [name for name in names if name not in column.stored]
    for name in fresh:
        column.stored[name] = pseudonym(scheme.representation(name).letter)
    settle_layers(column)
    return fresh, gone


def settle_layers(column: Column) -> None:
    """Every onion of a column starts closed."""
    names = [row.representations[0].name for row in scheme.onions()]
    states = {name: column.layers.get(name, "closed") for name in names}
    column.layers = {name: state for name, state in states.items() if name in column.stored}


def pack(table: Table, protections: Mapping[str, Protection], backend: Backend) -> None:
    """Give a new table its packed sums: several columns in one ciphertext a row. What is
    packed stays so for the table's life; a column that goes leaves its slot empty.
    """
    row = scheme.packing()
    if row is None or row.packs is None or not backend.serves(row):
        return
    ids = [
        column.id
        for column in table.columns
        if (protection := protections.get(fold(column.name))) is not None
        and row.packs.takes(column, protection)
    ]
    letter, most = row.representations[0].letter, row.packs.columns
    for start in range(0, len(ids), most):
        table.packs[pseudonym(letter)] = ids[start : start + most]


def tag(table: Table, keys: Sequence[Sequence[str]], backend: Backend) -> None:
    """Give a new table the tags of its keys, by which the server keeps them apart."""
    row = scheme.tagging()
    if row is None or not backend.unique or not may_tag(table):
        return
    for names in keys:
        columns = [table.column(name) for name in names]
        known = [c for c in columns if c is not None and code_domain(c.type) is not None]
        if len(known) == len(names):
            table.tags[pseudonym(row.representations[0].letter)] = [c.id for c in known]


def tag_of(table: Table, expressions: Sequence[str]) -> str:
    """The server's column of a key's tags; "" where the key is decided locally."""
    names = {column.id: quoted(column.name) for column in table.columns}
    wanted = list(expressions)
    return next((tag for tag, ids in table.tags.items() if [names[i] for i in ids] == wanted), "")


def may_tag(table: Table) -> bool:
    """Whether tags may tell that a row is written again: not where a column may not even show
    which rows a change is about, since then every row is rewritten to hide it.
    """
    row = scheme.tagging()
    return row is not None and all(
        allows(column.ceiling, row.ceiling) for column in table.columns if column.encrypted
    )


def pseudonym(letter: str) -> str:
    """A server column name that says nothing."""
    return f"{letter}_{secrets.token_hex(6)}"


def stored_type(column: Column, representation: str) -> str:
    """What a stored column is made of (`vault.stored_types`); a plain one is what was declared."""
    return scheme.representation(representation).type(column)


def columns_of(
    column: Column, backend: Backend, local: Binder, only: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """The stored columns with their types on the server."""
    return [
        (
            name,
            backend.plain_type(local.stored_as(column.type))
            if kind == "plain"
            else backend.stored_type(stored_type(column, kind)),
        )
        for kind, name in column.stored.items()
        if only is None or kind in only
    ]
