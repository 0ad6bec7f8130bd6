"""Side files: Puffin containers of index segments, file lists and encrypted bounds.

Puffin is Iceberg's container for auxiliary data of a table: magic `PFA1`, blobs, a JSON footer that
lists them. Our blobs are never compressed (ciphertext does not shrink, and a sweep reads it in
place). Louver itself locates blobs by its root and never trusts the footer, which is for other
readers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from louver.wire.binary import malformed_file

INDEX = "louver-index-v1"
FILES = "louver-files-v1"
BOUNDS = "louver-bounds-v1"
MAX_FOOTER_BYTES = 64 << 20
MAX_BLOBS = 1 << 20

_MAGIC = b"PFA1"
_TAIL = struct.Struct("<I4s4s")


@dataclass(frozen=True, slots=True)
class Entry:
    """A blob that a footer lists."""

    kind: str
    offset: int
    length: int
    properties: dict[str, str] = field(default_factory=dict)


class Builder:
    """Collects blobs into a container; they begin at multiples of 64 bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = [_MAGIC]
        self._size = len(_MAGIC)
        self._entries: list[Entry] = []

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._size

    def add(self, kind: str, data: bytes, properties: dict[str, str] | None = None) -> int:
        """Add a blob; returns its offset."""
        gap = bytes(-self._size % 64)
        offset = self._size + len(gap)
        self._parts += [gap, data]
        self._size = offset + len(data)
        self._entries.append(Entry(kind, offset, len(data), properties or {}))
        return offset

    def finish(self) -> bytes:
        """The container."""
        blobs = [
            {
                "type": item.kind,
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": item.offset,
                "length": item.length,
                "properties": item.properties,
            }
            for item in self._entries
        ]
        footer = json.dumps({"blobs": blobs, "properties": {}}, separators=(",", ":")).encode()
        tail = _TAIL.pack(len(footer), bytes(4), _MAGIC)
        return b"".join([*self._parts, _MAGIC, footer, tail])


def encode(blobs: Iterable[tuple[str, bytes]]) -> bytes:
    """A container of blobs (kind, data)."""
    out = Builder()
    for kind, data in blobs:
        out.add(kind, data)
    return out.finish()


def decode(data: bytes | memoryview, name: str = "side file") -> list[Entry]:
    """The entries of a container's footer; `lake.format` for other bytes."""
    view = memoryview(data)
    least = 2 * len(_MAGIC) + _TAIL.size
    if len(view) < least or view[:4] != _MAGIC:
        raise malformed_file(name, "it is not a Puffin file")
    size, flags, magic = _TAIL.unpack(view[-_TAIL.size :])
    start = len(view) - _TAIL.size - size
    if magic != _MAGIC or size > MAX_FOOTER_BYTES or start < 8 or view[start - 4 : start] != _MAGIC:
        raise malformed_file(name, "its footer is missing")
    if flags != bytes(4):
        raise malformed_file(name, "its footer is compressed, which Louver never does")
    try:
        listed = json.loads(bytes(view[start : start + size]))["blobs"]
        if not isinstance(listed, list) or len(listed) > MAX_BLOBS:
            raise malformed_file(name, "its footer exceeds a limit")
        return [_entry(item, start - 4) for item in listed]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise malformed_file(name, "its footer cannot be read") from error


def _entry(item: dict[str, object], end: int) -> Entry:
    kind, offset, length = item["type"], item["offset"], item["length"]
    properties = item.get("properties") or {}
    if type(offset) is not int or type(length) is not int or not isinstance(kind, str):
        raise TypeError("blob")
    if not isinstance(properties, dict) or not 4 <= offset <= offset + length <= end:
        raise ValueError("blob")
    return Entry(kind, offset, length, {str(k): str(v) for k, v in properties.items()})
