"""Tables of the user's own process: data frames and Arrow that statements read by a name.

Both local instances read the object itself, through a temporary view that DuckDB makes of it. No
server hears of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from louver.names import fold
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.local.local import Frame


@dataclass(slots=True)
class Frames:
    """All objects that have a name now, by folded name."""

    known: dict[str, Frame] = field(default_factory=dict)

    def put(
        self, connections: Sequence[duckdb.DuckDBPyConnection], name: str, data: object
    ) -> None:
        """Give an object a name, which another one may have had."""
        for connection in connections:
            arrow_values.register(connection, name, data)
        self.known[fold(name)] = Frame(name, data)

    def drop(self, connections: Sequence[duckdb.DuckDBPyConnection], name: str) -> None:
        """Take a name away."""
        frame = self.known.pop(fold(name))
        for connection in connections:
            with suppress(duckdb.Error):
                connection.unregister(frame.name)

    def restore(self, connections: Sequence[duckdb.DuckDBPyConnection]) -> None:
        """Give all names again, in instances that do not know them."""
        for frame in self.known.values():
            for connection in connections:
                arrow_values.register(connection, frame.name, frame.data)


def held(data: object) -> object:
    """An object that can be read any number of times: streams are read into memory."""
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__}
    if kinds & _READABLE:
        return data
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, Mapping):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    return data


#: What DuckDB reads any number of times, by library and class.
_READABLE = frozenset(
    (
        ("pyarrow", "Table"),
        ("pyarrow", "Dataset"),
        ("pandas", "DataFrame"),
        ("polars", "DataFrame"),
        ("polars", "LazyFrame"),
        ("numpy", "ndarray"),
    )
)
#: What a variable can hold that a statement may name as a table.
_SCANNED = _READABLE | {
    ("pyarrow", "RecordBatch"),
    ("pyarrow", "RecordBatchReader"),
    ("pyarrow", "Scanner"),
    ("_duckdb", "DuckDBPyRelation"),
}


def is_scanned(data: object) -> bool:
    """Whether the object of a variable is a table that a statement may name."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__)
    return not _SCANNED.isdisjoint(kinds)
