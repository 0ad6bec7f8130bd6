"""Sweep: which files of a segment match a token (spec/eds.md). Done in Rust, without any key.

Buffers are anything with Python's buffer protocol: bytes, a memoryview, a mapped file. Malformed
bytes raise ValueError.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

Buffer = bytes | memoryview

#: Tokens cached with the key schedules of their rows: 180 KiB each.
READY = 64


def sweep(segment: Buffer, token: bytes) -> bytes:
    """One bit per file in the segment's order, lowest bit first: 1 if it may contain the range.

    ValueError also if token and segment are of different indexes. Releases the GIL: several threads
    can sweep several segments in parallel.
    """
    return cast(bytes, _ready(token).sweep(segment))


def segment_header(segment: Buffer) -> dict[str, Any]:
    """A segment's header: `spec`, `index_id`, `segment_id`, `n` files, all `bytes`.

    The first 48 bytes of a segment are enough.
    """
    from louver._rust import server

    return server.segment_header(segment)


def token_header(token: bytes) -> dict[str, Any]:
    """A token's header: `spec`, `index_id`, and whether `sides` are disclosed."""
    from louver._rust import server

    return server.token_header(token)


@lru_cache(READY)
def _ready(token: bytes) -> Any:
    from louver._rust import server

    return server.Token(token)
