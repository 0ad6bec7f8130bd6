"""Faults that are known and not mended yet: what of the grammar is left out until they are.

Empty `PENDING` as they are mended. With ``LOUVER_WORLDS_ALL=1``, or within `everything`, nothing
is left out, so that the faults can be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Switch of the grammar, and the fault that it waits for.
PENDING: dict[str, str] = {
    "like": "SELECT * LIKE '…' with a condition on an ENC column looks for names of the rewriter",
}
_all = [bool(os.environ.get("LOUVER_WORLDS_ALL"))]


def left_out(switch: str) -> bool:
    """Whether the grammar leaves this out."""
    return switch in PENDING and not _all[-1]


@contextmanager
def everything() -> Iterator[None]:
    """Nothing is left out."""
    _all.append(True)
    try:
        yield
    finally:
        _all.pop()
