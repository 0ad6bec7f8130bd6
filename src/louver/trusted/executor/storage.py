"""Where tables lie: behind a server's SQL, or as files of a lake. The rest of the executor asks
this and does not know which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.columns import Columns, Tables
from louver.trusted.executor.ledger import Fact, Ledger
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.raw_rows import RawRow
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.executor.state import State
from louver.trusted.planner.ir import RemoteQuery, RowFilter
from louver.trusted.planner.operators import keys
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.pin import Pin
from louver.untrusted.engines.engine import Engine

ROW_ID = "louver_row_id"
"""The column of row numbers among opened rows."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a storage works with."""

    engine: Engine
    backend: Backend
    pin: Pin
    local: LocalEngine
    ledger: Ledger
    row_ids: RowIds
    columns: Columns
    state: State


class Request(Protocol):
    """One question to where a table lies; its text is what EXPLAIN shows."""

    @property
    def sql(self) -> str:
        """What is asked, for people."""
        ...

    @property
    def constants(self) -> Sequence[object]:
        """What goes beside the text."""
        ...


Answers = Mapping[tuple[str, str], tuple[Sequence[tuple[str, str]], pa.Table]]
"""Opened rows by the local table that they fill, with names and types of their columns."""
Narrow = Callable[[RemoteQuery, Request, Answers], Request]


class Storage(Protocol):
    """The tables of one connection."""

    def create(self, table: Table, /) -> None:
        """Make an empty table, within a change of the catalog."""
        ...

    def index(self, table: Table, before: Collection[tuple[str, ...]], /) -> None:
        """Make the indexes that a table has now (`schema.indexes`) but not ``before``, and drop
        those that it has no more, within a change of the catalog.
        """
        ...

    def drop(self, table: Table, /) -> None:
        """Remove a table with its rows, within a change of the catalog."""
        ...

    def drop_schema(self, schema: str, /) -> None:
        """Remove a schema that has no table any more."""
        ...

    def rename(self, before: Table, table: Table, /) -> None:
        """A table has another name or schema now; ``before`` is the table under the old one."""
        ...

    def drop_columns(self, table: Table, names: Sequence[str], /) -> None:
        """Remove stored columns."""
        ...

    def add_column(self, table: Table, column: Column, /) -> bool:
        """Add a column that is NULL in every row there is, if that takes no rewriting."""
        ...

    def append(self, table: Table, batches: Iterator[pa.Table], /) -> None:
        """Append rows of declared columns as they come, within a change of the catalog."""
        ...

    def remove(self, table: Table, row_ids: pa.Array, /) -> None:
        """Delete rows by number, within a change of the catalog."""
        ...

    def replace(self, table: Table, row_ids: pa.Array, rows: pa.Table, /) -> None:
        """Delete one row by number and append one, within a change of the catalog."""
        ...

    def takes_row(self, table: Table, values: Sequence[object], /) -> bool:
        """Whether the raw values of a row add nothing to what is known of a table's columns, and it
        can go by itself (`raw_rows`).
        """
        ...

    def append_row(self, table: Table, row: RawRow, /) -> bool:
        """Append one row, within a change of the catalog; False where it is to go as a table."""
        ...

    def replace_row(self, table: Table, number: int, row: RawRow, /) -> bool:
        """Append one row in the place of another one in the same way."""
        ...

    def remove_row(self, table: Table, number: int, /) -> None:
        """Delete one row of a table that does not count its rows, in the same way."""
        ...

    def stamp(self, table: Table, /) -> str:
        """Another text whenever the rows of a table may be others."""
        ...

    def refresh(self, tables: Sequence[Table], /) -> None:
        """Before a statement outside of a transaction: take over what others have changed of the
        tables that it may name.
        """
        ...

    def flush(self, is_keyed: Callable[[Table], bool], /) -> None:
        """The last step before the catalog's transaction is committed: make changes real;
        ``is_keyed`` tells whether a table has a key that rows of others could break.
        """
        ...

    def committed(self) -> None:
        """The catalog's transaction has been committed."""
        ...

    def undone(self) -> None:
        """The catalog's transaction has been rolled back."""
        ...

    def batches(
        self, table: Table, columns: Sequence[str] | None = None, where: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Opened rows with their numbers (column ``louver_row_id``), for a change: all rows, or
        those that pass a filter and perhaps some more. At least one batch, which may be empty.
        """
        ...

    def request(self, remote: RemoteQuery, literals: Sequence[str]) -> Request:
        """A remote query of a plan with this statement's numbers."""
        ...

    def answer(
        self, remote: RemoteQuery, request: Request, literals: Sequence[str], clock: Clock, /
    ) -> pa.Table:
        """Ask, verify and open; the clock gets the steps `server` and `open`."""
        ...

    def sent(self, remote: RemoteQuery, request: Request, rows: float, /) -> str:
        """The statements that a request sends, for people, if so many rows come of it; 0 where that
        is not known.
        """
        ...

    def narrowing(self, literals: Sequence[str], /) -> Narrow:
        """What a query's answers so far add to its next request."""
        ...

    def shows(self, request: Request, /) -> list[Fact]:
        """What a request shows beside what its plan's leaks say."""
        ...

    def measure(self, on: bool, /) -> list[str]:
        """Measure from now on what costs time to measure, or no more; lines on the last query."""
        ...

    def option(self, name: str, /) -> str:
        """A setting of lakes (`lake.options`) as it stands."""
        ...

    def change_option(self, name: str, value: str | None, /) -> None:
        """Set it, or reset it."""
        ...

    def checkpoint(self) -> None:
        """Write what is in memory to where it stays."""
        ...


def only_reads() -> errors.Error:
    """Several databases are read together, and never changed together."""
    return errors.make("internal", detail="a change of several databases at once")


class ReadOnly:
    """The changing half of a storage, for one that only queries are sent to."""

    def create(self, _table: Table) -> None:
        raise only_reads()

    def index(self, _table: Table, _before: Collection[tuple[str, ...]]) -> None:
        raise only_reads()

    def drop(self, _table: Table) -> None:
        raise only_reads()

    def drop_schema(self, _schema: str) -> None:
        raise only_reads()

    def rename(self, _before: Table, _table: Table) -> None:
        raise only_reads()

    def drop_columns(self, _table: Table, _names: Sequence[str]) -> None:
        raise only_reads()

    def add_column(self, _table: Table, _column: Column) -> bool:
        raise only_reads()

    def append(self, _table: Table, _batches: Iterator[pa.Table]) -> None:
        raise only_reads()

    def remove(self, _table: Table, _row_ids: pa.Array) -> None:
        raise only_reads()

    def replace(self, _table: Table, _row_ids: pa.Array, _rows: pa.Table) -> None:
        raise only_reads()

    def takes_row(self, _table: Table, _values: Sequence[object]) -> bool:
        return False

    def append_row(self, _table: Table, _row: RawRow) -> bool:
        raise only_reads()

    def replace_row(self, _table: Table, _number: int, _row: RawRow) -> bool:
        raise only_reads()

    def remove_row(self, _table: Table, _number: int) -> None:
        raise only_reads()

    def refresh(self, _tables: Sequence[Table]) -> None:
        """Each database was refreshed by itself."""

    def flush(self, _is_keyed: Callable[[Table], bool]) -> None:
        raise only_reads()

    def committed(self) -> None:
        raise only_reads()

    def undone(self) -> None:
        raise only_reads()

    def measure(self, _on: bool) -> list[str]:
        return []

    def option(self, _name: str) -> str:
        raise only_reads()

    def change_option(self, _name: str, _value: str | None) -> None:
        raise only_reads()

    def checkpoint(self) -> None:
        raise only_reads()


def whole(
    storage: Storage,
    table: Table,
    columns: Sequence[str] | None = None,
    where: RowFilter | None = None,
) -> pa.Table:
    """All rows of a table, or those that pass a filter, with their numbers (column
    ``louver_row_id``), every row once.
    """
    return pa.concat_tables(list(storage.batches(table, columns, where)))


def different(rows: pa.ChunkedArray) -> int:
    """How many different row numbers there are, which is quickly seen where they come in order."""
    numbers = rows.combine_chunks()
    if numbers.null_count == 0:
        rising = pc.greater(numbers[1:], numbers[: max(len(numbers) - 1, 0)])
        if pc.all(rising, min_count=0).as_py():
            return len(numbers)
    if numbers.null_count:
        return len(rows.unique())
    if not len(numbers):
        return 0
    # Sorting is quicker than hashing many.
    values = np.sort(numbers.to_numpy(zero_copy_only=False))
    return int(np.count_nonzero(values[1:] != values[:-1])) + 1


def complete(remote: RemoteQuery, tables: Tables, reply: pa.Table) -> None:
    """A table that was read whole must have as many rows as were stored, each once; one that was
    counted, as many as the answer says. ``tables`` are the plan's by id.
    """
    table = tables[remote.sources[0].table]
    if remote.counted and table.counted:
        answer = reply.column(remote.counted)[0].as_py()
        if answer != table.row_count:
            raise errors.make(
                "row.missing", table=table.label, expected=table.row_count, found=answer
            )
    slot = remote.sources[0].slot
    if not remote.whole_table or len(remote.sources) != 1 or remote.where or remote.limit:
        _each_once(remote, table, reply)
        return
    require_complete(table, reply.num_rows, different(reply.column(f"r{slot}")))


def require_complete(table: Table, count: int, different: int, *, narrowed: bool = False) -> None:
    """Rows that stand for a whole table, or ``narrowed`` for some of it: each once, and where the
    table is counted, as many as were stored.
    """
    few = count > table.row_count if narrowed else count != table.row_count
    if different != count or (few and table.counted):
        expected = table.row_count if table.counted else count
        raise errors.make("row.missing", table=table.label, expected=expected, found=different)


def _each_once(remote: RemoteQuery, table: Table, reply: pa.Table) -> None:
    """A query of one table gives no row of it twice, whatever it was narrowed by. Only of a look-up
    by key is it known without their numbers how many rows there may be.
    """
    if len(remote.sources) != 1 or remote.grouped or reply.num_rows < 2:
        return
    name = f"r{remote.sources[0].slot}"
    most = keys.most_rows(remote)
    if name in reply.column_names:
        rows = reply.column(name)
        most = reply.num_rows if most is None else most
        if different(rows) == reply.num_rows <= most:
            return
        counts = rows.value_counts()
        row = max(counts, key=lambda item: item["counts"].as_py())["values"].as_py()
        raise errors.make("row.repeated", table=table.label, row=row)
    if most is not None and reply.num_rows > most:
        raise errors.make("row.repeated", table=table.label, row="?")


_Answer = TypeVar("_Answer")


def in_one_state(engine: Engine, tables: Iterable[Table], ask: Callable[[], _Answer]) -> _Answer:
    """What asks for rows and then for tiles of them. Outside of a transaction others may have
    removed a tile in between: where one is missing, all is asked again in one state.
    """
    try:
        return ask()
    except errors.VerificationError:
        if engine.in_transaction or not any(table.tiles for table in tables):
            raise
    engine.begin()
    try:
        return ask()
    finally:
        with suppress(Exception):
            engine.rollback()


@contextmanager
def translate_reply_errors() -> Iterator[None]:
    """What cannot be taken from a reply is the reply's fault. What Louver wrote binds, unless the
    server's tables are others now.
    """
    try:
        yield
    except errors.ProgrammingError as error:
        detail = f"its tables are not as they were made ({error.message.partition(chr(10))[0]})"
        raise errors.make("reply.format", detail=detail) from error
    except (ValueError, pa.ArrowException) as error:
        raise errors.make("reply.format", detail=str(error)) from error
