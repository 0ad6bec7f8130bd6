"""Reading and writing the small binary files of a lake: every length is checked before use.

What is read here may have been written by anybody. Bytes either are what they should be, or raise
`lake.format`.
"""

from __future__ import annotations

import struct

from louver import errors


class Writer:
    """Collects big-endian numbers and parts led by their length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def finish(self) -> bytes:
        """All that was put."""
        return b"".join(self._parts)

    def raw(self, data: bytes) -> None:
        """Bytes of a length that the reader knows."""
        self._parts.append(data)

    def byte(self, value: int) -> None:
        """A number of 1 byte."""
        self._parts.append(bytes((value,)))

    def word(self, value: int) -> None:
        """A number of 4 bytes."""
        self._parts.append(struct.pack(">I", value))

    def long(self, value: int) -> None:
        """A number of 8 bytes."""
        self._parts.append(struct.pack(">Q", value))

    def signed(self, value: int) -> None:
        """A signed number of 8 bytes."""
        self._parts.append(struct.pack(">q", value))

    def text(self, value: str) -> None:
        """Text led by its length in 4 bytes."""
        data = value.encode()
        self.word(len(data))
        self.raw(data)


class Reader:
    """Takes apart what `Writer` wrote; `name` is the file's, for errors."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        self._data = memoryview(data)
        self._at = 0
        self._name = name

    def malformed(self, detail: str) -> errors.Error:
        """The error to raise about this file."""
        return malformed(self._name, detail)

    def take(self, count: int) -> memoryview:
        """The next bytes."""
        end = self._at + count
        if end > len(self._data):
            raise self.malformed("it is cut short")
        found = self._data[self._at : end]
        self._at = end
        return found

    def raw(self, count: int) -> bytes:
        """A copy of the next bytes."""
        return bytes(self.take(count))

    def end(self) -> None:
        """Raise if anything is left."""
        if self._at != len(self._data):
            raise self.malformed("bytes stand after its end")

    def byte(self) -> int:
        """A number of 1 byte."""
        return self.take(1)[0]

    def word(self) -> int:
        """A number of 4 bytes."""
        return int.from_bytes(self.take(4), "big")

    def long(self, limit: int = (1 << 63) - 1) -> int:
        """A number of 8 bytes, at most `limit`."""
        found = int.from_bytes(self.take(8), "big")
        if found > limit:
            raise self.malformed("a number is too large")
        return found

    def signed(self) -> int:
        """A signed number of 8 bytes."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def count(self, limit: int) -> int:
        """A number of 4 bytes, at most `limit`."""
        found = self.word()
        if found > limit:
            raise self.malformed("it lists more than is allowed")
        return found

    def text(self, limit: int) -> str:
        """Text led by its length, at most `limit` bytes."""
        try:
            return str(self.take(self.count(limit)), "utf-8")
        except UnicodeDecodeError as error:
            raise self.malformed("a text is not UTF-8") from error


def malformed(name: str, detail: str) -> errors.Error:
    """The error of a file that is not what it should be."""
    return errors.make("lake.format", path=name, detail=detail)
