"""Encrypt a DuckDB file: all of its objects and rows, or some tables and what needs only them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor import file_objects, inventory, row_writer, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import comments
from louver.trusted.executor.load_sources import Source
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.local.local import Schema
from louver.trusted.executor.policy_spelling import require_spelled
from louver.trusted.executor.progress import Progress
from louver.trusted.executor.schema import head, objects, tables
from louver.trusted.vault.catalog import Catalog, HomeObject, Table
from louver.trusted.vault.types import bare

Filled = Callable[[str, int, float], None]
"""A table, its rows in the file, and the seconds that its rows took."""
_CACHE = "128MiB"
"""DuckDB's memory limit for a file that is scanned once."""
#: A DuckDB file has these four bytes after a checksum of eight.
_MAGIC, _MAGIC_END = b"DUCK", 12
_Connection = duckdb.DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Encrypted:
    """The number of rows of each table, and what the user is to know."""

    counts: dict[str, int]
    notices: tuple[str, ...]


def encrypt(
    context: Context,
    source: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    names: Sequence[str] = (),
    most_rows: int | None = None,
    filled: Filled | None = None,
    drop_collations: bool = False,
) -> Encrypted:
    """Encrypt a DuckDB file: schemas, types, sequences, tables with their constraints, rows,
    views, indexes and macros, all or nothing.

    Every column is encrypted like ENC without a scheme, unless a policy selects the columns and
    their schemes. Rows stream in batches, so memory does not grow with the file. ``names`` limits
    this to some tables, what they need, and what needs no others; ``most_rows`` limits the rows of
    each table, for an estimate; ``filled`` is called after each table. With ``drop_collations``
    columns whose collation cannot be stored are stored without it.
    """
    path = Path(source)
    if not path.is_file():
        raise errors.make("file.database", path=str(path), detail="the file does not exist")
    with path.open("rb") as file:
        if file.read(_MAGIC_END)[-len(_MAGIC) :] != _MAGIC:
            detail = "it is not a DuckDB database"
            raise errors.make("file.database", path=str(path), detail=detail)
    macros = inventory.macros(path, context.local.directory)
    with _reading(context, path) as plain:
        schema = DuckDBSchema(plain)
        items = schema.objects() + macros
        refuse_misspelled(context, schema, items)
        selection = file_objects.chosen(
            context, schema, items, names, drop_collations=drop_collations
        )
        transaction.begin(context)
        try:
            entries = make(context, schema, selection.items)
            counts = _fill(context, plain, entries, progress, most_rows, filled)
            transaction.commit(context)
        except BaseException:
            if context.in_transaction:
                transaction.rollback(context)
            raise
    return Encrypted(counts, selection.notices)


@contextmanager
def _reading(context: Context, path: Path) -> Iterator[_Connection]:
    try:
        settings = {**options(context.local.directory), "memory_limit": _CACHE}
        plain = duckdb.connect(str(path), read_only=True, config=settings)
    except duckdb.Error as error:
        raise errors.make("file.database", path=str(path), detail=str(error)) from None
    try:
        yield plain
    finally:
        plain.close()


def refuse_misspelled(context: Context, schema: Schema, items: Sequence[HomeObject]) -> None:
    """Raise where the policy seems to mean a table of the file or a column, and misspells it: that
    column would be stored in plain text.
    """
    entries = [item for item in items if item.kind == "TABLE"]
    labels = [tables.label_of(item.schema, item.name) for item in entries]
    known = [*labels, *(table.label for table in context.catalog.tables.values())]
    for item, label in zip(entries, labels, strict=True):
        names = [column.name for column in schema.columns(item.schema, item.name)]
        require_spelled(context.policy, label, names, known)


def is_protected(context: Context, table: Table) -> bool:
    """Whether a table is protected as one that is encrypted now would be."""
    every = file_objects.protected(context, [(c.name, c.type) for c in table.columns])
    for column in table.columns:
        said = every.get(fold(column.name))
        protection = context.protection(table.label, column.name, column.type, said)
        meant = (protection.encrypted, protection.scheme, protection.ceiling)
        if (column.encrypted, column.scheme, column.ceiling) != meant:
            return False
    return True


def make(context: Context, schema: Schema, items: Sequence[HomeObject]) -> list[Table]:
    """Create objects that ``schema`` declares, empty, in the local engine and on the server."""
    known = {fold(item.schema) for item in context.catalog.objects if item.kind == "SCHEMA"}
    fresh = [i for i in items if i.kind != "SCHEMA" or fold(i.schema) not in known]
    with transaction.writing(context, schema_changed=True) as catalog:
        entries = [_table(context, catalog, schema, item) for item in fresh if item.kind == "TABLE"]
        context.local.unresolved += fresh
        context.local.resolve(catalog)
        for item in context.local.unresolved:
            if item in fresh and item.kind not in ("VIEW", "MACRO", "COMMENT"):
                context.local.define(item, catalog)
        catalog.objects += fresh
        objects.sort(catalog)
        comments.keep(context, catalog)
    return entries


def _table(context: Context, catalog: Catalog, schema: Schema, item: HomeObject) -> Table:
    label = tables.label_of(item.schema, item.name)
    described = objects.described_in(schema, item.schema, item.name)
    head.refuse_reserved(*(name for name, _ in described))
    stored = head.collations(item.sql)
    columns = [(name, type_ if fold(name) in stored else bare(type_)) for name, type_ in described]
    every = file_objects.protected(context, columns)
    generated = frozenset(schema.generated(item.schema, item.name))
    protection = tables.protect(context, label, columns, every, generated)
    table = tables.build(
        catalog, item.schema, item.name, columns, protection, schema, context.backend,
        counted=context.state.counts,
    )  # fmt: skip
    catalog.add(table)
    context.storage.create(table)
    return table


def _fill(
    context: Context,
    plain: _Connection,
    entries: Sequence[Table],
    progress: Progress | None,
    most_rows: int | None,
    filled: Filled | None,
) -> dict[str, int]:
    schema = DuckDBSchema(plain)
    sizes = {table.local_name: schema.count(table.local_name) for table in entries}
    total, done = sum(sizes.values()), 0
    counts: dict[str, int] = {}

    def passed(source: Source) -> Iterator[pa.Table]:
        nonlocal done
        for batch in source.batches():
            yield batch
            done += batch.num_rows
            if progress is not None:
                progress(done, total)

    limit = "" if most_rows is None else f" LIMIT {most_rows}"
    for table in entries:
        start = time.perf_counter()
        with transaction.writing(context) as catalog, translated():
            working = catalog.tables[table.key]
            reader = plain.execute(f"SELECT * FROM {table.local_name}{limit}").to_arrow_reader(8192)
            row_writer.append_stream(context, working, passed(Source(reader)))
        counts[table.label] = working.row_count
        if filled is not None:
            filled(table.label, sizes[table.local_name], time.perf_counter() - start)
    return counts
