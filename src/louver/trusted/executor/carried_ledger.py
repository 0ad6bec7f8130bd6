"""The ledger of a copied database under its new identity: what the original has revealed.

Every record is verified under the former identity, then sealed under the new one, in the order of
the chain.
"""

from __future__ import annotations

import json

from louver import errors
from louver.trusted.executor.ledger_chain import PURPOSE, START, context_of, linked
from louver.trusted.vault.pin import Keys
from louver.untrusted.engines.engine import Engine
from louver.wire import control
from louver.wire.messages import Statement


def carry(engine: Engine, keys: Keys, former: str, database_id: str) -> tuple[int, str]:
    """Write every record anew within the open transaction; length and hash of the ledger."""
    old = new = START
    length = 0
    for row in engine.query(Statement(control.LEDGER_TAIL, (0,))).to_pylist():
        length += 1
        try:
            plain = keys.open_blob(PURPOSE, context_of(former, length), row["body"])
            body = json.loads(plain)
            follows = row["sequence"] == length and body["previous"] == old
        except (errors.VerificationError, ValueError, KeyError, TypeError) as error:
            raise _tampered(engine, length) from error
        if not follows:
            raise _tampered(engine, length)
        old = linked(old, length, row["body"])
        text = json.dumps(body | {"previous": new}, separators=(",", ":"), ensure_ascii=False)
        sealed = keys.seal_blob(PURPOSE, context_of(database_id, length), text.encode())
        update = Statement(control.LEDGER_REPLACE, (length, sealed), kind="write")
        if engine.run(update) != 1:
            raise _tampered(engine, length)
        new = linked(new, length, sealed)
    return length, new


def _tampered(engine: Engine, number: int) -> errors.Error:
    detail = f"entry {number} does not verify"
    return errors.make("ledger.tampered", place=engine.address or "this database", detail=detail)
