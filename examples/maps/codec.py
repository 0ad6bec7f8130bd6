"""Whole numbers in few bits: what the rows of both tables are made of.

A list of numbers is packed with one width for all: a number that does not fit below the
width's largest value follows as that value and then in the list's full width. Both widths are
chosen for the list. A ``Reader`` takes lists back; bytes that end early raise ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from examples.maps.graph import Ints

#: Bits of a list's head: its length, its width and its full width.
LENGTH_BITS, WIDTH_BITS = 16, 6


class Writer:
    """Bits, the first at the top of the first byte."""

    def __init__(self) -> None:
        self._text: list[str] = []

    def number(self, value: int, bits: int) -> None:
        """One number in so many bits; it has to fit."""
        if value < 0 or value >> bits:
            raise ValueError(f"{value} is not a number of {bits} bits")
        self._text.append(f"{value:0{bits}b}" if bits else "")

    def numbers(self, values: Ints | list[int]) -> None:
        """A list of numbers of at least 0, at most 65,535 of them."""
        array = np.asarray(values, np.int64)
        self.number(len(array), LENGTH_BITS)
        if not len(array):
            return
        full = max(1, int(array.max()).bit_length())
        lengths = np.bincount([int(v).bit_length() for v in (array + 1).tolist()], minlength=65)
        costs = [
            (w * len(array) + full * int(lengths[w + 1 :].sum()), w) for w in range(1, full + 1)
        ]
        width = min(costs)[1]
        self.number(width, WIDTH_BITS)
        self.number(full, WIDTH_BITS)
        top = (1 << width) - 1
        short, long = f"0{width}b", f"0{full}b"
        mark = format(top, short)
        self._text.extend(
            format(v, short) if v < top else mark + format(v, long) for v in array.tolist()
        )

    def bytes(self) -> bytes:
        """All that was written, with zeros up to a whole byte."""
        text = "".join(self._text)
        count = -(-len(text) // 8)
        return int(text.ljust(8 * count, "0") or "0", 2).to_bytes(count, "big")


class Reader:
    """Takes back what a `Writer` wrote."""

    def __init__(self, data: bytes) -> None:
        self._text = bin(int.from_bytes(b"\x01" + data, "big"))[3:]
        self._at = 0

    def number(self, bits: int) -> int:
        """One number of so many bits."""
        end = self._at + bits
        if end > len(self._text):
            raise ValueError("a record of the map ends early")
        value = int(self._text[self._at : end] or "0", 2)
        self._at = end
        return value

    def whole(self) -> int:
        """How many bytes have been begun."""
        return -(-self._at // 8)

    def numbers(self) -> list[int]:
        """A list of numbers."""
        count = self.number(LENGTH_BITS)
        if not count:
            return []
        width, full = self.number(WIDTH_BITS), self.number(WIDTH_BITS)
        top = (1 << width) - 1
        out = []
        for _ in range(count):
            value = self.number(width)
            out.append(self.number(full) if value == top else value)
        return out


def put_varint(out: bytearray, value: int) -> None:
    """A number of at least 0 in bytes of seven bits, the lowest first."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def varints(data: bytes) -> Iterable[int]:
    """The numbers in `data`; one that is cut or longer than nine bytes raises ValueError."""
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0
        elif shift > 62:
            raise ValueError("a number of the map is too long")
    if shift:
        raise ValueError("a record of the map ends early")
