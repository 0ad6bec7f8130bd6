"""COPY … FROM STDIN and COPY … TO STDOUT from Python, as psycopg 3 has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any

from louver import errors
from louver.trusted.executor import dispatch
from louver.trusted.executor.containment import contained, face
from louver.trusted.executor.postgres import copy_targets, copying
from louver.trusted.executor.session import outlasting


@face
class Copy:
    """A COPY that runs: within `with`, `write` gives data and iteration takes it. All of it is
    stored when the block ends, or none where it raises.
    """

    def __init__(self, cursor: Any, sql: str) -> None:
        """Use `Cursor.copy`."""
        self._cursor, self._session = cursor, cursor.connection._session
        self._lock, self._dialect = cursor.connection._lock, cursor._dialect
        self._pieces: Iterator[bytes] = iter(())
        self._session.require_no_copy()
        with self._lock, contained(self._session):
            self._begin(sql)

    def _begin(self, sql: str) -> None:
        context = self._session.context
        self._running: copying.CopyIn | None = None
        self._open = True
        try:
            statement, self._running = copy_targets.begin(context, sql)
            if self._running is None:
                self._pieces, _ = copying.out(context, statement)
        except errors.Error as error:
            self._failed(error)
            raise

    def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """Give data of any length, in the format of the statement; a text as UTF-8."""
        plain = data.encode() if isinstance(data, str) else bytes(data)
        running = self._required()
        with self._lock, contained(self._session):
            try:
                running.write(plain)
            except errors.Error as error:
                self._failed(error)
                raise

    def read(self) -> bytes:
        """The next piece of data; empty at the end."""
        return next(self._pieces, b"")

    def __iter__(self) -> Iterator[bytes]:
        """The pieces of the data."""
        return self._pieces

    def __enter__(self) -> Copy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        running, is_open = self._running, self._open
        self._open, self._pieces = False, iter(())
        if running is None or not is_open:
            return
        with self._lock, contained(self._session):
            if kind is not None:
                running.abort()
                return
            try:
                self._cursor._affected = running.finish(outlasting)
            except errors.Error as failure:
                self._failed(failure)
                raise

    def _failed(self, error: errors.Error) -> None:
        """As any statement fails."""
        self._open, context = False, self._session.context
        if self._running is not None:
            with suppress(errors.Error):
                self._running.abort()
        dispatch.failed(context, error)

    def _required(self) -> copying.CopyIn:
        if self._running is None or not self._open:
            raise errors.make("connection.closed")
        return self._running
