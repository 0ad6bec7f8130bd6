"""Whole databases: encrypt a DuckDB file, and export everything as plaintext."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import inventory, row_writer, storage, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import comments
from louver.trusted.executor.load_sources import Source
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.local.local_engine import translated
from louver.trusted.executor.schema import head, object_texts, objects, tables
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault.catalog import Catalog, HomeObject, Table

Progress = Callable[[int, int], None]
"""Rows done and total rows."""
Filled = Callable[[str, int, float], None]
"""A table, its rows in the file, and the seconds that its rows took."""
_CACHE = "128MiB"
"""DuckDB's memory limit for a file that is scanned once."""
_INDEXED = re.compile(r'\bON\s+(?:"?\w+"?\.)?"?(\w+)"?\s*(?:USING\b|\()', re.IGNORECASE)
#: A DuckDB file has these four bytes after a checksum of eight.
_MAGIC, _MAGIC_END = b"DUCK", 12
_Connection = duckdb.DuckDBPyConnection


def encrypt(
    context: Context,
    source: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    names: Sequence[str] = (),
    most_rows: int | None = None,
    filled: Filled | None = None,
) -> dict[str, int]:
    """Encrypt a DuckDB file: schemas, types, sequences, tables with their constraints, rows,
    views, indexes and macros, all or nothing. Returns the number of rows of each table.

    Every column is encrypted like ENC without a scheme, unless a policy selects the columns and
    their schemes. Rows stream in batches, so memory does not grow with the file. ``names`` limits
    this to some tables and what they need; ``most_rows`` limits the rows of each table, for an
    estimate; ``filled`` is called after each table.
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
        items = inventory.of(plain) + macros
        items = _needed(items, names) if names else items
        _refuse_collations(plain, items)
        _refuse_taken(context, items)
        transaction.begin(context)
        try:
            entries = _make(context, plain, items)
            counts = _fill(context, plain, entries, progress, most_rows, filled)
            transaction.commit(context)
        except BaseException:
            if context.in_transaction:
                transaction.rollback(context)
            raise
    return counts


@contextmanager
def _reading(context: Context, path: Path) -> Iterator[_Connection]:
    try:
        options = {**context.local.options(), "memory_limit": _CACHE}
        plain = duckdb.connect(str(path), read_only=True, config=options)
    except duckdb.Error as error:
        raise errors.make("file.database", path=str(path), detail=str(error)) from None
    try:
        yield plain
    finally:
        plain.close()


def _needed(items: Sequence[HomeObject], names: Sequence[str]) -> list[HomeObject]:
    """The named tables with their schemas, indexes, types and sequences; raises if one is missing.
    Views, macros and comments stay behind: they may name other tables.
    """
    wanted = {fold(name.replace('"', "")) for name in names}
    chosen = [
        item
        for item in items
        if item.kind == "TABLE" and fold(tables.label_of(item.schema, item.name)) in wanted
    ]
    missing = wanted - {fold(tables.label_of(item.schema, item.name)) for item in chosen}
    if missing:
        raise errors.make("table.missing", table=min(missing))
    schemas = {fold(item.schema) for item in chosen}
    bare_names = {fold(item.name) for item in chosen}

    def needed(item: HomeObject) -> bool:
        if item.kind == "INDEX":
            match = _INDEXED.search(item.sql)
            return match is not None and fold(match[1]) in bare_names
        if item.kind == "SCHEMA":
            return fold(item.name) in schemas
        return item in chosen or item.kind in ("TYPE", "SEQUENCE")

    return [item for item in items if needed(item)]


def _refuse_collations(plain: _Connection, items: Sequence[HomeObject]) -> None:
    """Raise before anything is created, with the name of every column that has a collation."""
    columns = []
    for item in items:
        if item.kind == "TABLE":
            sql = object_texts.introspected(plain, "TABLE", item.schema, item.name)
            label = tables.label_of(item.schema, item.name)
            columns += [f"{label}.{name}" for name in head.collations(sql)]
    if columns:
        raise errors.make("file.collations", columns=", ".join(columns))


def _refuse_taken(context: Context, items: Sequence[HomeObject]) -> None:
    taken = objects.snapshot(context.local.binder, macros=True)
    here = {(kind, fold(schema), fold(name)) for kind, schema, name in taken}
    for item in items:
        if item.kind == "TABLE":
            head.refuse_reserved(item.name)
        if item.kind in ("COMMENT", "SCHEMA"):
            continue
        if objects.key_of(item) in here:
            name = tables.label_of(item.schema, item.name)
            if item.kind == "TABLE":
                raise errors.make("table.exists", table=name)
            raise errors.make("file.object", kind=fold(item.kind), name=name)


def _make(context: Context, plain: _Connection, items: list[HomeObject]) -> list[Table]:
    """Create all objects, empty, in the local engine and on the server."""
    known = {fold(item.schema) for item in context.catalog.objects if item.kind == "SCHEMA"}
    fresh = [i for i in items if i.kind != "SCHEMA" or fold(i.schema) not in known]
    with transaction.writing(context, schema_changed=True) as catalog:
        entries = [_table(context, catalog, plain, item) for item in fresh if item.kind == "TABLE"]
        context.local.unresolved += fresh
        context.local.resolve(catalog)
        for item in context.local.unresolved:
            if item in fresh and item.kind not in ("VIEW", "MACRO", "COMMENT"):
                context.local.define(item, catalog)
        catalog.objects += fresh
        objects.sort(catalog)
        comments.keep(context, catalog)
    return entries


def _table(context: Context, catalog: Catalog, plain: _Connection, item: HomeObject) -> Table:
    label = tables.label_of(item.schema, item.name)
    qualified_name = f"{quoted(item.schema)}.{quoted(item.name)}"
    columns = [(row[0], row[1]) for row in plain.execute(f"DESCRIBE {qualified_name}").fetchall()]
    head.refuse_reserved(*(name for name, _ in columns))
    every = (
        {} if context.policy.rules else {fold(name): Declared(name, "", "") for name, _ in columns}
    )
    generated = tables.generated_in(plain, item.schema, item.name)
    protection = tables.protect(context, label, columns, every, generated)
    table = tables.build(
        catalog, item.schema, item.name, columns, protection, plain, context.backend
    )
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
    sizes = {table.local_name: _count(plain, table.local_name) for table in entries}
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


def _count(connection: _Connection, path: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {path}").fetchone()
    return int(row[0]) if row else 0


def export(
    context: Context, target: str | os.PathLike[str], *, progress: Progress | None = None
) -> dict[str, int]:
    """Write everything as plaintext into a new DuckDB file; the number of rows of each table.

    The file gets its name when it is complete; an existing file is never changed.
    """
    path = Path(target)
    if path.exists() or path.is_symlink():
        raise errors.make("file.exists", path=str(path))
    if not context.in_transaction:
        transaction.refresh(context)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        with _writing(context, partial) as plain:
            counts = _write(context, plain, progress)
        _publish(partial, path)
    finally:
        for left in (partial, Path(f"{partial}.wal")):
            left.unlink(missing_ok=True)
    return counts


@contextmanager
def _writing(context: Context, path: Path) -> Iterator[_Connection]:
    """A new file readable only by its owner, unlike DuckDB's default."""
    before = os.umask(0o077)
    try:
        with translated():
            plain = duckdb.connect(str(path), config=context.local.options())
        # The first change creates the log file, so make one that contains no data.
        with translated():
            plain.execute("CREATE TABLE louver_first (a INT); DROP TABLE louver_first")
    finally:
        os.umask(before)
    try:
        with translated():
            yield plain
            plain.execute("CHECKPOINT")
    finally:
        plain.close()


def _publish(partial: Path, path: Path) -> None:
    """Give the file its name, unless the name has been taken in the meantime."""
    try:
        try:
            os.link(partial, path)
        except FileExistsError:
            raise errors.make("file.exists", path=str(path)) from None
        except OSError:
            # Some file systems have no hard links.
            os.rename(partial, path)
    except OSError as error:
        detail = error.strerror or "the file cannot be named"
        raise errors.make("database.io", place=str(path), detail=detail) from None


def _write(context: Context, plain: _Connection, progress: Progress | None) -> dict[str, int]:
    catalog = context.catalog
    items = inventory.stored_objects(context)
    early = [i for i in items if i.kind in ("SCHEMA", "TYPE", "SEQUENCE", "MACRO", "TABLE")]
    left = _run_all(plain, early)
    wanted = [item for item in left if item.kind == "TABLE"]
    for item in wanted:
        plain.execute(item.sql)
    total = sum(table.row_count for table in catalog.tables.values())
    done = 0
    counts: dict[str, int] = {}
    for item in early:
        table = catalog.table(item.schema, item.name) if item.kind == "TABLE" else None
        if table is None:
            continue
        with _loader(plain, table) as load:
            for batch in context.storage.batches(table):
                load(batch.drop_columns([storage.ROW_ID]))
                done += batch.num_rows
                if progress is not None:
                    progress(done, total)
        counts[table.label] = table.row_count
    _run_all(plain, left + [item for item in items if item not in early])
    return counts


def _run_all(plain: _Connection, items: Sequence[HomeObject]) -> list[HomeObject]:
    """Run the statements in as many passes as their dependencies need; returns those that fail."""
    left = list(items)
    before = -1
    while left and len(left) != before:
        before, tried = len(left), left
        left = []
        for item in tried:
            try:
                plain.execute(item.sql)
            except duckdb.Error:
                left.append(item)
    return left


@contextmanager
def _loader(plain: _Connection, table: Table) -> Iterator[Callable[[pa.Table], None]]:
    """A function that inserts batches into a table of the new file, in an order its keys allow."""
    generated = tables.generated_in(plain, table.schema, table.name)
    names = [quoted(c.name) for c in table.columns if fold(c.name) not in generated]
    listed = ", ".join(names)
    keys = object_texts.self_keys(plain, table.schema, table.name)
    position = "louver_staged" if keys else table.local_name
    if keys:
        plain.execute(f"CREATE TEMP TABLE louver_staged AS SELECT {listed} FROM {table.local_name}")

    def load(batch: pa.Table) -> None:
        arrow_values.register(plain, "louver_batch", batch)
        plain.execute(f"INSERT INTO {position} ({listed}) SELECT {listed} FROM louver_batch")
        plain.unregister("louver_batch")

    yield load
    if keys:
        _insert_by_generation(plain, table, listed, keys)
        with suppress(duckdb.Error):
            plain.execute("DROP TABLE louver_staged")


def _insert_by_generation(
    plain: _Connection, table: Table, listed: str, keys: Sequence[tuple[list[str], list[str]]]
) -> None:
    """Insert rows after their parents in the same table, since DuckDB checks each statement."""
    tests = []
    for own, referenced in keys:
        empty = " OR ".join(f"s.{quoted(name)} IS NULL" for name in own)
        same = " AND ".join(
            f"p.{quoted(r)} = s.{quoted(o)}" for o, r in zip(own, referenced, strict=True)
        )
        tests.append(f"({empty} OR EXISTS (SELECT 1 FROM {table.local_name} p WHERE {same}))")
    ready = "SELECT s.rowid FROM louver_staged s WHERE " + " AND ".join(tests)
    while True:
        plain.execute(f"CREATE OR REPLACE TEMP TABLE louver_ready AS {ready}")
        if not _count(plain, "louver_ready"):
            break
        chosen = "rowid IN (FROM louver_ready)"
        plain.execute(
            f"INSERT INTO {table.local_name} ({listed}) SELECT {listed} FROM louver_staged"
            f" WHERE {chosen}"
        )
        plain.execute(f"DELETE FROM louver_staged WHERE {chosen}")
    if _count(plain, "louver_staged"):
        raise errors.make(
            "sql.unsupported",
            statement=f"Exporting {table.label}, whose rows refer to each other in a circle,",
        )
