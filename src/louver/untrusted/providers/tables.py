"""Prepared tables as files: written once, mapped into memory, never changed.

A file is a version byte and a name, the length of its head (8 bytes, big endian), the head, then
the arrays, each at a multiple of 64 bytes. The head is the protocol, the encoded `Prepared`, and
the name, kind, offset and length of every array. A file that is inconsistent, or has another
digest, is not a table.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from louver import errors
from louver.untrusted.providers import preparing
from louver.wire import question_codec
from louver.wire.binary import Reader, malformed
from louver.wire.questions import Prepared, Protocol

VERSION = 1
_NAME = bytes((VERSION,)) + b"louver table\0\0\0"
_KINDS = ("<u1", "<u4", "<u8", "<i8")
_ALIGN_BYTES = 64
_MAX_SECTIONS = 1_024
_MAX_HEAD_BYTES = question_codec.MAX_PREPARED_BYTES + (1 << 20)

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A prepared table: its protocol, its description for clients, its arrays."""

    protocol: Protocol
    prepared: Prepared
    sections: dict[str, Array]

    def array(self, name: str) -> Array:
        """An array that every table of the protocol has."""
        return self.sections[name]


def write(path: Path, protocol: Protocol, prepared: Prepared, sections: preparing.Sections) -> None:
    """Write a complete file: it gets its name only when it is complete.

    Raises:
        errors.Error: `disk.full`.
    """
    arrays = {name: np.ascontiguousarray(sections[name]) for name in sorted(sections)}
    encoded = question_codec.encode(prepared)
    size = 1 + len(encoded) + 8 + sum(2 + len(name) + 17 for name in arrays)
    at = _aligned(len(_NAME) + 8 + size)
    number = bytes((tuple(Protocol).index(protocol),))
    head = [number, struct.pack(">I", len(encoded)), encoded, struct.pack(">I", len(arrays))]
    places: list[tuple[int, Array]] = []
    for name, array in arrays.items():
        kind = _KINDS.index(f"<{array.dtype.kind}{array.dtype.itemsize}")
        head.append(struct.pack(">H", len(name)) + name.encode())
        head.append(struct.pack(">BQQ", kind, at, array.nbytes))
        places.append((at, array))
        at = _aligned(at + array.nbytes)
    writing = path.with_name(f"writing-{os.getpid()}-{path.name}")
    try:
        with writing.open("wb") as file:
            file.write(_NAME + struct.pack(">Q", size) + b"".join(head))
            for position, array in places:
                file.seek(position)
                file.write(array.reshape(-1).view(np.uint8).data)
            file.truncate(at)
        os.replace(writing, path)
    except OSError as error:
        writing.unlink(missing_ok=True)
        raise errors.make("disk.full", place="the cache folder") from error


def read(path: Path, *, verify: bool) -> Table:
    """Map a file; with `verify`, its digest is computed again.

    Raises:
        errors.Error: `wire.format`, unless it was written by `write`.
        FileNotFoundError: it does not exist.
    """
    size = path.stat().st_size
    if size <= len(_NAME) + 8:
        raise malformed("a table that is cut short")
    data = np.memmap(path, np.uint8, "r")
    reader = Reader(data.data)
    if bytes(reader.take(len(_NAME))) != _NAME:
        raise malformed("a table of another version")
    head_bytes = struct.unpack(">Q", reader.take(8))[0]
    if head_bytes > _MAX_HEAD_BYTES:
        raise malformed("a table's head is too long")
    head = Reader(reader.take(head_bytes))
    protocol = head.byte()
    if protocol >= len(Protocol):
        raise malformed("a table of an unknown protocol")
    prepared = question_codec.decode(Prepared, head.take(_number(head)))
    count = _number(head)
    if count > _MAX_SECTIONS:
        raise malformed("a table of too many arrays")
    sections = dict(_section(head, data) for _ in range(count))
    head.end()
    if verify and preparing.digest(prepared, sections) != prepared.digest:
        raise malformed("a table of another digest")
    return Table(tuple(Protocol)[protocol], prepared, sections)


def _section(head: Reader, data: Array) -> tuple[str, Array]:
    name = bytes(head.take(struct.unpack(">H", head.take(2))[0])).decode("ascii", "replace")
    kind, at, length = struct.unpack(">BQQ", head.take(17))
    if kind >= len(_KINDS) or at % _ALIGN_BYTES or at + length > len(data):
        raise malformed("an array beyond its table")
    dtype = np.dtype(_KINDS[kind])
    if length % dtype.itemsize:
        raise malformed("an array that is cut short")
    # A plain view: the mapped file stays open as long as any array of it is used.
    return name, np.asarray(data[at : at + length]).view(dtype)


def _number(reader: Reader) -> int:
    number: int = struct.unpack(">I", reader.take(4))[0]
    return number


def _aligned(at: int) -> int:
    return -(-at // _ALIGN_BYTES) * _ALIGN_BYTES
