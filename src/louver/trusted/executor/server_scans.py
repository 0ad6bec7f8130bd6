"""Scans of a server's table for a change: all rows, or those that pass a filter, in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from louver.trusted.backends.backend import Backend
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.columns import Tables
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.storage import ROW_ID, Parts, require_complete
from louver.trusted.planner import choose
from louver.trusted.planner.ir import RemoteQuery, RowFilter, TableRef
from louver.trusted.planner.sql.scope import Source
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import condition_of, with_condition
from louver.wire.messages import Statement

Bind = Callable[[Parts, RemoteQuery, Tables, Sequence[str]], Statement]


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


def scanned(
    parts: Parts, table: Table, columns: Sequence[str] | None, where: RowFilter | None,
    bound: Bind, looking_up: Callable[[Parts, RemoteQuery, Sequence[str]], Any],
) -> Iterator[pa.Table]:  # fmt: skip
    """What `Storage.batches` gives of a server's table; queries are ``bound``, and those in two
    steps asked by what ``looking_up`` makes.

    A scan without a filter shows sizes only. A repeated row is found out at the end and, where
    there is no filter, a missing one too.
    """
    if where is not None and where.lookup is not None:
        reader = looking_up(parts, where.lookup.first, where.literals)
        yield reader.rows(where.lookup, Clock())
        return
    (remote, source), tables = _scan(parts.backend, table, columns, where), {table.id: table}
    statement = bound(parts, remote, tables, where.literals if where else [])
    if where is None:
        request = (statement.sql, statement.constants)
        condition = condition_of(request, [table], lambda _: parts.state.catalog.stamp)
        shown = with_condition(choose.reads(remote, [source]), condition)
        parts.ledger.record(shown, "a change (scan)")
    count, numbers = 0, []
    for rows in _opened_parts(parts, remote, table, statement):
        count += rows.num_rows
        numbers.append(rows.column(ROW_ID))
        yield rows
    unique = pa.chunked_array([c for n in numbers for c in n.chunks], pa.int64()).unique()
    require_complete(table, count, len(unique), narrowed=where is not None and bool(where.nodes))


def _opened_parts(
    parts: Parts, remote: RemoteQuery, table: Table, statement: Statement
) -> Iterator[pa.Table]:  # fmt: skip
    """The opened rows of a scan in parts, of which there is one at least."""
    from louver.trusted.executor.tiles import ranges

    tables, reader = {table.id: table}, parts.columns.tiles
    if table.tiles and reader is not None and parts.engine.in_transaction:
        row = f"r{remote.sources[0].slot}"
        for reply in ranges.replies(reader(), table, statement, row):
            yield _opened(parts, remote, tables, reply)
        return
    with ranges.beside(reader, tables) as other:
        reader, is_empty = parts.engine.stream(statement), True
        for batch in reader:
            yield _opened(parts, remote, tables, pa.Table.from_batches([batch]), other)
            is_empty = False
        if is_empty:
            empty = pa.Table.from_batches([], reader.schema)
            yield _opened(parts, remote, tables, empty, other)


def _opened(
    parts: Parts, remote: RemoteQuery, tables: Tables, reply: pa.Table, tiles: Any = None
) -> pa.Table:
    if not remote.outputs:
        return pa.table({ROW_ID: reply.column("r0")})
    rows = parts.columns.open(remote, tables, reply, [], parts.local.arrow_field, tiles)
    return rows.append_column(ROW_ID, reply.column("r0"))
