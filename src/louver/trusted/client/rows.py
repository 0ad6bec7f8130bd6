"""The rows of a relation, in the forms that DuckDB's relations give."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from louver.trusted.client.result import SHOWN_ROWS, Result, Row
from louver.trusted.executor.containment import face

_BATCH_ROWS = 1_000_000


@face
class Rows(ABC):
    """Rows that are fetched on first use, once."""

    @abstractmethod
    def _ran(self) -> Result:
        """The result; runs the query where that was not done yet."""

    def show(self, *, max_rows: int = SHOWN_ROWS, max_width: int | None = None) -> None:
        """Write the rows to stdout as a table; of many rows the first and the last."""
        text = self.text(max_rows, max_width)
        if text:
            sys.stdout.write(text + "\n")

    def text(self, max_rows: int = SHOWN_ROWS, max_width: int | None = None) -> str:
        """The text that `show` writes."""
        ran = self._ran()
        if ran.answer.rows is None:
            return ""
        if ran.columns[:1] == [("explain_key", "VARCHAR")]:
            return "\n".join(str(row[1]) for row in ran.all())
        return ran.text(max_rows, max_width)

    def texts(self) -> list[tuple[str | None, ...]]:
        """All rows with every value as text, as DuckDB prints it."""
        return self._ran().texts()

    def csv(self, write: Callable[[bytes], object]) -> None:
        """All rows as CSV with a header, as DuckDB's COPY writes it; ``write`` takes the bytes."""
        self._ran().csv(write)

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._ran().arrow()

    to_arrow_table = fetch_arrow_table = arrow

    def to_arrow_reader(self, batch_size: int = _BATCH_ROWS) -> pa.RecordBatchReader:
        """All rows as a stream of batches of at most ``batch_size`` rows."""
        return self._ran().arrow().to_reader(batch_size)

    fetch_record_batch = fetch_arrow_reader = to_arrow_reader

    def df(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self._ran().df()

    to_df = fetchdf = df

    def pl(self) -> Any:
        """All rows as a polars DataFrame."""
        return self._ran().pl()

    def fetchnumpy(self) -> dict[str, Any]:
        """All rows as a NumPy array for each column."""
        return self._ran().numpy()

    def fetchall(self) -> list[Row]:
        """The remaining rows as Python values."""
        return self._ran().take(None)

    def fetchmany(self, size: int = 1) -> list[Row]:
        """The next rows, at most ``size`` of them."""
        return self._ran().take(size)

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        rows = self._ran().take(1)
        return rows[0] if rows else None

    def __iter__(self) -> Iterator[Row]:
        self._ran()  # before list() asks for the length
        return iter(self.fetchone, None)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._ran().arrow().__arrow_c_stream__(requested_schema)
