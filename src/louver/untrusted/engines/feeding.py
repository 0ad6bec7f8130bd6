"""A stream of rows into statements of DuckDB.

DuckDB pulls the rows of an INSERT from threads of its own. Here they are made in the thread that
asked for the INSERT, which hands them over one by one; the statement runs in another. So an
error of anyone who makes the rows, and Ctrl-C, come out where they belong, as themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

from louver.untrusted.engines import memory
from louver.untrusted.engines.interruption import CtrlC

PIECE_BYTES = 2 << 20
"""Rows are handed over in pieces of about this size: Arrow reads up to 16 of them ahead."""

PIECES_BETWEEN_TRIMS = 4
STATEMENT_ROWS = 8 * 122_880
"""Rows per statement: until it ends, DuckDB holds on to a part of what it has read. In whole row
groups, which DuckDB writes out at once, and in order, which it keeps.
"""


class Handover:
    """One batch at a time from the thread that makes them to the one that takes them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batch: pa.RecordBatch | None = None
        self._complete = False
        self._stopped = False

    def give(self, batch: pa.RecordBatch) -> bool:
        """Hand over a batch; False when no one takes batches any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._batch is None or self._stopped)
            if not self._stopped:
                self._batch = batch
                self._changed.notify_all()
            return not self._stopped

    def complete(self) -> None:
        """Say that no batch follows."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End it on both sides."""
        with self._changed:
            self._stopped, self._batch = True, None
            self._changed.notify_all()

    def taken(self) -> Iterator[pa.RecordBatch]:
        """The batches, for anyone who takes them; raises when they were stopped."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._batch is not None or self._complete or self._stopped
                )
                batch, self._batch = self._batch, None
                if self._stopped:
                    raise RuntimeError("the stream of rows was stopped")
                self._changed.notify_all()
            if batch is None:
                return
            yield batch


def statements(rows: pa.RecordBatchReader) -> Iterator[Iterator[pa.RecordBatch]]:
    """A stream cut into what goes into one statement each; every part must be used up before
    the next one is asked for.
    """
    pieces = _pieces(rows)
    for first in pieces:
        yield _part(first, pieces)


def _pieces(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in rows:
        step = max(1, batch.num_rows * PIECE_BYTES // max(batch.nbytes, 1))
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, min(step, STATEMENT_ROWS - done % STATEMENT_ROWS))
            yield piece
            start += piece.num_rows
            done += piece.num_rows


def _part(first: pa.RecordBatch, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    count = first.num_rows
    yield first
    while count < STATEMENT_ROWS and (piece := next(pieces, None)) is not None:
        count += piece.num_rows
        yield piece


def feed(
    schema: pa.Schema,
    pieces: Iterator[pa.RecordBatch],
    run: Callable[[pa.RecordBatchReader], None],
    interrupt: Callable[[], None],
) -> None:
    """Run a statement over a stream. The stream's own failure is raised as it is, before that of
    the statement, which fails because of it.
    """
    handover, ended = Handover(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            run(pa.RecordBatchReader.from_batches(schema, handover.taken()))
        except BaseException as error:  # noqa: BLE001 - raised where it was asked for
            failures.append(error)
        finally:
            handover.stop()
            ended.set()

    worker = threading.Thread(target=work, name="louver-append")
    try:
        # A thread that learns to stop while it begins would live on unnoticed.
        with CtrlC(_later):
            worker.start()
        _give(pieces, handover)
        handover.complete()
        ended.wait()
    except BaseException:
        with CtrlC(_later):
            handover.stop()
            while worker.ident is not None and not ended.wait(0.05):
                # Its statement may not have begun when it is first told to stop.
                interrupt()
        raise
    if failures:
        raise failures[0]


def _later() -> None:
    """Ctrl-C is heard at the end of the block."""


def _give(pieces: Iterator[pa.RecordBatch], handover: Handover) -> None:
    for number, piece in enumerate(pieces):
        if not handover.give(piece):
            return
        if number % PIECES_BETWEEN_TRIMS == 0:
            memory.give_back()
