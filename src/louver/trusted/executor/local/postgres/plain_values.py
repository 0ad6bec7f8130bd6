"""Arrow as users get it: intervals as Arrow's, all else as it is."""

from __future__ import annotations

import struct

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
