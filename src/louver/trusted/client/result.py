"""An answer as users take it: row by row, as Arrow, as a DataFrame, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver import errors
from louver.trusted.client.table_format import box
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.containment import contained

if TYPE_CHECKING:
    from louver.trusted.executor.front import Front

Row = tuple[Any, ...]
_SLICE_ROWS = 16_384
SHOWN_ROWS = 40


class Result:
    """The rows of one answer, and how far they have been fetched."""

    def __init__(self, session: Front, answer: Answer) -> None:
        self._session = session
        self.answer = answer
        self.position = 0
        self._ready: list[Row] = []
        self._ready_from = 0

    @property
    def rows(self) -> pa.Table:
        """The rows as Arrow without loss; raises where the statement gives none."""
        if self.answer.rows is None:
            raise errors.make("cursor.empty")
        if self._session.closed:
            raise errors.make("connection.closed")
        return self.answer.rows

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and DuckDB types of the columns."""
        return list(self.answer.columns)

    def take(self, count: int | None) -> list[Row]:
        """The next rows as Python values; all that are left without a count."""
        rows = self.rows
        end = rows.num_rows if count is None else min(rows.num_rows, self.position + count)
        found: list[Row] = []
        while self.position < end:
            start = self.position - self._ready_from
            if not 0 <= start < len(self._ready):
                self._ready_from, start = self.position, 0
                wanted = max(_SLICE_ROWS, end - self.position if count is None else 0)
                self._ready = self._python(rows.slice(self.position, wanted))
            part = self._ready[start : start + end - self.position]
            found += part
            self.position += len(part)
        return found

    def all(self) -> list[Row]:
        """Every row, whatever has been fetched."""
        return self._python(self.rows)

    def _python(self, rows: pa.Table) -> list[Row]:
        with contained(self._session):
            return self._session.python_rows(rows)

    def arrow(self) -> pa.Table:
        """The rows as the Arrow table that DuckDB gives."""
        with contained(self._session):
            return self._session.context.local.plain_arrow(self.rows)

    def df(self) -> Any:
        """The rows as a pandas DataFrame."""
        with contained(self._session), self._session.context.local.reading(self.rows) as found:
            return found.df().set_axis(self.rows.column_names, axis="columns")

    def pl(self) -> Any:
        """The rows as a polars DataFrame."""
        import polars

        return polars.from_arrow(self.arrow())

    def text(self, max_rows: int = SHOWN_ROWS, max_width: int | None = None) -> str:
        """The rows in a box; of many rows the first and the last."""
        rows, total = self.rows, self.rows.num_rows
        if total > max_rows:
            first = max_rows - max_rows // 2
            rows = pa.concat_tables([rows.slice(0, first), rows.slice(total - max_rows // 2)])
        return box(self.answer.columns, self.texts(rows), total=total, max_width=max_width)

    def texts(self, rows: pa.Table | None = None) -> list[tuple[str | None, ...]]:
        """Rows (all of them, or those given) with every value as text, as DuckDB prints it."""
        wanted = self.rows if rows is None else rows
        with contained(self._session), self._session.context.local.reading(wanted) as found:
            return found.execute("SELECT COLUMNS(*)::VARCHAR FROM louver_rows").fetchall()
