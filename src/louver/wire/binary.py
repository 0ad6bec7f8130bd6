"""Bytes from anywhere, read from front to back; what is cut short, or goes on, is no message."""

from __future__ import annotations

from louver import errors


def malformed(detail: str) -> errors.Error:
    """The error of bytes that are no message."""
    return errors.make("wire.format", detail=detail)


class Reader:
    """Takes a message apart without copying it."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, count: int) -> memoryview:
        """The next bytes; `wire.format` if there are fewer."""
        end = self._at + count
        if end > len(self._data):
            raise malformed("cut short")
        found = self._data[self._at : end]
        self._at = end
        return found

    def byte(self) -> int:
        """The next byte as a number."""
        return self.take(1)[0]

    def rest(self) -> memoryview:
        """All bytes up to the end."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Refuse what stands behind a message."""
        if self._at != len(self._data):
            raise malformed("bytes after its end")
