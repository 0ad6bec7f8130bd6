"""Row ids that are never used twice: not by UPDATE, not after a rollback or a crash.

A row id is `epoch << 36 | counter`. A session claims its epoch before its first write, on a side
connection, and commits it at once. The pin keeps the highest epoch that this client claimed, so
that a server which goes back in time does not get a number to be used again; it is locked
meanwhile, so that no two sessions with one pin claim one number.

A table whose rows may go into tiles takes a block of them at a time, so that rows of several tables
that are written in turn have consecutive numbers in each, as the rows of a tile must.

Numbers alone do not help a client that lost its pin, or two that never meet. So an epoch also
bears 128 random bits (`vault/epochs.py`). The catalog knows them before a row is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa

from louver import errors
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.epochs import COUNTER_BITS, LIMIT, draw
from louver.trusted.vault.pin import Pin
from louver.untrusted.engines.engine import Engine
from louver.wire import control
from louver.wire.messages import Statement

_ROWS_PER_EPOCH = 1 << COUNTER_BITS
_ATTEMPTS = 32
BLOCK = 1024
"""Numbers of a table's block: the rows of a tile."""


class RowIds:
    """Gives out fresh row ids for one writing session."""

    def __init__(
        self, engine: Engine, pin: Pin, publish: Callable[[Catalog, int, str], None] | None = None
    ) -> None:
        """`engine` is a side connection: its commits do not wait for the user's transaction.
        ``publish`` has the catalog know an epoch and its bits as soon as it is claimed; without it
        they are saved with the first rows.
        """
        self._engine = engine
        self._pin = pin
        self._publish = publish
        self._epoch = 0
        self._bits = ""
        self._next = 0
        #: by table, the next number of its block, and the first one after that
        self._blocks: dict[int, tuple[int, int]] = {}
        self._ready = False
        #: the process and the catalog's version for which the epoch was claimed
        self._process = 0
        self._version = 0

    def claim(self, catalog: Catalog) -> int:
        """Claim a new epoch, durably; the first `take` does it by itself."""
        known = catalog.epochs.highest
        for _ in range(_ATTEMPTS):
            epoch = self._pin.claim_epoch(lambda pinned: self._attempt(max(pinned, known)))
            if epoch:
                bits = draw()
                if self._publish is not None:
                    # Until the catalog knows its bits, no row may bear it: none could be opened.
                    self._publish(catalog, epoch, bits)
                self._epoch, self._bits, self._next = epoch, bits, 0
                self._blocks.clear()
                self._process, self._version = os.getpid(), catalog.version
                return epoch
        raise errors.make("catalog.conflict")

    def ensure(self, catalog: Catalog) -> bool:
        """Claim an epoch unless this session has one that rows of this catalog may bear; says
        whether the catalog has another version now.
        """
        if self._fits(catalog):
            return False
        self.claim(catalog)
        return self._publish is not None

    def take(self, count: int, catalog: Catalog, table: int | None = None) -> pa.Array:
        """`count` consecutive row ids (int64) that were never given out before; of the block of a
        ``table``, if it is said.

        The catalog learns the bits of their epoch.
        """
        if not 0 <= count <= _ROWS_PER_EPOCH:
            raise errors.make("rows.exhausted")
        if not count:
            return pa.array([], pa.int64())
        first = self._first(count, catalog, table)
        return pa.arange(first, first + count)

    def take_one(self, catalog: Catalog) -> int:
        """The same of one row id."""
        return self._first(1, catalog)

    def _first(self, count: int, catalog: Catalog, table: int | None = None) -> int:
        if not self._fits(catalog) or self._next + max(count, BLOCK) > _ROWS_PER_EPOCH:
            self.claim(catalog)
        catalog.epochs = catalog.epochs.adding(self._epoch, self._bits)
        return self._epoch << COUNTER_BITS | self._numbers(count, table)

    def _numbers(self, count: int, table: int | None) -> int:
        if table is None:
            self._next += count
            return self._next - count
        first, end = self._blocks.get(table, (self._next, self._next))
        if first + count > end:
            # A block goes on where no other numbers follow it.
            first = first if end == self._next else self._next
            end = self._next = max(first + count, self._next + BLOCK)
        self._blocks[table] = first + count, end
        return first

    def _fits(self, catalog: Catalog) -> bool:
        """Whether the epoch is this process's own, and the catalog has no other of its number.

        All rows of an earlier release must be in lower epochs than the first one with bits: so
        that one is claimed after the last version without bits was read.
        """
        if not self._epoch or self._process != os.getpid():
            return False
        epochs = catalog.epochs
        if epochs.is_legacy:
            return self._version == catalog.version
        fresh = self._epoch > epochs.legacy_below or self._epoch in epochs.bits
        return fresh and epochs.bits.get(self._epoch, self._bits) == self._bits

    def _attempt(self, used: int) -> int:
        """Insert the next epoch; 0 when another session took it in between."""
        try:
            if not self._ready:
                self._engine.run(control.EPOCH_CREATE)
                self._ready = True
            highest = self._engine.value(control.EPOCH_HIGHEST)
            highest = highest if isinstance(highest, int) else 0
            epoch = max(highest, used) + 1
            if not 0 < epoch < LIMIT:
                raise errors.make("rows.exhausted")
            self._engine.run(Statement(control.EPOCH_CLAIM, (epoch,), kind="write"))
        except errors.DatabaseError as error:
            if self._engine.lost_race(error):
                return 0
            raise
        return epoch
