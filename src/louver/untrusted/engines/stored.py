"""What an engine stores, as anyone with access to its storage sees it: no keys, no session.

Every engine's module has ``stored_at(url)``, which opens the storage itself, and
``stored_of(engine)``, which reads through an open connection. Both give `StoredRows` where SQL
reaches the rows, or `StoredFiles` where they are files of a lake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.names import quoted

Ask = Callable[[str], pa.Table]
"""Runs a query on the server's tables."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One table of the server: names and SQL types of its columns, and about how many rows; the
    schema that goes without saying is ``home``.
    """

    schema: str
    name: str
    columns: tuple[tuple[str, str], ...]
    row_count: int
    home: str = "main"

    @property
    def quoted(self) -> str:
        """Its name in SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def label(self) -> str:
        """Its name for display."""
        return self.name if self.schema == self.home else f"{self.schema}.{self.name}"

    @property
    def own(self) -> bool:
        """Whether it is one of Louver's bookkeeping tables."""
        return self.name.startswith("louver_")


@dataclass(frozen=True, slots=True)
class Histogram:
    """The values of a stored column in ascending order, the number of rows of each, and NULLs."""

    values: pa.Array
    counts: npt.NDArray[np.int64]
    nulls: int


class StoredRows:
    """The tables of a server, read through a function that runs SQL.

    Args:
        ask: runs a query.
        tables: lists the tables by the engine's own catalog.
    """

    def __init__(self, ask: Ask, tables: Callable[[Ask], list[StoredTable]]) -> None:
        self._ask = ask
        self._tables = tables

    def tables(self) -> list[StoredTable]:
        """Every table; Louver's own bookkeeping tables last."""
        return sorted(self._tables(self._ask), key=lambda t: (t.own, t.schema, t.name))

    def types(self, table: StoredTable) -> pa.Schema:
        """The Arrow types of a table's columns."""
        return self._ask(f"SELECT * FROM {table.quoted} LIMIT 0").schema

    def rows(self, table: StoredTable, count: int) -> list[dict[str, Any]]:
        """The first rows of a table, as stored."""
        records: list[dict[str, Any]] = self._ask(
            f"SELECT * FROM {table.quoted} LIMIT {count:d}"
        ).to_pylist()
        return records

    def columns(
        self, table: StoredTable, names: Sequence[str], count: int | None = None
    ) -> dict[str, pa.Array]:
        """Columns of the first ``count`` rows in the order of row ids; of all rows by default."""
        items = ", ".join(quoted(name) for name in names)
        limit = "" if count is None else f" LIMIT {count:d}"
        rows = self._ask(f"SELECT {items} FROM {table.quoted} ORDER BY row_id{limit}")
        return {
            name: plain(values.combine_chunks())
            for name, values in zip(names, rows.columns, strict=True)
        }

    def histogram(self, table: StoredTable, name: str) -> Histogram:
        """How often a column has each value."""
        item = quoted(name)
        rows = self._ask(f"SELECT {item}, count(*) FROM {table.quoted} GROUP BY {item}")
        values, counts = plain(rows.column(0).combine_chunks()), rows.column(1).cast(pa.int64())
        order = pc.array_sort_indices(values)
        known = order.slice(0, len(values) - values.null_count)
        nulls = pc.sum(counts.filter(pc.is_null(values))).as_py() or 0
        return Histogram(values.take(known), counts.take(known).to_numpy(), nulls)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One data file of a lake."""

    path: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FileTable:
    """One table of a lake; for each index its id, the number of files that it covers, its bytes."""

    label: str
    rows: int
    files: int
    size_bytes: int
    snapshot: int
    columns: tuple[str, ...]
    indexes: tuple[tuple[str, int, int], ...]


@runtime_checkable
class StoredFiles(Protocol):
    """The files of a lake."""

    def tables(self) -> Iterator[FileTable]:
        """Every table that has files."""
        ...

    def files(self, table: FileTable) -> list[StoredFile]:
        """The data files of a table."""
        ...

    def read(self, file: StoredFile, size_bytes: int) -> bytes:
        """The first bytes of a file."""
        ...


Stored = StoredRows | StoredFiles


def no_rows(engine: str) -> errors.Error:
    """For what needs tables of rows, where an engine stores none."""
    return errors.make("engine.operation", engine=engine, operation="a view of its stored rows")


def plain(values: pa.Array) -> pa.Array:
    """Values of an extension type as what it is stored as; fixed-size bytes as bytes."""
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    return storage.cast(pa.binary()) if pa.types.is_fixed_size_binary(storage.type) else storage
