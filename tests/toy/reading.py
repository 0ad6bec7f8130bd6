"""Leaks: the number of rows and the length of each value, and which rows a query touches.
Answers: nothing on the server; read back and finished locally.
Stored as: BLOB: the value's JSON under a pad of its row, and a keyed hash of both.
Spec: this file.
Broken by: nothing that is known while no row number is used twice.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence

import pyarrow as pa

from louver import errors
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import BY_ROW, ROWS, Leak, Representation, Scheme, in_bytes

_TAG_BYTES = 16


def _applies(_: Column, protection: Protection) -> Sequence[str]:
    return ("toyread",) if protection.scheme == "toyread" else ()


SCHEME = Scheme(
    name="toyread",
    stored_as="the value's JSON under a pad of its row, and a keyed hash",
    spec="tests/toy/reading.py",
    ceiling="size",
    at_rest=Leak(
        "size", "toyread.rest", "the server knows how many padded values {column} of {table} has"
    ),
    lengths=Leak(
        "size",
        "toyread.lengths",
        "the server knows how many bytes each value of {column} in {table} takes",
        "guessing by length, where lengths differ much",
    ),
    operations={"read": ROWS},
    broken_by="nothing known while no row number is used twice",
    representations=(Representation("toyread", "y", in_bytes),),
    applies=_applies,
    answers={},
    using=True,
    takes=lambda type_: type_ in ("SMALLINT", "INTEGER", "BIGINT", "VARCHAR"),
    reading=BY_ROW,
)


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """Every value under the pad of its row, NULL among them."""
    pairs = zip(values.to_pylist(), row_ids.to_pylist(), strict=True)
    sealed = [_sealed(keys, table, column, value, row) for value, row in pairs]
    return {"toyread": pa.array(sealed, pa.binary())}


def open(  # noqa: A001 - the scheme's two verbs are seal and open
    keys: KeySource,
    table: Table,
    column: Column,
    sealed: pa.Array,
    rows: pa.Array,
    type_: pa.DataType,
) -> pa.Array:
    """Undo `seal`; a value that was altered, or moved to another place, raises."""
    values = []
    for data, row in zip(sealed.to_pylist(), rows.to_pylist(), strict=True):
        tag, body = (data or b"")[:_TAG_BYTES], (data or b"")[_TAG_BYTES:]
        if not hmac.compare_digest(tag, _tag(keys, table, column, row, body)):
            raise errors.VerificationError(detail=f"row {row}")
        values.append(json.loads(_padded(keys, table, column, row, body)))
    return pa.array(values, type_)


def _sealed(keys: KeySource, table: Table, column: Column, value: object, row: int) -> bytes:
    body = _padded(keys, table, column, row, json.dumps(value).encode())
    return _tag(keys, table, column, row, body) + body


def _padded(keys: KeySource, table: Table, column: Column, row: int, body: bytes) -> bytes:
    blocks = (_mac(keys, table, column, f"pad {row} {number}") for number in range(len(body)))
    return bytes(byte ^ block[0] for byte, block in zip(body, blocks, strict=True))


def _tag(keys: KeySource, table: Table, column: Column, row: int, body: bytes) -> bytes:
    return _mac(keys, table, column, f"tag {row} {body.hex()}")[:_TAG_BYTES]


def _mac(keys: KeySource, table: Table, column: Column, label: str) -> bytes:
    context = f"{table.id}.{column.id}.{column.generation} {label}"
    return keys.keyring.mac("toyread", context.encode())
