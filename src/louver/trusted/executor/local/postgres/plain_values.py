"""Arrow as users get it: intervals as Arrow's, all else as it is."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from louver import errors

_INTERVAL = struct.Struct(">qii")
_NANOSECONDS = 1_000
_LIMIT = 1 << 63
#: PostgreSQL's infinite intervals, which Arrow has none of.
_INFINITE = ((_LIMIT - 1, 2**31 - 1, 2**31 - 1), (-_LIMIT, -(2**31), -(2**31)))


def plain(rows: pa.Table) -> pa.Table:
    """Rows in Arrow's own types as far as there are some."""
    arrays = [_plain(column) for column in rows.columns]
    return pa.Table.from_arrays(arrays, rows.column_names)


def data_frame(rows: pa.Table, values: Sequence[tuple[Any, ...]]) -> Any:
    """Rows as a DataFrame of pandas; ``values`` are their Python values."""
    frame = plain(rows).rename_columns([str(n) for n in range(rows.num_columns)]).to_pandas()
    for number, field in enumerate(rows.schema):
        if isinstance(field.type, pa.OpaqueType) and field.type.type_name != "interval":
            column = frame.iloc[:, number].astype(object)
            column[:] = [row[number] for row in values]
            frame[str(number)] = column
    return frame.set_axis(rows.column_names, axis="columns")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if not isinstance(type_, pa.OpaqueType) or type_.type_name != "interval":
        return column
    values = [
        None if value is None else _interval(value)
        for chunk in column.chunks
        for value in chunk.storage.to_pylist()
    ]
    return pa.chunked_array([pa.array(values, pa.month_day_nano_interval())])


def _interval(value: bytes) -> tuple[int, int, int]:
    us, days, months = _INTERVAL.unpack(value)
    nanoseconds = us * _NANOSECONDS
    if (us, days, months) in _INFINITE or not -_LIMIT <= nanoseconds < _LIMIT:
        raise errors.make("value.form")
    return months, days, nanoseconds
