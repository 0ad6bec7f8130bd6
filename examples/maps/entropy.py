"""A binary range coder with adaptive odds, as in LZMA: for the shape of a region's streets."""

from __future__ import annotations

#: Odds are of so many bits, and move by 1 / 2**RATE of their distance to what came.
ODDS_BITS, RATE = 12, 5
#: Below this the range is widened by a byte.
LOW = 1 << 24
MASK = (1 << 32) - 1


class Odds:
    """How likely a zero is in each situation; situations are named by whole numbers."""

    def __init__(self) -> None:
        self.zero: dict[int, int] = {}

    def of(self, situation: int) -> int:
        """The odds of a zero, of 2**ODDS_BITS."""
        return self.zero.get(situation, 1 << (ODDS_BITS - 1))

    def learn(self, situation: int, bit: int) -> None:
        """A bit has come."""
        now = self.of(situation)
        now += -(now >> RATE) if bit else ((1 << ODDS_BITS) - now) >> RATE
        self.zero[situation] = now


class Encoder:
    """Turns bits into bytes."""

    def __init__(self) -> None:
        self._odds = Odds()
        self._low, self._range = 0, MASK
        self._whole = 0
        self._count = 0

    def bit(self, situation: int, bit: int) -> None:
        """One bit in a situation."""
        bound = (self._range >> ODDS_BITS) * self._odds.of(situation)
        if bit:
            self._low += bound
            self._range -= bound
        else:
            self._range = bound
        self._odds.learn(situation, bit)
        while self._range < LOW:
            self._range <<= 8
            self._low <<= 8
            self._count += 1

    def number(self, situation: int, value: int) -> None:
        """A number of at least 0: how many bits it plus 1 has, by ones and a zero; then those."""
        length = (value + 1).bit_length() - 1
        for step in range(length):
            self.bit(situation + step, 1)
        self.bit(situation + length, 0)
        for place in range(length - 1, -1, -1):
            near = 64 + length if place == length - 1 else 128
            self.bit(situation + near, (value + 1) >> place & 1)

    def bytes(self) -> bytes:
        """All that was written. `low` is one long number, so that carries need no care."""
        return (self._low >> 0).to_bytes(self._count + 4, "big")


class Decoder:
    """Takes back what an `Encoder` wrote; what follows the end reads as zeros."""

    def __init__(self, data: bytes) -> None:
        self._odds = Odds()
        self._data, self._at = data, 4
        self._code = int.from_bytes(data[:4].ljust(4, b"\0"), "big")
        self._range = MASK

    def bit(self, situation: int) -> int:
        """One bit in a situation."""
        zero = self._odds.of(situation)
        bound = (self._range >> ODDS_BITS) * zero
        if self._code >= bound:
            self._code -= bound
            self._range -= bound
            bit = 1
        else:
            self._range = bound
            bit = 0
        self._odds.learn(situation, bit)
        while self._range < LOW:
            self._range <<= 8
            byte = self._data[self._at] if self._at < len(self._data) else 0
            self._code = self._code << 8 | byte
            self._at += 1
        return bit

    def number(self, situation: int) -> int:
        """A number; ValueError where it has more than 32 bits."""
        length = 0
        while self.bit(situation + length):
            length += 1
            if length > 32:
                raise ValueError("a record of the map holds a number that is too large")
        value = 1
        for place in range(length - 1, -1, -1):
            near = 64 + length if place == length - 1 else 128
            value = value << 1 | self.bit(situation + near)
        return value - 1
