"""Tables behind a server's SQL: statements out, Arrow back, opened and verified here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from louver import errors
from louver.trusted.backends import tile_texts
from louver.trusted.backends.backend import Backend
from louver.trusted.backends.printer import Printer
from louver.trusted.executor import keys_read, raw_rows, server_rows
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.columns import Tables
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.raw_rows import RawRow
from louver.trusted.executor.schema import representations
from louver.trusted.executor.storage import (
    ROW_ID,
    Answers,
    Narrow,
    Parts,
    Request,
    different,
    translate_reply_errors,
)
from louver.trusted.planner import choose, postcondition
from louver.trusted.planner.ir import RemoteQuery, RowFilter, TableRef, Tag, Template
from louver.trusted.planner.operators import keys
from louver.trusted.planner.render import remote_text, slots_of
from louver.trusted.planner.sql.scope import Source
from louver.trusted.vault import scheme, stored_types, tile_forms
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import condition_of, with_condition
from louver.trusted.vault.scheme import has_shares
from louver.wire.messages import Constant, Statement

if TYPE_CHECKING:
    from louver.trusted.executor import lookups


class ServerStorage:
    """The tables of a database engine (see `storage.Storage`)."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def create(self, table: Table) -> None:
        """Create the server's table: no constraint, no name and no type of an encrypted column."""
        backend = self._parts.backend
        columns = [("row_id", f"{backend.stored_type(stored_types.ROW_ID)} {backend.row_key}")]
        # First: DuckDB drops no column before one that is UNIQUE.
        for name in table.tags:
            type_ = backend.stored_type(stored_types.WIDE_CODE)
            columns.append((name, f"{type_} {backend.unique}"))
        for column in table.columns:
            columns += representations.columns_of(column, backend, self._parts.local)
        helpers = (table.helper_one, table.helper_random, table.helper_unit)
        bytes_ = backend.stored_type(stored_types.BYTES)
        columns += [(name, bytes_) for name in (*helpers, *table.packs) if name]
        creation = backend.create_table(table, columns)
        self._run(*backend.create_schema(table.schema), creation)
        if backend.has_tiles and not table.tile_table:
            self._run(*_with_tiles(backend, table))
        self.index(table, ())

    def index(self, table: Table, before: Collection[tuple[str, ...]]) -> None:
        backend = self._parts.backend
        if not backend.has_indexes:
            return
        from louver.trusted.executor.schema import indexes

        now = indexes.wanted(self._parts.state.catalog, table, backend)
        texts = [backend.index(table, names) for names in now if names not in before]
        texts += [backend.drop_index(table, names) for names in before if names not in now]
        self._run(*texts)

    def drop(self, table: Table) -> None:
        self._run(self._parts.backend.drop_table(table))
        if table.tile_table:
            self._run(tile_texts.drop(self._parts.backend, table))

    def drop_schema(self, schema: str) -> None:
        self._run(*self._parts.backend.drop_schema(schema))

    def rename(self, before: Table, table: Table) -> None:
        backend = self._parts.backend
        if before.schema == table.schema:
            self._run(backend.rename_table(before, table))
            return
        self._run(*backend.create_schema(table.schema), *backend.move_table(before, table))

    def drop_columns(self, table: Table, names: Sequence[str]) -> None:
        for name in names:
            self._run(self._parts.backend.drop_column(table, name))
            if name in table.tile_columns:
                self._run(tile_texts.drop_column(self._parts.backend, table, name))
                tile_forms.forget(table, name)

    def add_column(self, _table: Table, _column: Column) -> bool:
        return False

    def append(self, table: Table, batches: Iterator[pa.Table]) -> None:
        server_rows.append(self._parts, table, batches)

    def remove(self, table: Table, row_ids: pa.Array) -> None:
        server_rows.remove(self._parts, table, row_ids)

    def replace(self, table: Table, row_ids: pa.Array, rows: pa.Table) -> None:
        server_rows.replace(self._parts, table, row_ids, rows)

    def append_row(self, table: Table, row: RawRow) -> bool:
        return raw_rows.append(self._parts, table, row)

    def replace_row(self, table: Table, number: int, row: RawRow) -> bool:
        return raw_rows.replace(self._parts, table, number, row)

    def remove_row(self, table: Table, number: int) -> None:
        raw_rows.remove(self._parts, table, number)

    def takes_row(self, table: Table, values: Sequence[object]) -> bool:
        return raw_rows.fits(self._parts, table, values)

    def stamp(self, table: Table) -> str:
        stamp = self._parts.state.catalog.stamp
        return stamp if table.counted else f"{stamp}-{secrets.token_hex(8)}"

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

    def request(self, remote: RemoteQuery, literals: Sequence[str]) -> Request:
        if remote.lookup is not None:
            return _lookups(self._parts, remote, literals).steps(remote.lookup)
        if remote.probes:
            return keys_read.awaiting(self._parts, remote, _binder(self._parts, literals))
        return _bound(self._parts, remote, _tables(self._parts, remote), literals)

    def answer(
        self, remote: RemoteQuery, request: Request, literals: Sequence[str], clock: Clock
    ) -> pa.Table:
        parts, tables = self._parts, _tables(self._parts, remote)
        if remote.lookup is not None:
            return _lookups(parts, remote, literals).answer(remote, remote.lookup, clock)
        if isinstance(request, keys_read.Asked):
            remote, request = request.remote, request.statement
        if not isinstance(request, Statement):
            raise errors.make("internal", detail="a server received an unknown request")
        with clock.step("server"), translate_reply_errors():
            reply = parts.engine.query(request)
        with clock.step("open"), translate_reply_errors():
            opened = parts.columns.open(remote, tables, reply, literals, parts.local.arrow_field)
            complete(remote, tables, reply)
        return opened

    def stream(
        self, remote: RemoteQuery, request: Request, literals: Sequence[str]
    ) -> Generator[pa.Table]:
        """The opened answer to a query of one table in parts; at the end what `answer` verifies."""
        from louver.trusted.executor.read_ahead import ahead

        parts, tables = self._parts, _tables(self._parts, remote)
        if not isinstance(request, Statement):
            raise errors.make("internal", detail="a server received an unknown request")

        def opened(reply: pa.Table) -> pa.Table:
            return parts.columns.open(remote, tables, reply, literals, parts.local.arrow_field)

        numbered = [f"r{slot}" for slot in remote.row_slots()]
        try:
            with translate_reply_errors():
                reader, numbers = parts.engine.stream(request), []
                for batch in ahead(iter(reader)):
                    reply = pa.Table.from_batches([batch])
                    numbers.append(reply.select(numbered))
                    yield opened(reply)
                if not numbers:
                    reply = pa.Table.from_batches([], reader.schema)
                    numbers.append(reply.select(numbered))
                    yield opened(reply)
                complete(remote, tables, pa.concat_tables(numbers))
        finally:
            end = getattr(parts.engine, "end_stream", None)
            if end is not None:
                end()

    def narrowing(self, literals: Sequence[str]) -> Narrow:
        bind = _binder(self._parts, literals)

        def narrow(remote: RemoteQuery, request: Request, answers: Answers) -> Request:
            if not remote.probes:
                return request
            return keys_read.narrowed(self._parts, remote, answers, literals, bind)

        return narrow

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


def _with_tiles(backend: Backend, table: Table) -> list[str]:
    """The statements that make the table of a table's tiles, if it is to have any."""
    columns = tile_forms.columns_of(table)
    if not columns:
        return []
    table.tile_table = tile_texts.fresh_name()
    table.tile_columns = [scheme.read_from(column) for column in columns]
    return [tile_texts.create(backend, table)]


class Printed(WeakKeyDictionary[RemoteQuery, dict[bool, Template]]):
    """The printed forms of queries: with what the server has stored for them, and without. They go
    with the plan; who has the server store more must drop them.
    """


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


def _tables(parts: Parts, remote: RemoteQuery) -> Tables:
    """The tables of a plan as the catalog has them now, by id."""
    refs = (*remote.sources, *remote.inner)
    return {ref.table: parts.state.catalog.by_id(ref.table) for ref in refs}


def _lookups(parts: Parts, remote: RemoteQuery, literals: Sequence[str]) -> lookups.Reader:
    """What reads the two steps of a look-up."""
    from louver.trusted.executor import lookups

    tables = _tables(parts, remote)
    return lookups.Reader(
        parts, tables, literals, lambda step: _bound(parts, step, tables, literals), complete
    )


def _binder(parts: Parts, literals: Sequence[str]) -> keys_read.Bind:
    """What binds queries for keys that were read."""

    def bind(remote: RemoteQuery, tags: Sequence[Constant]) -> Statement:
        return _bound(parts, remote, _tables(parts, remote), literals, tags)

    return bind


def _bound(
    parts: Parts,
    remote: RemoteQuery,
    tables: Tables,
    literals: Sequence[str],
    tags: Sequence[Constant] = (),
) -> Statement:
    """One remote query as a statement, checked; ``tags`` are what stands for its tags."""
    fixed = parts.state.in_transaction or parts.engine.in_transaction
    usable = not fixed or all(tables[s.table].kept_complete for s in remote.sources)
    printed = parts.state.cache(Printed).setdefault(remote, {})
    template = printed.get(usable)
    if template is None:
        template = printed[usable] = _printed(parts, remote, tables, usable)
    constants = [
        tags[item.index]
        if tags and isinstance(item, Tag)
        else parts.columns.constant(item, literals)
        for item in template.constants
    ]
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
    if where is not None and where.lookup is not None:
        reader = _lookups(parts, where.lookup.first, where.literals)
        yield reader.rows(where.lookup, Clock())
        return
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
    require_complete(table, count, len(unique), narrowed=where is not None and bool(where.nodes))


def _opened(parts: Parts, remote: RemoteQuery, tables: Tables, reply: pa.Table) -> pa.Table:
    if not remote.outputs:
        return pa.table({ROW_ID: reply.column("r0")})
    rows = parts.columns.open(remote, tables, reply, [], parts.local.arrow_field)
    return rows.append_column(ROW_ID, reply.column("r0"))
