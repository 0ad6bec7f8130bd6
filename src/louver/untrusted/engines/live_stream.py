"""The rows of a query that still runs on the connection that asked it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.untrusted.engines.failures import translated
from louver.untrusted.engines.interruption import CtrlC

if TYPE_CHECKING:
    from louver.untrusted.engines.duckdb import DuckDBEngine


class LiveStream:
    """Batches of a running query: pulled on demand, or all at once when `detach` is called."""

    def __init__(
        self, engine: DuckDBEngine, reader: pa.RecordBatchReader, done: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._reader: pa.RecordBatchReader | None = reader
        self._done = done
        self._kept: list[pa.RecordBatch] = []
        self._failure: BaseException | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            batch = self._kept.pop(0) if self._kept else self._pull()
            if batch is None:
                if self._failure is not None:
                    raise self._failure
                return
            yield batch

    def detach(self) -> None:
        """Read the rest into memory; a failure is kept for the one who reads the stream."""
        try:
            while (batch := self._pull()) is not None:
                self._kept.append(batch)
        except (errors.Error, KeyboardInterrupt) as failure:
            self._failure = failure

    def _pull(self) -> pa.RecordBatch | None:
        if self._reader is None:
            return None
        try:
            with translated(self._engine.address), CtrlC(self._engine.interrupt):
                batch = self._reader.read_next_batch()
        except StopIteration:
            self._finish()
            return None
        except BaseException:
            self._finish()
            raise
        traffic = self._engine.traffic
        traffic.bytes_in += batch.nbytes
        traffic.rows_in += batch.num_rows
        return batch

    def _finish(self) -> None:
        self._reader = None
        self._done()
