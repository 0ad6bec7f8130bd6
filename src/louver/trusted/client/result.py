"""The rows of an answer: as Python values, Arrow, a DataFrame, or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver import errors
from louver.trusted.client.table_format import box
from louver.trusted.executor.answer import Answer, Notice
from louver.trusted.executor.containment import contained, face
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import arrow_values
from louver.trusted.planner.sql.dialect import Dialect

if TYPE_CHECKING:
    from louver.trusted.client.copy_stream import Copy
    from louver.trusted.executor.front import Front

Row = tuple[Any, ...]
_SLICE_ROWS = 16_384
SHOWN_ROWS = 40
#: Last columns of SHOW whose texts continue on the next line instead of being cut.
_SENTENCES = [[(name, "VARCHAR")] for name in ("reveals", "sql", "clause")]


def warned(answer: Answer) -> Answer:
    """The answer, after its notices were issued as Python warnings at the caller's line."""
    for notice in answer.notices:
        if not isinstance(notice, Notice):
            errors.warn(notice)
    return answer


class Result:
    """The rows of one answer and the position of the next row."""

    def __init__(self, session: Front, answer: Answer) -> None:
        self._session = session
        self.answer = answer
        self.position = 0
        self._ready: list[Row] = answer.values or []
        self._ready_from = 0

    @property
    def rows(self) -> pa.Table:
        """The rows as lossless Arrow; raises if the statement returned none."""
        if self.answer.rows is None:
            raise errors.make("cursor.empty")
        if self._session.closed:
            raise errors.make("connection.closed")
        return self.answer.rows

    def _count(self) -> int:
        if self.answer.count < 0 or self._session.closed:
            return int(self.rows.num_rows)  # which raises what is wrong
        return self.answer.count

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and DuckDB types of the columns."""
        return list(self.answer.columns)

    def take(self, count: int | None) -> list[Row]:
        """The next ``count`` rows as Python values; None: all remaining rows."""
        total = self._count()
        end = total if count is None else min(total, self.position + count)
        values: list[Row] = []
        while self.position < end:
            start = self.position - self._ready_from
            if not 0 <= start < len(self._ready):
                self._ready_from, start = self.position, 0
                wanted = max(_SLICE_ROWS, end - self.position if count is None else 0)
                self._ready = self._python(self.rows.slice(self.position, wanted))
            part = self._ready[start : start + end - self.position]
            values += part
            self.position += len(part)
        return values

    def all(self) -> list[Row]:
        """All rows, from the first."""
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
        import pandas  # noqa: F401  (an engine imports it; its own error has no fix)

        with contained(self._session):
            return self._session.context.local.data_frame(self.rows)

    def numpy(self) -> dict[str, Any]:
        """The rows as a NumPy array for each column."""
        with contained(self._session):
            arrays = self._session.context.local.numpy_arrays(self.rows)
        return dict(zip(self.rows.column_names, arrays, strict=False))

    def pl(self) -> Any:
        """The rows as a polars DataFrame."""
        import polars

        rows = self.arrow()
        for position, field in enumerate(rows.schema):
            # What polars has no type for stands there as text.
            if isinstance(field.type, pa.BaseExtensionType) or pa.types.is_interval(field.type):
                texts = [text for (text,) in self.texts(self.rows.select([position]))]
                rows = rows.set_column(position, field.name, pa.array(texts, pa.string()))
        return polars.from_arrow(rows)

    def text(self, max_rows: int = SHOWN_ROWS, max_width: int | None = None) -> str:
        """The rows as a table; of many rows the first and the last."""
        rows, total = self.rows, self.rows.num_rows
        if total > max_rows:
            first = max_rows - max_rows // 2
            rows = pa.concat_tables([rows.slice(0, first), rows.slice(total - max_rows // 2)])
        wrapped = self.answer.columns[-1:] in _SENTENCES
        texts = self.texts(rows)
        return box(self.answer.columns, texts, total=total, max_width=max_width, wrapped=wrapped)

    def texts(self, rows: pa.Table | None = None) -> list[tuple[str | None, ...]]:
        """All rows, or the given ones, with every value as text, as the local engine prints it."""
        wanted = self.rows if rows is None else rows
        texts = arrow_values.texts(wanted)
        if texts is not None:
            return texts
        with contained(self._session):
            return self._session.context.local.texts(wanted)

    def csv(self, write: Callable[[bytes], object]) -> None:
        """Write all rows as CSV with a header, as the local engine's COPY does; ``write`` takes
        bytes.
        """
        names = [name for name, _ in self.columns]
        with contained(self._session):
            self._session.context.local.write_csv(self.rows, names, write)


@face
class Copying:
    """The part of a cursor that copies."""

    _dialect: Dialect
    connection: Any
    _affected: int

    def copy(self, sql: str) -> Copy:
        """Begin COPY … FROM STDIN or COPY … TO STDOUT, for `with`.

        Args:
            sql: the statement, of PostgreSQL's language, without placeholders.

        Raises:
            errors.Error: PostgreSQL's own for data that it does not read; nothing is stored then.
        """
        session = self.connection._session
        if session.closed:
            raise errors.make("connection.closed")
        context = session.context
        if not isinstance(context, Context) or not session.dialect.has_own_statements:
            raise errors.make("sql.unsupported", statement="COPY … STDIN and STDOUT")
        from louver.trusted.client.copy_stream import Copy

        self._affected = -1
        return Copy(self, sql)
