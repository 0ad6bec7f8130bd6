"""How the records of a ledger are bound to their place, and chained."""

from __future__ import annotations

import hashlib

PURPOSE = "ledger"
"""What records are sealed for."""
START = "0" * 64
"""The hash over no record."""


def context_of(database_id: str, sequence: int) -> bytes:
    """What a record is bound to."""
    return f"{database_id}:{sequence}".encode()


def linked(head: str, sequence: int, sealed: bytes) -> str:
    """The hash over all records up to one."""
    return hashlib.sha256(bytes.fromhex(head) + sequence.to_bytes(8, "big") + sealed).hexdigest()
