"""Tables behind a server's SQL: statements out, Arrow back, opened and verified here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import pyarrow as pa

from louver import errors
from louver.trusted.backends.printer import Printer
from louver.trusted.executor import keys_read, raw_rows, server_rows
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.columns import Tables
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.raw_rows import RawRow
from louver.trusted.executor.schema import representations
from louver.trusted.executor.storage import (
    Answers,
    Narrow,
    Parts,
    Request,
    complete,
    in_one_state,
    translate_reply_errors,
)
from louver.trusted.planner import postcondition
from louver.trusted.planner.ir import RemoteQuery, RowFilter, Tag, Template
from louver.trusted.planner.render import remote_text, slots_of
from louver.trusted.vault import stored_types
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.scheme import has_shares
from louver.untrusted.engines.engine import Engine
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
        if backend.has_tiles:
            from louver.trusted.executor.tiles import tables

            self._run(*tables.create(backend, table))
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
        from louver.trusted.executor.tiles import tables

        backend = self._parts.backend
        self._run(backend.drop_table(table), *tables.drop(backend, table))

    def drop_schema(self, schema: str) -> None:
        self._run(*self._parts.backend.drop_schema(schema))

    def rename(self, before: Table, table: Table) -> None:
        backend = self._parts.backend
        if before.schema == table.schema:
            self._run(backend.rename_table(before, table))
            return
        self._run(*backend.create_schema(table.schema), *backend.move_table(before, table))

    def drop_columns(self, table: Table, names: Sequence[str]) -> None:
        from louver.trusted.executor.tiles import tables

        backend = self._parts.backend
        for name in names:
            self._run(backend.drop_column(table, name))
            self._run(*tables.drop_column(backend, table, name))

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
        from louver.trusted.executor.server_scans import scanned

        return scanned(self._parts, table, columns, where, _bound, _lookups)

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
        statement = request

        def rows() -> pa.Table:
            with clock.step("server"), translate_reply_errors():
                reply = _replied(parts.engine, remote, statement, tables)
            with clock.step("open"), translate_reply_errors():
                field = parts.local.arrow_field
                opened = parts.columns.open(remote, tables, reply, literals, field)
                complete(remote, tables, reply)
            return opened

        return in_one_state(parts.engine, tables.values(), rows)

    def sent(self, remote: RemoteQuery, request: Request, rows: float) -> str:
        tables, lookup = _tables(self._parts, remote), remote.lookup
        if isinstance(request, keys_read.Asked):
            remote, request = request.remote, request.statement
        if lookup is None:
            return ";\n".join(_texts(self._parts, remote, request, tables, rows))
        first, rest = cast("lookups.Steps", request).both
        texts = _texts(self._parts, lookup.first, first, tables, lookup.first.rows)
        if lookup.rest is not None and rest is not None:
            passing = rows or lookup.matches
            texts += _texts(self._parts, lookup.rest, rest, tables, passing, numbered=True)
        return ";\n".join(texts)

    def stream(
        self, remote: RemoteQuery, request: Request, literals: Sequence[str]
    ) -> Generator[pa.Table]:
        """The opened answer to a query of one table in parts; at the end what `answer` verifies."""
        from louver.trusted.executor.read_ahead import ahead

        parts, tables = self._parts, _tables(self._parts, remote)
        if not isinstance(request, Statement):
            raise errors.make("internal", detail="a server received an unknown request")

        from louver.trusted.executor.tiles import ranges

        numbered = [f"r{slot}" for slot in remote.row_slots()]
        try:
            with translate_reply_errors(), ranges.beside(parts.columns.tiles, tables) as tiles:

                def opened(reply: pa.Table) -> pa.Table:
                    field = parts.local.arrow_field
                    return parts.columns.open(remote, tables, reply, literals, field, tiles)

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
        parts = self._parts
        if not parts.engine.in_transaction and parts.state.writable:
            from louver.trusted.executor.tiles import tables

            tables.tidy(parts.engine, parts.backend, parts.state.catalog.tables.values())
        if sql := self._parts.backend.checkpoint():
            self._run(sql)

    def _run(self, *texts: str) -> None:
        for sql in texts:
            self._parts.engine.run(Statement(sql, kind="ddl"))


def _replied(
    engine: Engine, remote: RemoteQuery, statement: Statement, tables: Tables
) -> pa.Table:  # fmt: skip
    """What a server answers to a query, which has tiles or not."""
    if not remote.may_be_tiled():
        return engine.query(statement)
    from louver.trusted.executor.tiles import asking

    return asking.question(remote, statement, tables).answer(engine)


def _texts(
    parts: Parts, remote: RemoteQuery, request: Request, tables: Tables, rows: float, *,
    numbered: bool = False,
) -> list[str]:  # fmt: skip
    """What is sent for a query, if so many rows come of it; rows that are ``numbered`` are asked
    for at once.
    """
    if not (isinstance(request, Statement) and remote.may_be_tiled()):
        return [request.sql]
    from louver.trusted.executor.tiles import asking

    statements = [request] if numbered else asking.question(remote, request, tables).statements
    of_tiles = asking.texts_of_tiles(parts.backend, remote, tables, rows)
    return [*(statement.sql for statement in statements), *of_tiles]


class Printed(WeakKeyDictionary[RemoteQuery, dict[bool, Template]]):
    """The printed forms of queries: with what the server has stored for them, and without. They go
    with the plan; who has the server store more must drop them.
    """


def _tables(parts: Parts, remote: RemoteQuery) -> Tables:
    """The tables of a plan as the catalog has them now, by id."""
    refs = (*remote.sources, *remote.inner)
    return {ref.table: parts.state.catalog.by_id(ref.table) for ref in refs}


def _lookups(parts: Parts, remote: RemoteQuery, literals: Sequence[str]) -> lookups.Reader:
    """What reads the two steps of a look-up."""
    from louver.trusted.executor import lookups

    tables = _tables(parts, remote)
    return lookups.Reader(
        parts, tables, literals, lambda step: _bound(parts, step, tables, literals),
        lambda step, statement: _replied(parts.engine, step, statement, tables), complete,
    )  # fmt: skip


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
