"""Stand-ins for the compiled index, while it is being made."""

from __future__ import annotations

import os
import struct

HEAD = struct.Struct("<4sB8s16s12sI3s")


def segment(index_id: bytes, hits: list[int], count: int) -> bytes:
    """A segment that every token of its index hits at the given ordinals."""
    bits = sum(1 << hit for hit in hits)
    head = HEAD.pack(b"LVSG", 1, bytes(8), index_id, os.urandom(12), count, bytes(3))
    return head + bits.to_bytes(-(-count // 8), "little")


def token(index_id: bytes, salt: bytes = b"") -> bytes:
    return struct.pack("<4sB8s16s3s", b"LVTK", 1, bytes(8), index_id, bytes(3)) + salt


def segment_header(data):
    magic, _, spec, index_id, segment_id, count, _ = HEAD.unpack_from(data)
    if magic != b"LVSG":
        raise ValueError("no segment")
    return {"index_id": index_id, "segment_id": segment_id, "n": count, "spec": spec}


def token_header(data):
    if data[:4] != b"LVTK":
        raise ValueError("no token")
    return {"index_id": data[13:29]}


def sweep(data, token):
    return bytes(data[HEAD.size :])
