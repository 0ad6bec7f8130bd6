"""Tables behind a server's SQL: statements out, Arrow back, opened and verified here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.backends.backend import Backend
from louver.trusted.backends.printer import Printer
from louver.trusted.executor import cardinality
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.columns import Tables
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.executor.schema import representations
from louver.trusted.executor.storage import (
    ROW_ID,
    Narrow,
    Parts,
    Request,
    translate_reply_errors,
)
from louver.trusted.planner import choose, postcondition
from louver.trusted.planner.ir import Opening, RemoteQuery, RowFilter, TableRef, Template
from louver.trusted.planner.render import remote_text, slots_of
from louver.trusted.planner.sql.scope import Source
from louver.trusted.vault import row_id_ranges, stored_types
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import condition_of, with_condition
from louver.trusted.vault.scheme import has_shares, scheme_of
from louver.trusted.vault.types import can_share, shifted, value_range
from louver.wire.messages import Statement

BATCH_ROWS = 65_536
"""Rows sealed at a time, so that memory does not grow with a load."""
SHARED_ROWS = 8_192
"""As many where shares, which are a hundred times as wide, are made of them."""


class ServerStorage:
    """The tables of a database engine (see `storage.Storage`)."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def create(self, table: Table) -> None:
        """Create the server's table: no constraint, no name and no type of an encrypted column."""
        backend = self._parts.backend
        columns = [("row_id", backend.stored_type(stored_types.ROW_ID))]
        # First: DuckDB drops no column before one that is UNIQUE.
        for name in table.tags:
            type_ = backend.stored_type(stored_types.WIDE_CODE)
            columns.append((name, f"{type_} {backend.unique}"))
        for column in table.columns:
            columns += representations.columns_of(column, backend)
        helpers = (table.helper_one, table.helper_random, table.helper_unit)
        bytes_ = backend.stored_type(stored_types.BYTES)
        columns += [(name, bytes_) for name in (*helpers, *table.packs) if name]
        self._run(*backend.create_schema(table.schema), backend.create_table(table, columns))

    def drop(self, table: Table) -> None:
        self._run(self._parts.backend.drop_table(table))

    def drop_schema(self, schema: str) -> None:
        self._run(*self._parts.backend.drop_schema(schema))

    def rename(self, before: Table, table: Table) -> None:
        self._run(self._parts.backend.rename_table(before, table))

    def drop_columns(self, table: Table, names: Sequence[str]) -> None:
        for name in names:
            self._run(self._parts.backend.drop_column(table, name))

    def add_column(self, _table: Table, _column: Column) -> bool:
        return False

    def append(self, table: Table, batches: Iterator[pa.Table]) -> None:
        _append(self._parts, table, batches)

    def remove(self, table: Table, row_ids: pa.Array) -> None:
        _remove(self._parts, table, row_ids)

    def stamp(self, _table: Table) -> str:
        return self._parts.state.catalog.stamp

    def refresh(self, tables: Sequence[Table]) -> None:
        """The catalog counts the rows of a server's tables."""

    def flush(self, _is_keyed: Callable[[Table], bool]) -> None:
        """What was sent is the server's transaction's."""

    def committed(self) -> None:
        """Nothing is kept here."""

    def undone(self) -> None:
        """Nothing is kept here."""

    def batches(
        self, table: Table, columns: Sequence[str] | None = None, where: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        return _scanned(self._parts, table, columns, where)

    def request(self, remote: RemoteQuery, literals: Sequence[str]) -> Statement:
        return _bound(self._parts, remote, _tables(self._parts, remote), literals)

    def answer(
        self, remote: RemoteQuery, request: Request, literals: Sequence[str], clock: Clock
    ) -> pa.Table:
        parts, tables = self._parts, _tables(self._parts, remote)
        if not isinstance(request, Statement):
            raise errors.make("internal", detail="a server received an unknown request")
        with clock.step("server"), translate_reply_errors():
            reply = parts.engine.query(request)
        with clock.step("open"), translate_reply_errors():
            opened = parts.columns.open(remote, tables, reply, literals, parts.local.arrow_field)
            complete(remote, tables, reply)
        return opened

    def narrowing(self, _literals: Sequence[str]) -> Narrow:
        return lambda _, request, __: request

    def shows(self, _request: Request) -> list[Fact]:
        return []

    def measure(self, _on: bool) -> list[str]:
        return []

    def option(self, name: str) -> str:
        raise errors.make("lake.only", name=name, place=self._parts.engine.address or "in memory")

    def change_option(self, name: str, _value: str | None) -> None:
        self.option(name)

    def checkpoint(self) -> None:
        if sql := self._parts.backend.checkpoint():
            self._run(sql)

    def _run(self, *texts: str) -> None:
        for sql in texts:
            self._parts.engine.run(Statement(sql, kind="ddl"))


class Printed(WeakKeyDictionary[RemoteQuery, dict[bool, Template]]):
    """The printed forms of queries: with what the server has stored for them, and without. They go
    with the plan; who has the server store more must drop them.
    """


def complete(remote: RemoteQuery, tables: Tables, reply: pa.Table) -> None:
    """A table that was read whole must have as many rows as were stored, each once; one that was
    counted, as many as the answer says. ``tables`` are the plan's by id.
    """
    table = tables[remote.sources[0].table]
    if remote.counted:
        answer = reply.column(remote.counted)[0].as_py()
        if answer != table.row_count:
            raise errors.make(
                "row.missing", table=table.label, expected=table.row_count, found=answer
            )
    if not remote.whole_table or len(remote.sources) != 1 or remote.where or remote.limit:
        return
    rows = reply.column(f"r{remote.sources[0].slot}")
    if reply.num_rows != table.row_count or len(rows.unique()) != reply.num_rows:
        raise errors.make(
            "row.missing", table=table.label, expected=table.row_count, found=len(rows.unique())
        )


def _tables(parts: Parts, remote: RemoteQuery) -> Tables:
    """The tables of a plan as the catalog has them now, by id."""
    refs = (*remote.sources, *remote.inner)
    return {ref.table: parts.state.catalog.by_id(ref.table) for ref in refs}


def _bound(parts: Parts, remote: RemoteQuery, tables: Tables, literals: Sequence[str]) -> Statement:
    """One remote query as a statement, checked."""
    fixed = parts.state.in_transaction or parts.engine.in_transaction
    usable = not fixed or all(tables[s.table].kept_complete for s in remote.sources)
    printed = parts.state.cache(Printed).setdefault(remote, {})
    template = printed.get(usable)
    if template is None:
        template = printed[usable] = _printed(parts, remote, tables, usable)
    constants = [parts.columns.constant(item, literals) for item in template.constants]
    return Statement(template.text(literals), tuple(constants))


def _printed(parts: Parts, remote: RemoteQuery, tables: Tables, usable: bool) -> Template:
    shares = any(has_shares(tables[source.table]) for source in remote.sources)
    modulus = parts.columns.modulus() if shares else b""
    slots = slots_of(remote, tables, parts.backend, materialized=usable)
    printer = Printer(parts.backend, slots, modulus, parts.columns.powers)
    sql = postcondition.check(remote_text(remote, printer), remote, tables, parts.backend)
    return Template(sql, tuple(printer.constants))


def scan_facts(backend: Backend, table: Table, columns: Sequence[str] | None = None) -> list[Fact]:
    """What reading a table for a change shows."""
    remote, source = _scan(backend, table, columns, None)
    return choose.reads(remote, [source])


def _scan(
    backend: Backend, table: Table, columns: Sequence[str] | None, where: RowFilter | None
) -> tuple[RemoteQuery, Source]:
    names = [c.name for c in table.columns] if columns is None else list(columns)
    ref = where.source if where else TableRef(0, table.name, table.id)
    source = Source(ref.slot, ref.alias, table, backend)
    outputs = [choose.stored(name, source, name) for name in names]
    nodes = where.nodes if where else ()
    home = (table.schema, table.name)
    remote = RemoteQuery(home, (ref,), (), tuple(outputs), nodes, whole_table=True)
    return remote, source


def _scanned(
    parts: Parts, table: Table, columns: Sequence[str] | None, where: RowFilter | None
) -> Iterator[pa.Table]:
    """The same of a server's table.

    A scan without a filter shows sizes only. A repeated row is found out at the end and, where
    there is no filter, a missing one too.
    """
    (remote, source), tables = _scan(parts.backend, table, columns, where), {table.id: table}
    statement = _bound(parts, remote, tables, where.literals if where else [])
    if where is None:
        request = (statement.sql, statement.constants)
        condition = condition_of(request, [table], lambda _: parts.state.catalog.stamp)
        shown = with_condition(choose.reads(remote, [source]), condition)
        parts.ledger.record(shown, "a change (scan)")
    count, numbers = 0, []
    reader = parts.engine.stream(statement)
    for batch in reader:
        rows = _opened(parts, remote, tables, pa.Table.from_batches([batch]))
        count += rows.num_rows
        numbers.append(rows.column(ROW_ID))
        yield rows
    if not numbers:
        yield _opened(parts, remote, tables, pa.Table.from_batches([], reader.schema))
    unique = pa.chunked_array([c for n in numbers for c in n.chunks], pa.int64()).unique()
    narrowed = where is not None and bool(where.nodes)
    complete = count <= table.row_count if narrowed else count == table.row_count
    if not complete or len(unique) != count:
        raise errors.make("row.missing", table=table.label, expected=table.row_count, found=count)


def _opened(parts: Parts, remote: RemoteQuery, tables: Tables, reply: pa.Table) -> pa.Table:
    if not remote.outputs:
        return pa.table({ROW_ID: reply.column("r0")})
    rows = parts.columns.open(remote, tables, reply, [], parts.local.arrow_field)
    return rows.append_column(ROW_ID, reply.column("r0"))


def _append(parts: Parts, table: Table, batches: Iterator[pa.Table]) -> None:
    """Append rows to a server's table in one statement; they are sealed while it runs."""
    sealed = _sealed(parts, table, batches)
    begun = list(islice(sealed, 2))
    if len(begun) == 1:
        parts.engine.append(parts.backend.table(table), begun[0])
    elif begun:
        reader = pa.RecordBatchReader.from_batches(
            begun[0].schema, (b for rows in chain(begun, sealed) for b in rows.to_batches())
        )
        parts.engine.append(parts.backend.table(table), reader)


def _sealed(parts: Parts, table: Table, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    step = min(BATCH_ROWS, SHARED_ROWS) if has_shares(table) else BATCH_ROWS
    for rows in batches:
        for start in range(0, rows.num_rows, step):
            batch = rows.slice(start, step)
            for column in table.columns:
                _take_in(parts, table, column, batch.column(column.name))
            ids = parts.row_ids.take(batch.num_rows, parts.state.catalog)
            sealed = parts.columns.seal(table, batch, ids)
            table.row_count += batch.num_rows
            if batch.num_rows:
                row_id_ranges.append(table, ids[0].as_py(), batch.num_rows)
            table.kept_complete = not table.kept
            # The server's DuckDB gives up its database for what the one locally does.
            yield arrow_values.readable(sealed)


def _remove(parts: Parts, table: Table, row_ids: pa.Array) -> None:
    """Delete rows of a server's table by number."""
    gone = pa.table({"row_id": row_ids})
    parts.engine.run(
        Statement(
            parts.backend.delete_rows(table, "louver_gone"),
            kind="write",
            tables={"louver_gone": gone},
        )
    )
    table.row_count -= len(row_ids)
    row_id_ranges.remove(table, row_ids)


def _take_in(parts: Parts, table: Table, column: Column, values: pa.ChunkedArray) -> None:
    """New values into a column's bounds. Under an open layer the first NULL shows itself."""
    had_null = column.has_null
    widen(column, values)
    if column.has_null and not had_null:
        # A layer that was opened in a transaction that was undone is closed, but the server has
        # its key.
        sentences = parts.ledger.kinds(table.id, column.id)
        shown = [
            Opening(table.id, column.id, onion, state)
            for onion, state in column.layers.items()
            if state != "closed" or _was_open(onion, sentences)
        ]
        if shown:
            facts = of_openings(shown, parts.state.catalog)
            parts.ledger.record(facts, f"INSERT INTO {table.label}")


def _was_open(onion: str, facts: Collection[str]) -> bool:
    opened = scheme_of(onion).opened
    return opened is not None and opened.kind in facts


def widen(column: Column, values: pa.ChunkedArray) -> None:
    """Take new values into a column's bounds, and into its count of different ones."""
    cardinality.see(column, values)
    if not can_share(column.type):
        column.widen(None, None, values.null_count > 0)
        return
    low, high = _bounds(values, column.type)
    column.widen(low, high, values.null_count > 0)


def _bounds(values: pa.ChunkedArray, type_: str) -> tuple[int | None, int | None]:
    """Smallest and largest unscaled value; the type's own limits where Arrow cannot compare."""
    if values.null_count == len(values):
        return None, None
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif not pa.types.is_integer(kind) and not pa.types.is_decimal(kind):
        limits = value_range(type_)
        return limits or (None, None)
    combined = pc.min_max(values)
    low, high = combined["min"].as_py(), combined["max"].as_py()
    if pa.types.is_decimal(kind):
        scale = kind.scale
        return int(shifted(low, scale)), int(shifted(high, scale))
    return low, high
