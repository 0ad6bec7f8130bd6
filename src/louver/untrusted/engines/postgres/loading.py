"""Rows that a statement brings to a PostgreSQL server: as bound arrays, or by COPY."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver.names import quoted
from louver.untrusted.engines.engine import Otherwise, Traffic
from louver.untrusted.engines.postgres import values
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.engines.postgres.journal import Journal
from louver.untrusted.engines.postgres.pipeline import Step, Waiting, guarded
from louver.wire.messages import Constant, Statement

if TYPE_CHECKING:
    from louver._rust import postgres
    from louver._rust.postgres import SealedRow

FEW_ROWS = 1_000
"""Rows that are inserted as bound arrays in one round trip; more go by COPY, and so do columns of
which there are no arrays.
"""


class Loading(ABC):
    """The part of an engine that sends rows."""

    address: str
    in_transaction: bool
    traffic: Traffic
    _journal: Journal

    @abstractmethod
    def _settle(self) -> None:
        """Before the connection is used again."""

    @abstractmethod
    def _enter(self) -> None:
        """Open the transaction now."""

    @abstractmethod
    def _wait(self, item: Waiting) -> None:
        """Keep a statement for the next one."""

    @abstractmethod
    def _send(self, sql: str, bound: Sequence[Any], *, writes: bool) -> Any:
        """Send one statement."""

    @abstractmethod
    def _live(self, *, within: bool = False) -> postgres.Session:
        """The session."""

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Insert Arrow rows into the server table with this (quoted) SQL name, by column name."""
        if isinstance(rows, pa.Table):
            self.traffic.rows_out += rows.num_rows
            self.traffic.bytes_out += rows.nbytes
            if rows.num_rows <= FEW_ROWS and values.is_bound(rows.schema):
                self.traffic.statements += 1
                self._wait(Waiting(values.insertion(table, rows), writes=True))
                return
            if not self._one_by_one(table, rows):
                self._copy(table, rows.schema, iter(rows.to_batches(FEW_ROWS)), by_thread=True)
            return
        # What a user gives may belong to this thread, like a cursor of SQLite's.
        self._copy(table, rows.schema, self._counted(rows))

    #: See `TakesRows`.
    takes_rows = True

    def write_row(
        self, sql: str, row: SealedRow, more: Sequence[Constant], otherwise: Otherwise | None
    ) -> None:
        """See `TakesRows`."""
        self.traffic.statements += 1
        self.traffic.rows_out += 1
        self.traffic.bytes_out += row.size()
        step: Step = (sql, [row, *more])
        if otherwise is not None:
            step = guarded(*step, 1, writes=True)
        self._wait(Waiting(step, writes=True, otherwise=otherwise))

    def _one_by_one(self, table: str, rows: pa.Table) -> bool:
        """Insert a few rows each by itself, with the next statement; whether they can be."""
        from louver.untrusted.engines.postgres import single_rows

        together = rows.num_rows <= 1 or self.in_transaction
        if not together or rows.num_rows > single_rows.MOST_ROWS:
            return False
        steps = single_rows.insertions(table, rows)
        for step in steps or ():
            self._wait(Waiting(step, writes=True))
        if steps is not None:
            self.traffic.statements += rows.num_rows
        return steps is not None

    @contextmanager
    def _filled(self, statement: Statement) -> Iterator[Statement]:
        """A statement whose Arrow inputs can all be bound: others are temporary tables meanwhile,
        of the transaction that the statement is in.
        """
        by_copy = {n: r for n, r in statement.tables.items() if not values.is_bound(r.schema)}
        if not by_copy:
            yield statement
            return
        for name, rows in by_copy.items():
            types = [values.sent(pa.array([], field.type))[2] for field in rows.schema]
            columns = map(" ".join, zip(map(quoted, rows.column_names), types, strict=True))
            self._send(f"CREATE TEMP TABLE {name} ({', '.join(columns)})", (), writes=True)
            self._copy(f"pg_temp.{name}", rows.schema, iter(rows.to_batches(FEW_ROWS)))
        bound = {n: rows for n, rows in statement.tables.items() if n not in by_copy}
        yield replace(statement, tables=bound)
        for name in by_copy:
            self._send(f"DROP TABLE pg_temp.{name}", (), writes=True)

    def _copy(
        self, table: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch], *,
        by_thread: bool = False,
    ) -> None:  # fmt: skip
        self._settle()
        self._enter()
        self._journal.forget()
        fields = [values.sent(pa.array([], field.type)) for field in schema]
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in schema.names)
        sql = f"COPY {table} ({names}) FROM STDIN (FORMAT binary)"
        self.traffic.statements += 1

        def plain() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                columns = [values.sent(column)[0] for column in batch.columns]
                yield pa.RecordBatch.from_arrays(columns, batch.schema.names)

        with translated(self.address, unsure=not self.in_transaction):
            self._live().copy_in(sql, [number for _, number, _ in fields], plain(), by_thread)

    def _counted(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self.traffic.bytes_out += batch.nbytes
            self.traffic.rows_out += batch.num_rows
            yield batch
