"""Everything as plaintext in another database: PostgreSQL's own statements, and the rows.

All of it is one transaction there, so that nothing is half written. The rows are of one state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.names import quoted
from louver.trusted import backends
from louver.trusted.executor import seen_state, storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres import circles, plaintext_queries
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.declarations import (
    OF_IDENTITY,
    TEXT,
    statements,
)
from louver.trusted.executor.local.postgres.plaintext import SourceColumn
from louver.trusted.executor.local.postgres.type_names import TypeNames
from louver.trusted.executor.progress import Progress
from louver.trusted.vault.catalog import Table

_OPENING = (
    "SET LOCAL search_path = ''", "SET LOCAL check_function_bodies = off",
    "SET LOCAL client_min_messages = error", "SET LOCAL intervalstyle = postgres",
)  # fmt: skip
_BATCH, _POINT = "louver_batch", "louver_export"
#: What of a table is written: not what the server computes.
_WRITTEN = (
    "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0"
    " AND NOT attisdropped AND attgenerated = ''"
)
_OID = "SELECT $1::regclass::oid"


def export(
    context: Context, url: str, *, progress: Progress | None = None
) -> tuple[dict[str, int], list[str]]:
    """Write everything into the database at a URL, in which nothing of these names exists yet; the
    number of rows of each table, and no notice, for nothing is left.
    """
    scheme = url.partition("://")[0]
    module = backends.engine(scheme)
    if not context.in_transaction:
        seen_state.refresh(context)
    with closing(module.open_url(url)) as engine:
        if engine.address == context.engine.address:
            raise errors.make("source.same", place=engine.address)
        # However its address is spelled: whose server holds ciphertext gets no plaintext beside it.
        backends.plain(scheme).require_others(engine)
        address = engine.address
    with closing(module.session_at(url)) as session:
        session.keep_no_statements()
        target = _Target(session, partial(module.translated, address))
        texts = _statements(context)
        with seen_state.same_state(context):
            target.run("BEGIN")
            for sql in _OPENING:
                target.run(sql)
            target.run_all(texts.early)
            counts = _rows(context, target, progress)
            target.run_all(texts.late)
            target.run("COMMIT")
    return counts, []


@dataclass(frozen=True, slots=True)
class _Statements:
    """What comes before the rows, and behind them."""

    early: list[str]
    late: list[str]


def _statements(context: Context) -> _Statements:
    schema = context.local.schema
    early, keys, late, settled = list[str](), list[str](), list[str](), list[str]()
    functions = schema.snapshot(macros=True).items()
    for item in schema.objects():
        if item.temporary:
            continue
        if item.kind == "SEQUENCE":
            first, *others = statements(item)
            # The one of an identity column comes with its table.
            early += [] if first.startswith(OF_IDENTITY) else [first]
            settled += others
        elif item.kind == "TABLE":
            sql, own = circles.parted(item.sql)
            early.append(sql)
            keys += own
        elif item.kind in ("SCHEMA", "TYPE"):
            early.append(item.sql)
        else:
            late.append(item.sql)
    early += [seen.sql for (kind, _, _), seen in functions if kind == "MACRO"]
    return _Statements(early, [*keys, *late, *settled])


class _Target:
    """The database that is written to."""

    def __init__(
        self, session: postgres.Session, translated: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._translated = translated
        self.connection = PostgresConnection(session, TypeNames())

    def run(self, sql: str) -> None:
        """Run one statement."""
        with self._translated():
            self.connection.raw.run([(sql, [])])

    def run_all(self, texts: Sequence[str]) -> None:
        """Run statements, as often as one more of them runs."""
        waiting = list(texts)
        while waiting:
            failure: errors.Error | None = None
            left = []
            for sql in waiting:
                self.run(f"SAVEPOINT {_POINT}")
                try:
                    self.run(sql)
                except errors.Error as error:
                    self.run(f"ROLLBACK TO {_POINT}")
                    failure = failure or error
                    left.append(sql)
                self.run(f"RELEASE {_POINT}")
            if failure is not None and len(left) == len(waiting):
                raise failure
            waiting = left

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.connection.fetchall(sql, list(parameters))

    def fill(self, table: Table, batches: Iterator[pa.Table], texts: Sequence[str]) -> None:
        """Put rows into a table; columns of the names ``texts`` come as texts."""
        names = [str(name) for (name,) in self.rows(_WRITTEN, table.local_name)]
        for batch in batches:
            rows = batch.select(names)
            if not texts:
                self.connection.fill(table.local_name, names, rows)
                continue
            types = dict(zip(names, self._types(table, names), strict=True))
            columns = [(name, TEXT if name in texts else types[name]) for name in names]
            self.connection.create(f"pg_temp.{_BATCH}", columns, rows)
            listed = ", ".join(map(quoted, names))
            values = ", ".join(f"{quoted(name)}::{types[name]}" for name in names)
            self.run(
                f"INSERT INTO {table.local_name} ({listed}) OVERRIDING SYSTEM VALUE"
                f" SELECT {values} FROM pg_temp.{_BATCH}"
            )
            self.run(f"DROP TABLE pg_temp.{_BATCH}")

    def _types(self, table: Table, names: Sequence[str]) -> list[str]:
        sql = (
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = $1::regclass AND attname = $2"
        )
        return [str(self.rows(sql, table.local_name, name)[0][0]) for name in names]


def _rows(context: Context, target: _Target, progress: Progress | None) -> dict[str, int]:
    """Copy the rows of all tables, and compare their numbers."""
    total = sum(table.row_count for table in context.catalog.tables.values())
    counts: dict[str, int] = {}

    def opened(table: Table, texts: Sequence[str]) -> Iterator[pa.Table]:
        for batch in context.storage.batches(table):
            rows = batch.drop_columns([storage.ROW_ID])
            yield _as_texts(context, table, rows, texts) if texts else rows
            counts[table.label] += batch.num_rows
            if progress is not None:
                done = sum(counts.values())
                progress(done, max(done, total))

    for table in context.catalog.tables.values():
        counts[table.label] = 0
        oid = target.rows(_OID, table.local_name)[0][0]
        columns = [SourceColumn(*row) for row in target.rows(plaintext_queries.COLUMNS, oid)]
        texts = [column.name for column in columns if column.as_text]
        target.fill(table, opened(table, texts), texts)
        ((rows,),) = target.rows(f"SELECT count(*) FROM {table.local_name}")
        if rows != counts[table.label]:
            expected = counts[table.label]
            raise errors.make("source.count", table=table.label, rows=rows, expected=expected)
    return counts


def _as_texts(context: Context, table: Table, rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """Rows whose values of users' types are texts: their binary form is of one database."""
    columns = [(column.name, column.type) for column in table.columns]
    listed = ", ".join(
        f"{quoted(name)}::text AS {quoted(name)}" if name in texts else quoted(name)
        for name, _ in columns
    )
    rows = rows.select([name for name, _ in columns])
    return context.local.finish_over(_BATCH, columns, rows, f"SELECT {listed} FROM {_BATCH}")
