"""The rows of a query that still runs on the session that asked it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver import errors

if TYPE_CHECKING:
    from louver.untrusted.engines.postgres.connection import PostgresEngine

FETCHED_ROWS = 16_384


class PortalStream:
    """Batches of a portal: fetched on demand, or all at once when `detach` is called.

    ``own``: whether the transaction that it lives in was opened for it, and ends with it.
    """

    def __init__(self, engine: PostgresEngine, portal: str, *, own: bool) -> None:
        self._engine = engine
        self._portal = portal
        self._columns: list[Any] = []
        self._own = own
        self._more = True
        self._kept: list[pa.RecordBatch] = []
        self._failure: BaseException | None = None

    def opened(self, columns: list[Any]) -> pa.Schema:
        """The portal is open, with these columns; their Arrow types, which the first rows tell."""
        self._columns = columns
        table = self._pull()
        if table is None:
            raise errors.make("internal", detail="a portal without a first answer")
        self._kept += table.to_batches()
        return table.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            if self._kept:
                yield self._kept.pop(0)
                continue
            table = self._pull()
            if table is None:
                if self._failure is not None:
                    raise self._failure
                return
            self._kept += table.to_batches()

    def detach(self) -> None:
        """Read the rest into memory; a failure is kept for the one who reads the stream."""
        try:
            while (table := self._pull()) is not None:
                self._kept += table.to_batches()
        except (errors.Error, KeyboardInterrupt) as failure:
            self._failure = failure

    @property
    def is_open(self) -> bool:
        """Whether the server may have more rows."""
        return self._more

    def leave(self) -> None:
        """Read no more."""
        if self._more:
            self._more = False
            self._end()

    def _pull(self) -> pa.Table | None:
        if not self._more:
            return None
        try:
            table, self._more = self._engine.fetch(self._portal, self._columns, FETCHED_ROWS)
        except BaseException:
            self._more = False
            self._end()
            raise
        if not self._more:
            self._end()
        return table

    def _end(self) -> None:
        self._engine.stream_ended(self, self._portal, own=self._own)
