"""An engine that passes queries on and refuses everything that would change the database."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from louver import errors
from louver.wire.messages import Statement


class ReadOnlyEngine:
    """Another engine, of which only queries and transactions are used."""

    def __init__(self, engine: Any) -> None:
        """Pass queries on to `engine`."""
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, statement: Statement) -> int:  # noqa: ARG002
        """Refused: what is run changes the database."""
        raise errors.make("connection.read_only")

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:  # noqa: ARG002
        """Refused: rows change the database."""
        raise errors.make("connection.read_only")

    def side(self) -> ReadOnlyEngine:
        """A second connection that only reads."""
        return ReadOnlyEngine(self._engine.side())
