"""Whole numbers as binary values of one width, most significant byte first, and back: how
PostgreSQL sends a type that its wire client leaves as bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from louver import errors


def numbers_of(array: pa.Array, width: int, form: str) -> pa.Array:
    """Binary values of one width, as the integers that they are.

    Raises:
        louver.errors.Error: `reply.format` for values of another width.
    """
    plain = array.fill_null(b"\0" * width)
    offset = plain.offset
    offsets = np.frombuffer(plain.buffers()[1], np.int32)[offset : offset + len(plain) + 1]
    data = np.frombuffer(plain.buffers()[2] or b"", np.uint8)
    data = data[offsets[0] : offsets[-1]] if len(plain) else data[:0]
    if len(data) != width * len(plain) or (np.diff(offsets) != width).any():
        raise errors.make("reply.format", detail="a value of another width than its type")
    numbers = np.ascontiguousarray(data).view(form).astype(form.replace(">", "="))
    return pa.array(numbers, mask=np.asarray(array.is_null()))


def bytes_of(array: pa.Array, form: str) -> pa.Array:
    """Integers as binary values of one width."""
    numbers = np.asarray(array.fill_null(0)).astype(form)
    width = numbers.dtype.itemsize
    whole = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(array), [None, pa.py_buffer(numbers.tobytes())]
    ).cast(pa.binary())
    empty = pa.nulls(len(array), pa.binary())
    import pyarrow.compute as pc

    return pc.if_else(array.is_valid(), whole, empty)
