"""The keys of a table of results as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from louver import errors
from louver.untrusted.providers.expressions import refused
from louver.untrusted.providers.queries import Base
from louver.untrusted.providers.sandbox import Work, listed
from louver.wire import keycode, ordinals
from louver.wire.keycode import Column, Index
from louver.wire.ordinals import Words
from louver.wire.questions import KeyCodes


@dataclass(frozen=True, slots=True)
class Keys:
    """How keys become points; the point and the fingerprint of each row."""

    codes: KeyCodes
    points: Words
    marks: Words


def key_columns(base: Base) -> list[str]:
    """Columns of the condition; a constant one if there are none."""
    return base.keys or ["0 AS none"]


def keys(
    work: Work,
    base: Base,
    rows: pa.Table,
    *,
    most: int,
    spare: bool = False,
    buckets: bool = False,
) -> Keys:
    """The points of the rows of a table.

    Args:
        work: computes texts.
        base: the types of its columns.
        rows: its columns of the condition, row by row.
        most: the widest point that the protocol supports.
        spare: see `keycode.hash_bits`.
        buckets: whether several keys may share a point.

    Raises:
        errors.Error: `provider.wide`, `provider.refused`.
    """
    names = base.keys
    equal_names = names[:-1] if base.shape.interval else names
    interval = _bounded(rows, base, names[-1], most) if base.shape.interval else None
    distinct, index = _distinct(rows, equal_names)
    count = distinct.num_rows if equal_names else 1
    for texts in (False, True):
        equal = _equal(work, base, distinct, texts)
        try:
            if buckets:
                codes = keycode.choose_buckets(equal, distinct=count, most=most)
            else:
                codes = keycode.choose(equal, interval, distinct=count, most=most, spare=spare)
        except keycode.TextsNeeded:
            continue
        return Keys(codes, *keycode.encode(codes, equal, interval, rows.num_rows, index))
    raise errors.make("internal", detail="texts are required again")


def _distinct(rows: pa.Table, names: Sequence[str]) -> tuple[pa.Table, Index]:
    """The distinct combinations of some columns, and the number of each row's combination."""
    numbers = np.zeros(rows.num_rows, np.int64)
    total = 1
    for name in names:
        column = ordinals.whole(rows[name]).dictionary_encode()
        size = max(1, len(column.dictionary))
        if total * size >= 1 << 62:
            _, numbers = np.unique(numbers, return_inverse=True)
            total = int(numbers.max(initial=0)) + 1
        numbers = numbers * size + column.indices.to_numpy().astype(np.int64)
        total *= size
    _, first, index = np.unique(numbers, return_index=True, return_inverse=True)
    return rows.select(list(names)).take(pa.array(first)), index


def _equal(work: Work, base: Base, distinct: pa.Table, texts: bool) -> list[Column]:
    written: dict[str, pa.Array] = {}
    names = distinct.column_names
    if texts:
        work.keep("louver_distinct", distinct)
        chosen = [f"{keycode.text_sql(name, base.types[name])} AS {name}" for name in names]
        table = work.table(f"SELECT {listed(chosen)} FROM louver_distinct")
        written = {name: ordinals.whole(table[name]) for name in names}
    return [_column(base.types[name], distinct[name], written.get(name)) for name in names]


def _column(kind: str, values: pa.ChunkedArray, texts: pa.Array | None) -> Column:
    encoded = ordinals.units(values, kind) if ordinals.has_units(kind) else None
    return Column(kind, encoded, texts)


def _bounded(rows: pa.Table, base: Base, name: str, most: int) -> Column:
    kind, length = base.types[name], 0
    if kind == "VARCHAR":
        ends, _ = ordinals.text_parts(ordinals.whole(rows[name]))
        length = int(np.diff(ends).max()) if len(ends) > 1 else 0
        if length > ordinals.MAX_TEXT_BYTES:
            raise keycode.too_wide(8 * length, most)
    try:
        return Column(kind, ordinals.units(rows[name], kind, length), length=length)
    except ValueError as error:
        raise refused("it bounds texts with zero bytes") from error
