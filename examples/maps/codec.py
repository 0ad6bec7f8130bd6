"""Whole numbers of at least 0 in few bytes: what the rows of both tables are made of."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator

import numpy as np

from examples.maps.graph import Floats, Ints

#: Without the container's head and sums, for records are short; the odds of a byte depend on
#: whether the byte before goes on.
FILTERS = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16, "lc": 1, "lp": 0, "pb": 0}]
#: No record is longer when unpacked.
MOST_BYTES = 1 << 20
#: No number has more bits, so that lengths stay exact.
MOST_BITS = 49


def put_varint(out: bytearray, value: int) -> None:
    """A number in bytes of seven bits, the lowest first."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def varints(data: bytes) -> Iterator[int]:
    """The numbers in `data`; one that is cut or has more than 49 bits raises ValueError."""
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0
        elif shift >= MOST_BITS:
            raise ValueError("a number of the map is too long")
    if shift:
        raise ValueError("a record of the map ends early")


def pack(lists: Iterable[Ints | Floats | list[int]]) -> bytes:
    """Lists of numbers."""
    out = bytearray()
    for numbers in lists:
        put_varint(out, len(numbers))
        for number in np.asarray(numbers, np.int64).tolist():
            put_varint(out, number)
    return lzma.compress(bytes(out), lzma.FORMAT_RAW, filters=FILTERS)


def unpack(data: bytes, count: int) -> list[Ints]:
    """The reverse, of so many lists; ValueError where the bytes are something else."""
    try:
        reader = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=FILTERS)
        numbers = np.array(list(varints(reader.decompress(data, MOST_BYTES))), np.int64)
    except (lzma.LZMAError, EOFError) as broken:
        raise ValueError("a record of the map is not packed as it should be") from broken
    lists, at = [], 0
    while at < len(numbers):
        end = at + 1 + int(numbers[at])
        lists.append(numbers[at + 1 : end])
        at = end
    if at != len(numbers) or len(lists) != count or not reader.eof:
        raise ValueError("a record of the map ends early")
    return lists
