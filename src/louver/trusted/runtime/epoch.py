"""Row ids that are never used twice: not by UPDATE, not after a rollback or a crash.

A row id is `epoch << 36 | counter`. A session claims its epoch before its first write, on a side
connection, and commits it at once. The pin keeps the highest epoch that this client claimed, so
that a server which goes back in time does not get an epoch to be used again.
"""

from __future__ import annotations

import pyarrow as pa

from louver import errors
from louver.trusted.vault.pin import Pin
from louver.untrusted.engines.engine import Engine, lost_race
from louver.wire import control
from louver.wire.messages import Statement

COUNTER_BITS = 36
EPOCH_LIMIT = 1 << (63 - COUNTER_BITS)
_ROWS_PER_EPOCH = 1 << COUNTER_BITS
_ATTEMPTS = 32


class RowIds:
    """Gives out fresh row ids for one writing session."""

    def __init__(self, engine: Engine, pin: Pin) -> None:
        """`engine` is a side connection: its commits do not wait for the user's transaction."""
        self._engine = engine
        self._pin = pin
        self._epoch = 0
        self._next = 0
        self._ready = False

    def claim(self) -> int:
        """Claim a new epoch, durably; the first `take` does it by itself."""
        for _ in range(_ATTEMPTS):
            epoch = self._attempt()
            if epoch:
                self._pin.advance_epoch(epoch)
                self._epoch, self._next = epoch, 0
                return epoch
        raise errors.make("catalog.conflict")

    def ensure(self) -> None:
        """Claim an epoch unless this session has one."""
        if not self._epoch:
            self.claim()

    def take(self, count: int) -> pa.Array:
        """`count` consecutive row ids (int64) that were never given out before."""
        if not 0 <= count <= _ROWS_PER_EPOCH:
            raise errors.make("rows.exhausted")
        if not self._epoch or self._next + count > _ROWS_PER_EPOCH:
            self.claim()
        first = self._epoch << COUNTER_BITS | self._next
        self._next += count
        return pa.arange(first, first + count)

    def _attempt(self) -> int:
        """Insert the next epoch; 0 when another session took it in between."""
        try:
            if not self._ready:
                self._engine.run(control.EPOCH_CREATE)
                self._ready = True
            highest = self._engine.value(control.EPOCH_HIGHEST)
            highest = highest if isinstance(highest, int) else 0
            epoch = max(highest, self._pin.read().epoch) + 1
            if not 0 < epoch < EPOCH_LIMIT:
                raise errors.make("rows.exhausted")
            self._engine.run(Statement(control.EPOCH_CLAIM, (epoch,), kind="write"))
        except errors.DatabaseError as error:
            if lost_race(error):
                return 0
            raise
        return epoch
