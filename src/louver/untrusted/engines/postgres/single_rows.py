"""Rows that are inserted one by one: with arrays in them, and what is sent as its text.

An array of arrays is another array, so `unnest` gives no column of arrays. A value that is one
array of known elements is bound by itself instead; rows with any other value go by COPY.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from louver.names import quoted
from louver.untrusted.engines.postgres import values

MOST_ROWS = 16
"""Rows that are inserted so; more go by COPY."""
_HEAD, _DIMENSION, _LENGTH = struct.Struct(">iii"), struct.Struct(">ii"), struct.Struct(">i")
_NULL = -1
_TEXTS = frozenset((19, 25, 1042, 1043))
#: Types whose binary form is their text, behind so many bytes.
_WRITTEN = {114: 0, 142: 0, 4072: 1}


def insertions(table: str, rows: pa.Table) -> list[tuple[str, Sequence[Any]]] | None:
    """INSERT of each of some rows; None where a value cannot be bound. All have one text."""
    sent = [values.sent(column) for column in rows.columns]
    unnested = [position for position, item in enumerate(sent) if item[1] in values.BOUND]
    order = [*unnested, *(position for position in range(len(sent)) if position not in unnested)]
    numbers = {position: number for number, position in enumerate(order, 1)}
    arrays = ", ".join(f"${numbers[position]}::{sent[position][2]}[]" for position in unnested)
    items = ", ".join(
        f"r.c{position}" if position in unnested else f"${numbers[position]}::{sent[position][2]}"
        for position in range(len(sent))
    )
    named = ", ".join(f"c{position}" for position in unnested)
    sql = (
        f"INSERT INTO {table} ({', '.join(map(quoted, rows.column_names))})"
        f" SELECT {items} FROM unnest({arrays}) AS r({named})"
    )
    steps: list[tuple[str, Sequence[Any]]] = []
    for row in range(rows.num_rows):
        bound: list[Any] = []
        for position in order:
            array, number, _ = sent[position]
            if position in unnested:
                bound.append((array.slice(row, 1), number))
                continue
            value = array[row].as_py()
            cell = None if value is None else _cell(value, number)
            if value is not None and cell is None:
                return None
            bound.append(cell)
        steps.append((sql, bound))
    return steps


def _cell(value: bytes, number: int) -> Any:
    """A value as it is bound; None where it cannot be."""
    if number in _WRITTEN:
        return value[_WRITTEN[number] :].decode(), number
    if len(value) < _HEAD.size or number not in values.ARRAYS:
        return None
    dimensions, _, element = _HEAD.unpack_from(value)
    if element != values.ARRAYS[number] or dimensions not in (0, 1):
        return None
    items: list[bytes | None] = []
    if dimensions:
        count, first = _DIMENSION.unpack_from(value, _HEAD.size)
        if first != 1:
            return None
        at = _HEAD.size + _DIMENSION.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(value, at)
            at += _LENGTH.size
            items.append(None if length == _NULL else value[at : at + length])
            at += max(length, 0)
    if element in _TEXTS:
        return pa.array([i if i is None else i.decode() for i in items], pa.string()), element
    return pa.array(items, pa.binary()), element
