"""Tables behind a server's SQL: statements out, Arrow back, opened and verified here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.trusted.executor import binding, row_writer, table_scan
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.define import representations
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.storage import Narrow, Request
from louver.trusted.planner.plan import Remote
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.stored_types import BYTES, ROW_ID
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session
    from louver.trusted.executor.table_scan import Filter


class ServerStorage:
    """The tables of a database engine (see `storage.Storage`)."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(self, table: Table) -> None:
        """Create the server's table: no constraint, no name and no type of an encrypted column."""
        backend = self._session.backend
        columns = [("row_id", backend.stored_type(ROW_ID))]
        for column in table.columns:
            columns += representations.columns_of(column, backend)
        helpers = (table.helper_one, table.helper_random, table.helper_unit)
        bytes_ = backend.stored_type(BYTES)
        columns += [(name, bytes_) for name in (*helpers, *table.packs) if name]
        self._run(*backend.create_schema(table.schema), backend.create_table(table, columns))

    def drop(self, table: Table) -> None:
        self._run(self._session.backend.drop_table(table))

    def drop_schema(self, schema: str) -> None:
        self._run(*self._session.backend.drop_schema(schema))

    def rename(self, before: Table, table: Table) -> None:
        self._run(self._session.backend.rename_table(before, table))

    def drop_columns(self, table: Table, names: Sequence[str]) -> None:
        for name in names:
            self._run(self._session.backend.drop_column(table, name))

    def add_column(self, _table: Table, _column: Column) -> bool:
        return False

    def append(self, table: Table, batches: Iterator[pa.Table]) -> None:
        row_writer.append_sealed(self._session, table, batches)

    def remove(self, table: Table, row_ids: pa.Array) -> None:
        row_writer.remove_numbered(self._session, table, row_ids)

    def stamp(self, _table: Table) -> str:
        return self._session.catalog.stamp

    def refresh(self, tables: Sequence[Table]) -> None:
        """The catalog counts the rows of a server's tables."""

    def flush(self) -> None:
        """What was sent is the server's transaction's."""

    def committed(self) -> None:
        """Nothing is kept here."""

    def undone(self) -> None:
        """Nothing is kept here."""

    def batches(
        self, table: Table, columns: Sequence[str] | None = None, where: Filter | None = None
    ) -> Iterator[pa.Table]:
        return table_scan.from_server(self._session, table, columns, where)

    def request(self, remote: Remote, literals: Sequence[str]) -> Statement:
        return binding.bind_remote(self._session, remote, literals)

    def answer(
        self, remote: Remote, request: Request, literals: Sequence[str], clock: Clock
    ) -> pa.Table:
        session = self._session
        if not isinstance(request, Statement):
            raise errors.make("internal", detail="a server received an unknown request")
        with clock.step("server"), table_scan.understood():
            reply = session.engine.query(request)
        with clock.step("open"), table_scan.understood():
            opened = session.columns.open(remote, reply, literals, session.home.arrow_field)
            complete(remote, reply)
        return opened

    def narrowing(self, _literals: Sequence[str]) -> Narrow:
        return lambda _, request, __: request

    def shows(self, _request: Request) -> list[Fact]:
        return []

    def measure(self, _on: bool) -> list[str]:
        return []

    def option(self, name: str) -> str:
        raise errors.make("lake.only", name=name, place=self._session.engine.place or "in memory")

    def change_option(self, name: str, _value: str | None) -> None:
        self.option(name)

    def checkpoint(self) -> None:
        if sql := self._session.backend.checkpoint():
            self._run(sql)

    def _run(self, *texts: str) -> None:
        for sql in texts:
            self._session.engine.run(Statement(sql, kind="ddl"))


def complete(remote: Remote, reply: pa.Table) -> None:
    """A table that was read whole must have as many rows as were stored, each once; one that was
    counted, as many as the answer says.
    """
    if remote.counted:
        table, answer = remote.sources[0].table, reply.column(remote.counted)[0].as_py()
        if answer != table.row_count:
            raise errors.make(
                "row.missing", table=table.label, expected=table.row_count, found=answer
            )
    if not remote.whole_table or len(remote.sources) != 1 or remote.where or remote.limit:
        return
    table = remote.sources[0].table
    rows = reply.column(f"r{remote.sources[0].slot}")
    if reply.num_rows != table.row_count or len(rows.unique()) != reply.num_rows:
        raise errors.make(
            "row.missing", table=table.label, expected=table.row_count, found=len(rows.unique())
        )
