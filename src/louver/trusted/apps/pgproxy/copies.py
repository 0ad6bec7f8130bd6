"""COPY of one client of the front door: data comes and goes in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from louver import errors
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.apps.pgproxy.failures import failed, reporting
from louver.trusted.executor import dispatch
from louver.trusted.executor.containment import contained
from louver.trusted.executor.postgres import copy_targets, copying
from louver.trusted.executor.session import Session, outlasting

Begun = tuple[str, int] | tuple[str, int, int, int]


@dataclass(slots=True)
class _Copying:
    """A COPY that runs: one of both."""

    into: copying.CopyIn | None = None
    out: Iterator[bytes] = field(default_factory=lambda: iter(()))
    count: int = 0


class Copies:
    """The COPY that runs, if one does."""

    def __init__(self, session: Session) -> None:
        """Of a session of its own."""
        self._session, self._context = session, session.context
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
                    self._copy.out, self._copy.count = copying.out(self._context, statement)
            except errors.Error as error:
                self._copy = None
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
    def copy_out(self) -> bytes | None:
        """The next piece of data; None behind the last."""
        if self._copy is None:
            raise failed("08P01", "no COPY gives data")
        return next(self._copy.out, None)

    def _undo_copy(self) -> None:
        copy, self._copy = self._copy, None
        self._context.state.copying = False
        if copy is not None and copy.into is not None:
            with contained(self._session):
                copy.into.abort()
