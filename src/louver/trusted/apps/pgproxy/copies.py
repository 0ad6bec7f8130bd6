"""COPY of one client of the front door: data comes and goes in pieces."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.apps.pgproxy.failures import failed, reporting
from louver.trusted.executor import dispatch, streaming
from louver.trusted.executor.containment import contained
from louver.trusted.executor.local.postgres.wire import Described, Wire
from louver.trusted.executor.postgres import copy_targets, copying
from louver.trusted.executor.postgres.copy_rows import Format
from louver.trusted.executor.read_ahead import closed
from louver.trusted.executor.session import Session, outlasting

_Shown = Sequence[tuple[str, str]]
#: So many rows at most are sent at once.
_PART_ROWS = 16_384
Begun = tuple[str, int] | tuple[str, int, int, int]


@dataclass(slots=True)
class _Copying:
    """A COPY that runs: one of both."""

    into: copying.CopyIn | None = None
    out: Generator[tuple[bytes, bool]] = field(default_factory=lambda: (_ for _ in ()))
    count: int = 0


class Copies:
    """The COPY that runs, if one does."""

    def __init__(self, session: Session) -> None:
        """Of a session of its own."""
        self._session, self._context = session, session.context
        self._wire = Wire(session.context.local)
        self.text = ""
        #: the values of rows that break a constraint are not shown
        self.hides_details = False
        self._copy: _Copying | None = None

    def _begin_copy(self, prepared: Prepared) -> Begun:
        with contained(self._session):
            self._session.require_no_copy()
            try:
                statement, into = copy_targets.begin(self._context, prepared.sql)
                form = copying.form_of(statement.options)
                columns = copying.width(self._context, statement)
                self._copy = _Copying(into)
                if into is None:
                    self._copy.out = self._pieces(statement, form, self._copy)
            except errors.Error as error:
                # A name that is wrong shows when the COPY has begun.
                self._copy, self._context.state.copying = None, False
                dispatch.failed(self._context, error)
                raise
        name = form.name or "lines"
        return (name, columns, form.quote, form.escape) if into is None else (name, columns)

    @reporting
    def copy_in(self, data: bytes) -> None:
        """Take data in."""
        into = self._copy.into if self._copy is not None else None
        if into is None:
            raise failed("08P01", "no COPY takes data")
        with contained(self._session):
            try:
                into.write(data)
            except errors.Error as error:
                self._copy_failed(error)
                raise

    @reporting
    def copy_end(self, reason: str | None) -> str:
        """End it; with a reason nothing is copied, and that is an error."""
        copy, self._copy = self._copy, None
        if copy is None:
            raise failed("08P01", "no COPY runs")
        if copy.into is None:
            return f"COPY {copy.count}"
        with contained(self._session):
            if reason is not None:
                copy.into.abort()
                raise failed("57014", f"COPY from stdin failed: {reason}")
            try:
                return f"COPY {copy.into.finish(outlasting)}"
            except errors.Error as error:
                self._copy = copy
                self._copy_failed(error)
                raise

    def _copy_failed(self, error: errors.Error) -> None:
        copy, self._copy = self._copy, None
        if copy is not None and copy.into is not None:
            with suppress(errors.Error):
                copy.into.abort()
        dispatch.failed(self._context, error)

    @reporting
    def copy_out(self) -> tuple[bytes, bool] | None:
        """The next piece of data, and whether that is messages of whole rows; None behind the
        last.
        """
        if self._copy is None:
            raise failed("08P01", "no COPY gives data")
        with contained(self._session):
            try:
                return next(self._copy.out, None)
            except errors.Error as error:
                self._copy_failed(error)
                raise

    def _pieces(
        self, statement: copying.Statement, form: Format, copy: _Copying
    ) -> Generator[tuple[bytes, bool]]:
        """The data of a COPY that goes out; what fails at once fails before the first piece."""
        query = copying.query_out(self._context, statement)
        is_plain = copying.is_plain(statement.options)
        streamed = streaming.stream(self._context, query) if is_plain else None
        if streamed is None:
            rows, shown = copying.rows_out(self._context, query)
            parts: Iterator[pa.Table] = iter([rows])
        else:
            shown, parts = streamed
        columns = self._printed_here(form, shown) if is_plain else None
        if columns is not None:
            return self._messages(form, columns, parts, copy)
        rows = pa.concat_tables(parts)
        copy.count = rows.num_rows
        pieces = copying.printed(self._context, statement, rows, shown)
        return ((piece, False) for piece in pieces)

    def _printed_here(self, form: Format, shown: _Shown) -> list[Described] | None:
        """Columns as they are sent; None where PostgreSQL is to print their values."""
        columns = [
            (*column[:6], int(form.name == "binary")) for column in self._wire.of_names(shown)
        ]
        is_known = all(self._wire.is_printed(column[3]) for column in columns)
        return columns if columns and is_known else None

    def _messages(
        self, form: Format, columns: list[Described], parts: Iterator[pa.Table], copy: _Copying
    ) -> Generator[tuple[bytes, bool]]:
        """Rows as messages of the compiled module."""
        names = [column[0] for column in columns] if form.header else None
        writer = postgres.CopyRows(form.name, names)
        with closed(parts):
            for part in parts:
                for start in range(0, part.num_rows, _PART_ROWS):
                    rows = part.slice(start, _PART_ROWS)
                    sent = zip(self._wire.arrays(rows, columns), columns, strict=True)
                    arrays = [(array, column[3], printed) for (array, printed), column in sent]
                    yield writer.messages(arrays, rows.num_rows), True
                    copy.count += rows.num_rows
        yield writer.end(), True

    def _undo_copy(self) -> None:
        copy, self._copy = self._copy, None
        self._context.state.copying = False
        if copy is not None:
            with contained(self._session):
                copy.out.close()
        if copy is not None and copy.into is not None:
            with contained(self._session):
                copy.into.abort()
