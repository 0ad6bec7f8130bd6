"""Which opened rows a condition on their columns may be true of, decided by the local engine.

A condition is true of a row by its values alone. So where many rows have the same values of the
columns, an engine that rows have to be sent to is given each combination once, and its decision
counts for all rows that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.vault.arrays import unwrapped, wrapped

#: Of fewer rows each is given to the engine.
_MANY_ROWS = 2_048
#: Where the first rows have more combinations than this share of them, all rows will.
_MOST_SHARE = 0.5
#: Types of which equal values are the same to every condition; 0.0 and -0.0 are not.
_EXACT: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal128, pa.types.is_date32,
    pa.types.is_timestamp, pa.types.is_string, pa.types.is_binary, pa.types.is_fixed_size_binary,
)  # fmt: skip


def passing(
    local: LocalEngine,
    alias: str,
    columns: Sequence[tuple[str, str]],
    rows: pa.Table,
    condition: str,
) -> pa.Table:
    """The rows that a condition may be true of, in their order (see `decided`)."""
    passed = decided(local, alias, columns, rows, condition)
    return rows if passed is None else rows.filter(passed)


def decided(
    local: LocalEngine,
    alias: str,
    columns: Sequence[tuple[str, str]],
    rows: pa.Table,
    condition: str,
) -> pa.Array | None:
    """Of each row whether a condition may be true of it; None of all of them where it fails, for
    the user's own text says what is wrong then. ``columns`` are the names and types of those that
    the condition, which calls their table ``alias``, may be on.
    """
    if not rows.num_rows:
        return None
    names = [name for name, _ in columns]
    # To tell rows apart takes DuckDB's threads longer than to decide them.
    combined = _combined(rows.select(names)) if local.dialect.reads_off else None
    given = rows.select(names) if combined is None else combined[0]
    given = given.append_column(ROW_ID, pa.arange(0, given.num_rows))
    sql = f"SELECT {ROW_ID} FROM {alias} WHERE {condition}"
    try:
        chosen = local.finish_over(alias, [*columns, (ROW_ID, "BIGINT")], given, sql)
    except (errors.Error, pa.ArrowException):
        return None
    places = chosen.column(0).combine_chunks()
    if combined is not None:
        return pc.is_in(combined[1], value_set=places)
    passed = np.zeros(rows.num_rows, bool)
    passed[places.to_numpy()] = True
    return pa.array(passed)


def _combined(rows: pa.Table) -> tuple[pa.Table, pa.Array] | None:
    """Each combination of values once, and of every row the place of its own; None where these are
    not fewer by far.
    """
    if rows.num_rows < _MANY_ROWS or not rows.num_columns:
        return None
    columns = [unwrapped(column.combine_chunks()) for column in rows.columns]
    if not all(any(is_one(column.type) for is_one in _EXACT) for column in columns):
        return None
    # The first rows tell quickly where it is not worth looking at all of them.
    if _places([column.slice(0, _MANY_ROWS) for column in columns]) is None:
        return None
    known = _places(columns)
    if known is None:
        return None
    firsts, places = known
    fields = zip(columns, rows.schema, strict=True)
    arrays = [wrapped(column.take(firsts), field.type) for column, field in fields]
    return pa.table(arrays, names=rows.column_names), places


def _places(columns: Sequence[pa.Array]) -> tuple[pa.Array, pa.Array] | None:
    """Of each combination the first row that has it, and of every row the place of its own."""
    count = len(columns[0])
    places: Any = None
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        width = len(encoded.dictionary)
        if width > count * _MOST_SHARE:
            return None
        indices = encoded.indices.cast(pa.int64())
        if places is not None:
            # Both are below the number of rows, so the product is below 2^63.
            both = pc.add(pc.multiply(places, pa.scalar(width, pa.int64())), indices)
            encoded = both.dictionary_encode()
            if len(encoded.dictionary) > count * _MOST_SHARE:
                return None
            indices = encoded.indices.cast(pa.int64())
        places = indices
    rows = pa.table({"place": places, "row": pa.array(range(count), pa.int64())})
    firsts = rows.group_by("place").aggregate([("row", "min")]).sort_by("place")
    return firsts.column("row_min").combine_chunks(), places
