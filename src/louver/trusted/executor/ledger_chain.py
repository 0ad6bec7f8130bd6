"""How the records of a ledger are bound to their place, chained, and written."""

from __future__ import annotations

import hashlib

from louver import errors
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement

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


def written(engine: Engine, statement: Statement) -> bool:
    """Write to the server; False when another client was faster.

    A failure says that the user's statement was not sent.
    """
    try:
        engine.run(statement)
    except errors.Error as error:
        if engine.lost_race(error):
            return False
        raise errors.make("ledger.write", detail=error.message) from error
    return True
