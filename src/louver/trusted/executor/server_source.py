"""Encrypt a plaintext database of a server: its declarations, then table by table its rows.

Everything is read in one transaction of the source, so that the tables fit together. Each table is
created, filled and counted in one transaction of the target: after a crash it is there with all of
its rows or not at all, and `resume` goes on with the next.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted import backends
from louver.trusted.executor import file_objects, inventory, row_writer, transaction, transfer
from louver.trusted.executor.context import Context
from louver.trusted.executor.load_sources import Source
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.progress import Progress
from louver.trusted.executor.schema import objects
from louver.trusted.executor.schema.tables import label_of
from louver.trusted.executor.transfer import Encrypted, Filled
from louver.trusted.vault.catalog import HomeObject, Table
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.backends.postgres_plain import Declared, PlainTable
    from louver.untrusted.engines.engine import Engine

_FETCHED_BYTES = 4 << 20
_FIRST_ROWS, _MOST_ROWS = 64, 16_384
#: A session remembers a statement's columns by its text, so every cursor has a name of its own.
_cursors = itertools.count()
_BATCH = "louver_batch"
_Connection = duckdb.DuckDBPyConnection
Count = Callable[[str], int]
"""The rows of a table of the target, by its path."""


def encrypt(
    context: Context,
    url: str,
    *,
    count: Count,
    progress: Progress | None = None,
    names: Sequence[str] = (),
    most_rows: int | None = None,
    filled: Filled | None = None,
    into: str = "",
    as_text: bool = False,
    resume: bool = False,
) -> Encrypted:
    """Encrypt the tables of the database at a URL, or those of these ``names``.

    ``into`` is the schema of all tables; ``as_text`` stores values of unknown types as the server
    writes them; ``resume`` takes tables that the target has already, with the same declaration and
    the same number of rows, as done. Others as for `transfer.encrypt`.
    """
    scheme = url.partition("://")[0]
    module = backends.plain(scheme)
    with _reading(scheme, url) as source, _scratch(context) as plain:
        is_target = source.address == context.engine.address
        if is_target and not into:
            raise errors.make("source.same", place=source.address)
        if not (is_target or names):
            module.require_others(source)
        source.begin()
        declared = module.declared(
            module.plain_catalog(source), names=names, into=into, as_text=as_text,
            is_target=is_target,
        )  # fmt: skip
        tables = _build(plain, declared)
        schema = DuckDBSchema(plain)
        items = schema.objects()
        transfer.refuse_misspelled(context, schema, items)
        _refuse_plain_types(context, plain, items)
        sizes = _census(source, tables)
        if most_rows is not None:
            sizes = {key: min(rows, most_rows) for key, rows in sizes.items()}
        done = _done(context, items, tables, sizes, count) if resume else []
        rest = [item for item in items if (item.schema, item.name) not in done or
                item.kind not in ("TABLE", "INDEX")]  # fmt: skip
        move = _Move(
            context, source, plain, sizes, progress, most_rows, filled, done, module.received
        )
        selection = file_objects.chosen(context, schema, rest, (), drop_collations=False)
        move.run(selection.items, tables)
        for table in tables:
            _require_count(table, count(table.path), sizes[table.key])
        left = tuple(module.notices(declared.left))
    return Encrypted(move.counts, (*left, *selection.notices))


class _Move:
    """The steps that change the target."""

    def __init__(
        self, context: Context, source: Engine, plain: _Connection,
        sizes: dict[tuple[str, str], int], progress: Progress | None, most_rows: int | None,
        filled: Filled | None, done: Sequence[tuple[str, str]],
        received: Callable[[pa.Table, Sequence[str]], pa.Table],
    ) -> None:  # fmt: skip
        self._context, self._source, self._plain, self._sizes = context, source, plain, sizes
        self._progress, self._most_rows, self._filled = progress, most_rows, filled
        self._received = received
        self._passed = sum(sizes[key] for key in done)
        self.counts: dict[str, int] = {}

    def run(self, items: Sequence[HomeObject], tables: Sequence[PlainTable]) -> None:
        """Make and fill everything, in an order in which it can be made."""
        early = [item for item in items if item.kind in ("SCHEMA", "TYPE", "SEQUENCE")]
        late = [item for item in items if item.kind in ("VIEW", "COMMENT")]
        by_key = {(item.schema, item.name): item for item in items if item.kind == "TABLE"}
        indexed = _indexed(self._plain)
        if early:
            with _whole(self._context):
                transfer.make(self._context, DuckDBSchema(self._plain), early)
        for table in tables:
            item = by_key.get(table.key)
            if item is None:
                continue
            own = [i for i in items if i.kind == "INDEX" and indexed[i.schema, i.name] == table.key]
            with _whole(self._context):
                (entry,) = transfer.make(self._context, DuckDBSchema(self._plain), [item, *own])
                self._fill(table, entry)
        if late:
            with _whole(self._context):
                transfer.make(self._context, DuckDBSchema(self._plain), late)

    def _fill(self, table: PlainTable, entry: Table) -> None:
        start, rows = time.perf_counter(), 0
        described = objects.described_in(DuckDBSchema(self._plain), table.schema, table.name)

        def passed() -> Iterator[pa.Table]:
            nonlocal rows
            batches = _batches(self._source, table.query(self._most_rows))
            for batch in batches:
                batch = self._received(batch, [type_ for _, type_ in described])
                cast = _cast(self._plain, batch, described)
                for part in Source(cast.to_reader()).batches():
                    yield part
                    rows += part.num_rows
                    if self._progress is not None:
                        self._progress(self._passed + rows, sum(self._sizes.values()))

        with transaction.writing(self._context) as catalog, translated():
            working = catalog.tables[entry.key]
            row_writer.append_stream(self._context, working, passed())
        _require_count(table, rows, self._sizes[table.key])
        self._passed += rows
        self.counts[entry.label] = rows
        if self._filled is not None:
            self._filled(entry.label, rows, time.perf_counter() - start)


@contextmanager
def _whole(context: Context) -> Iterator[None]:
    """One transaction of the target."""
    transaction.begin(context)
    try:
        yield
        transaction.commit(context)
    except BaseException:
        if context.in_transaction:
            transaction.rollback(context)
        raise


@contextmanager
def _reading(scheme: str, url: str) -> Iterator[Any]:
    engine = backends.engine(scheme).open_url(url, read_only=True)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def _scratch(context: Context) -> Iterator[_Connection]:
    with closing(duckdb.connect(":memory:", config=options(context.local.directory))) as plain:
        yield plain


# ---------------------------------------------------------------------- declarations


def _build(plain: _Connection, declared: Declared) -> list[PlainTable]:
    """Declare everything in an empty database of the local engine; the tables in an order in which
    none refers to a later one. What the local engine does not take is left.
    """
    unbound = inventory.run_all(plain, declared.early)
    for item in unbound:
        declared.leave(fold(item.kind), item.name)
    ordered: list[PlainTable] = []
    waiting = list(declared.tables)
    known = {table.key for table in declared.tables}
    while waiting:
        created = {table.key for table in ordered}
        table = next((t for t in waiting if _parents(t) & known <= created | {t.key}), waiting[0])
        waiting.remove(table)
        _create(plain, table, declared, created | {table.key})
        ordered.append(table)
    for item in [*declared.indexes, *declared.comments]:
        if not _runs(plain, item.sql):
            declared.leave(fold(item.kind), item.name)
    _views(plain, declared)
    return ordered


def _parents(table: PlainTable) -> set[tuple[str, str]]:
    return {parent for _, _, parent in table.constraints if parent is not None}


def _create(
    plain: _Connection, table: PlainTable, declared: Declared, created: set[tuple[str, str]]
) -> None:
    """Create a table with those constraints that the local engine takes."""
    possible = [rule for rule in table.constraints if rule[2] is None or rule[2] in created]
    declared_texts = [text for _, text, _ in possible]
    taken = declared_texts
    if not _runs(plain, _table_text(table, taken)):
        taken = []
        with translated():
            plain.execute(_table_text(table, taken))
        for text in declared_texts:
            plain.execute(f"DROP TABLE {table.path}")
            taken += [text] if _runs(plain, _table_text(table, [*taken, text])) else []
            if not _runs(plain, f"FROM {table.path}"):
                plain.execute(_table_text(table, taken))
    for label, text, _ in table.constraints:
        if text not in taken:
            declared.leave("constraint", label)


def _table_text(table: PlainTable, constraints: Sequence[str]) -> str:
    return f"CREATE TABLE {table.path} ({', '.join((*table.columns, *constraints))})"


def _runs(plain: _Connection, sql: str) -> bool:
    try:
        plain.execute(sql)
    except duckdb.Error:
        return False
    return True


def _views(plain: _Connection, declared: Declared) -> None:
    """Create the views whose columns have the types that they have in the source; a view of a view
    comes after it.
    """
    unbound = inventory.run_all(plain, [item for item, _ in declared.views])
    for item, types in declared.views:
        label = label_of(item.schema, item.name)
        if item in unbound:
            declared.leave("view", label)
            continue
        described = objects.described_in(DuckDBSchema(plain), item.schema, item.name)
        row = plain.execute(
            f"DESCRIBE SELECT {', '.join(f'NULL::{type_}' for type_ in types)}"
        ).fetchall()
        if [type_ for _, type_ in described] != [line[1] for line in row]:
            plain.execute(f"DROP VIEW {_path(item)}")
            declared.leave("view", label)


def _path(item: HomeObject) -> str:
    return f"{quoted(item.schema)}.{quoted(item.name)}"


def _indexed(plain: _Connection) -> dict[tuple[str, str], tuple[str, str]]:
    """The table of each index."""
    rows = plain.execute("SELECT schema_name, index_name, table_name FROM duckdb_indexes()")
    return {(schema, name): (schema, table) for schema, name, table in rows.fetchall()}


# ---------------------------------------------------------------------- what is refused


def _refuse_plain_types(context: Context, plain: _Connection, items: Sequence[HomeObject]) -> None:
    """Raise for all columns that the policy leaves plain and the server cannot store so."""
    refused = []
    for item in (item for item in items if item.kind == "TABLE"):
        columns = objects.described_in(DuckDBSchema(plain), item.schema, item.name)
        every = file_objects.protected(context, columns)
        label = label_of(item.schema, item.name)
        for name, type_ in columns:
            protection = context.protection(label, name, type_, every.get(fold(name)))
            if protection.encrypted:
                continue
            try:
                context.backend.plain_type(type_)
            except errors.Error:
                refused.append(f"{label}.{name} ({type_}, which must be ENC there)")
    if refused:
        raise errors.make("source.types", columns=", ".join(refused))


def _census(source: Engine, tables: Sequence[PlainTable]) -> dict[tuple[str, str], int]:
    """The rows of each table; raises for all values that cannot be held."""
    sizes, refused = {}, []
    for table in tables:
        ((rows, *odd),) = (
            row.values() for row in source.query(Statement(table.census())).to_pylist()
        )
        sizes[table.key] = rows
        for (column, what, _), number in zip(table.odd, odd, strict=True):
            if number:
                refused.append(f"{table.label}.{column} ({what}: {number} rows)")
    if refused:
        raise errors.make("source.values", columns=", ".join(refused))
    return sizes


def _done(
    context: Context, items: Sequence[HomeObject], tables: Sequence[PlainTable],
    sizes: dict[tuple[str, str], int], count: Count,
) -> list[tuple[str, str]]:  # fmt: skip
    """The tables that the target has already, all of them whole."""
    done = []
    own = {objects.key_of(item): item for item in context.local.schema.objects()}
    declared = {objects.key_of(item): item for item in items if item.kind == "TABLE"}
    for table in tables:
        key = ("TABLE", fold(table.schema), fold(table.name))
        if key not in own:
            continue
        entry = context.catalog.table(table.schema, table.name)
        same = entry is not None and transfer.is_protected(context, entry)
        if own[key].sql != declared[key].sql or not same:
            raise errors.make("file.object", kind="table", name=table.label)
        _require_count(table, count(table.path), sizes[table.key])
        done.append(table.key)
    return done


def _require_count(table: PlainTable, rows: int, expected: int) -> None:
    if rows != expected:
        raise errors.make("source.count", table=table.label, rows=rows, expected=expected)


# ---------------------------------------------------------------------- rows


def _batches(source: Engine, query: str) -> Iterator[pa.Table]:
    """The rows of a query, in batches of about `_FETCHED_BYTES`."""
    cursor = f"louver_rows_{next(_cursors)}"
    source.run(Statement(f"DECLARE {cursor} NO SCROLL CURSOR FOR {query}", kind="ddl"))
    most = _FIRST_ROWS
    while True:
        batch = source.query(Statement(f"FETCH FORWARD {most} FROM {cursor}"))
        if batch.num_rows:
            yield batch
        if batch.num_rows < most:
            break
        each = max(batch.nbytes // batch.num_rows, 1)
        most = max(1, min(_FETCHED_BYTES // each, _MOST_ROWS, most * 8))
    source.run(Statement(f"CLOSE {cursor}", kind="ddl"))


def _cast(plain: _Connection, batch: pa.Table, described: Sequence[tuple[str, str]]) -> pa.Table:
    """Rows in the types of the local table, by position."""
    names = [f"c{number}" for number in range(batch.num_columns)]
    arrow_values.register(plain, _BATCH, batch.rename_columns(names))
    listed = ", ".join(
        f"CAST({name} AS {type_}) AS {quoted(column)}"
        for name, (column, type_) in zip(names, described, strict=True)
    )
    try:
        return plain.execute(f"SELECT {listed} FROM {_BATCH}").to_arrow_table()
    finally:
        plain.unregister(_BATCH)
