"""Encoding of a catalog's text for storage: packed, padded, and checked field by field."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

from louver import errors

#: Large enough for half a million columns, but not for a decompression bomb.
MAX_PLAIN_BYTES, MAX_PACKED_BYTES = 512 << 20, 513 << 20
PAD_BYTES = 4096
_STORED = 0
#: Bytes of the longest bound: a sign and 39 digits.
_BOUND_LENGTH = 40


def fingerprint(text: bytes) -> str:
    """The fingerprint of a catalog's canonical text."""
    return hashlib.sha256(b"louver catalog\0" + text).hexdigest()


def pack(text: bytes) -> bytes:
    """Pad a catalog's text. It is not compressed: the compressed length would depend on the
    content, and would reveal bounds and names to anyone who sees it.
    """
    packed = zlib.compress(text, _STORED)
    return packed + bytes(-len(packed) % PAD_BYTES)


def unpack(data: bytes) -> bytes:
    """Undo `pack`; refuses other bytes and texts that are too large."""
    if len(data) > MAX_PACKED_BYTES:
        raise unreadable("too large")
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(data, MAX_PLAIN_BYTES)
    except zlib.error as error:
        raise unreadable("not compressed text") from error
    if not inflate.eof or inflate.unused_data.strip(b"\0"):
        raise unreadable("cut off or too large")
    return text


def spare_of(column: Any) -> int:
    """The difference between the longest possible bounds and those of an ENC column, in bytes."""
    length = len(json.dumps(column.minimum)) + len(json.dumps(column.maximum))
    return 2 * _BOUND_LENGTH + int(column.has_null) - length


def unreadable(detail: str) -> errors.Error:
    """The error for a text that is not a catalog."""
    return errors.make("catalog.format", place="this database", detail=detail)


#: The types that a field's annotation allows, checked when a catalog is read.
_ADMITTED: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "dict[str, str]": (dict,),
    "dict[str, Any]": (dict,),
    "list[list[int]]": (list,),
    "dict[str, list[int]]": (dict,),
    "list[str]": (list,),
}


def fields(item: Any) -> dict[str, Any]:
    """The fields of a dataclass with slots, by name."""
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def checked(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """The values, if each has its field's type; names are checked by the constructor."""
    fields = kind.__dataclass_fields__
    for name, value in values.items():
        admitted = _ADMITTED[fields[name].type]
        if not isinstance(value, admitted):
            raise TypeError(name)
        if isinstance(value, bool) and bool not in admitted:
            raise TypeError(name)
        if fields[name].type in ("dict[str, str]", "list[str]") and not _all_text(value):
            raise TypeError(name)
        if fields[name].type == "list[list[int]]" and not _all_runs(value):
            raise TypeError(name)
        if fields[name].type == "dict[str, list[int]]" and not _all_numbers(value):
            raise TypeError(name)
    return values


def _all_runs(entries: Any) -> bool:
    return all(isinstance(e, list) and [type(n) for n in e] == [int, int] for e in entries)


def _all_numbers(entries: Any) -> bool:
    return all(
        isinstance(name, str) and isinstance(ids, list) and all(type(n) is int for n in ids)
        for name, ids in entries.items()
    )


def _all_text(entries: Any) -> bool:
    listed = entries.values() if isinstance(entries, dict) else entries
    return all(isinstance(entry, str) for entry in listed)
