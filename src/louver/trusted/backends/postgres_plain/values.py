"""Values whose form differs: intervals, which the server sends in a binary form of its own, and
moments with a time zone, which it takes as those without.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LOCAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])
_SERVER = np.dtype([("us", ">i8"), ("days", ">i4"), ("months", ">i4")])
_NS_PER_US = 1000


def received(rows: pa.Table, types: Sequence[str]) -> pa.Table:
    """Rows of the server as the local engine reads them, by the local types of their columns."""
    columns = [
        pa.chunked_array(
            [_interval(chunk) for chunk in column.chunks], pa.month_day_nano_interval()
        )
        if type_ == "INTERVAL"
        else column
        for column, type_ in zip(rows.columns, types, strict=True)
    ]
    return pa.table(columns, rows.column_names)


def sent(rows: pa.Table) -> pa.Table:
    """Rows of the local engine as they are copied to the server."""
    return pa.table([_sent(column) for column in rows.columns], rows.column_names)


def _sent(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us"))
    if column.type == pa.month_day_nano_interval():
        return pa.chunked_array([_interval_bytes(chunk) for chunk in column.chunks], pa.binary())
    return column


def _interval(array: pa.Array) -> pa.Array:
    """Intervals of the server's binary form."""
    size = len(array)
    filled = pc.fill_null(array, bytes(_SERVER.itemsize)).cast(pa.binary(_SERVER.itemsize))
    parts = np.frombuffer(filled.buffers()[1], _SERVER)[filled.offset :][:size]
    local = np.empty(size, _LOCAL)
    local["ns"] = parts["us"] * _NS_PER_US
    local["days"], local["months"] = parts["days"], parts["months"]
    valid = pc.is_valid(array).buffers()[1] if array.null_count else None
    buffers = [valid, pa.py_buffer(local.tobytes())]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), size, buffers)


def _interval_bytes(array: pa.Array) -> pa.Array:
    size = len(array)
    parts = np.frombuffer(array.buffers()[1], _LOCAL)[array.offset :][:size]
    server = np.empty(size, _SERVER)
    server["us"] = parts["ns"] // _NS_PER_US
    server["days"], server["months"] = parts["days"], parts["months"]
    valid = pc.is_valid(array).buffers()[1] if array.null_count else None
    buffers = [valid, pa.py_buffer(server.tobytes())]
    return pa.Array.from_buffers(pa.binary(_SERVER.itemsize), size, buffers).cast(pa.binary())
