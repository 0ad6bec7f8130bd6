"""The only reader and writer of untrusted bytes: every length is checked before it is used.

Numbers are big endian. Malformed bytes raise a single error, which is passed to the reader:
`wire.format` for a message, `lake.format` for a file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from louver import errors

MAX_LONG = (1 << 63) - 1


def malformed(detail: str) -> errors.Error:
    """The error for bytes that are not a message."""
    return errors.make("wire.format", detail=detail)


def malformed_file(name: str, detail: str) -> errors.Error:
    """The error for a malformed file."""
    return errors.make("lake.format", path=name, detail=detail)


class Writer:
    """Collects numbers, bytes, and parts with a length prefix.

    Args:
        error: creates the error for text that is too long, or not Unicode, from a detail.
    """

    def __init__(self, error: Callable[[str], errors.Error] = malformed) -> None:
        self._error = error
        self._parts: list[bytes] = []

    def finish(self) -> bytes:
        """All bytes written."""
        return b"".join(self._parts)

    def raw(self, data: bytes | memoryview) -> None:
        """Bytes of a length that the reader knows."""
        self._parts.append(bytes(data))

    def byte(self, value: int) -> None:
        """A number of 1 byte."""
        self._parts.append(value.to_bytes(1, "big"))

    def word(self, value: int) -> None:
        """A number of 4 bytes."""
        self._parts.append(value.to_bytes(4, "big"))

    def long(self, value: int) -> None:
        """A number of 8 bytes."""
        self._parts.append(value.to_bytes(8, "big"))

    def signed(self, value: int) -> None:
        """A signed number of 8 bytes."""
        self._parts.append(value.to_bytes(8, "big", signed=True))

    def part(self, data: bytes | memoryview, limit: int, *, lead: int = 8) -> None:
        """At most ``limit`` bytes, prefixed by their number in ``lead`` bytes."""
        if len(data) > limit:
            raise self._error("a part is too long to be sent")
        self._parts.append(len(data).to_bytes(lead, "big"))
        self._parts.append(bytes(data))

    def text(self, value: str, limit: int = (1 << 32) - 1, *, lead: int = 4) -> None:
        """UTF-8 with a length prefix."""
        try:
            self.part(value.encode(), limit, lead=lead)
        except UnicodeEncodeError as error:
            raise self._error("text that is not Unicode") from error


class Reader:
    """Reads bytes from front to back without copying them.

    Args:
        data: untrusted bytes.
        error: creates the error for malformed bytes from a detail.
    """

    def __init__(
        self, data: bytes | memoryview, error: Callable[[str], errors.Error] = malformed
    ) -> None:
        self._data = memoryview(data)
        self._at = 0
        self.malformed = error

    @classmethod
    def of_file(cls, data: bytes | memoryview, name: str) -> Reader:
        """A reader of a file's bytes; errors name the file."""
        return cls(data, partial(malformed_file, name))

    def take(self, count: int) -> memoryview:
        """The next bytes."""
        end = self._at + count
        if end > len(self._data):
            raise self.malformed("it is cut short")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def raw(self, count: int) -> bytes:
        """A copy of the next bytes."""
        return bytes(self.take(count))

    def rest(self) -> memoryview:
        """All bytes up to the end."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Raise if any bytes are left."""
        if self._at != len(self._data):
            raise self.malformed("bytes follow its end")

    def number(self, size: int, limit: int, *, signed: bool = False) -> int:
        """A number of ``size`` bytes, at most ``limit``."""
        value = int.from_bytes(self.take(size), "big", signed=signed)
        if value > limit:
            raise self.malformed("a number is too large")
        return value

    def byte(self) -> int:
        """A number of 1 byte."""
        return self.take(1)[0]

    def word(self) -> int:
        """A number of 4 bytes."""
        return int.from_bytes(self.take(4), "big")

    def long(self, limit: int = MAX_LONG) -> int:
        """A number of 8 bytes, at most ``limit``."""
        return self.number(8, limit)

    def signed(self) -> int:
        """A signed number of 8 bytes."""
        return self.number(8, MAX_LONG, signed=True)

    def count(self, limit: int, *, lead: int = 4) -> int:
        """The number of parts that follow, at most ``limit``, in ``lead`` bytes."""
        count = int.from_bytes(self.take(lead), "big")
        if count > limit:
            raise self.malformed("it has more parts than allowed")
        return count

    def part(self, limit: int, *, lead: int = 8) -> memoryview:
        """A part with a length prefix, at most ``limit`` bytes."""
        length = int.from_bytes(self.take(lead), "big")
        if length > limit:
            raise self.malformed("a part is longer than allowed")
        return self.take(length)

    def text(self, limit: int, *, lead: int = 4) -> str:
        """UTF-8 with a length prefix, at most ``limit`` bytes."""
        try:
            return str(self.part(limit, lead=lead), "utf-8")
        except UnicodeDecodeError as error:
            raise self.malformed("a text is not UTF-8") from error
