"""Everything as plaintext in a new DuckDB file: `louver export`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import inventory, seen_state, storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.progress import Progress
from louver.trusted.vault.catalog import Table

_Connection = duckdb.DuckDBPyConnection


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
        seen_state.refresh(context)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        with _writing(context, partial) as plain, seen_state.same_state(context):
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
            plain = duckdb.connect(str(path), config=options(context.local.directory))
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
    left = inventory.run_all(plain, early)
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
        counts[table.label] = 0
        with _loader(plain, table) as load:
            for batch in context.storage.batches(table):
                load(batch.drop_columns([storage.ROW_ID]))
                counts[table.label] += batch.num_rows
                done += batch.num_rows
                if progress is not None:
                    progress(done, max(done, total))
    inventory.run_all(plain, left + [item for item in items if item not in early])
    return counts


@contextmanager
def _loader(plain: _Connection, table: Table) -> Iterator[Callable[[pa.Table], None]]:
    """A function that inserts batches into a table of the new file, in an order its keys allow."""
    schema = DuckDBSchema(plain)
    generated = schema.generated(table.schema, table.name)
    names = [quoted(c.name) for c in table.columns if fold(c.name) not in generated]
    listed = ", ".join(names)
    keys = schema.self_keys(table.schema, table.name)
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
        if not DuckDBSchema(plain).count("louver_ready"):
            break
        chosen = "rowid IN (FROM louver_ready)"
        plain.execute(
            f"INSERT INTO {table.local_name} ({listed}) SELECT {listed} FROM louver_staged"
            f" WHERE {chosen}"
        )
        plain.execute(f"DELETE FROM louver_staged WHERE {chosen}")
    if DuckDBSchema(plain).count("louver_staged"):
        raise errors.make(
            "sql.unsupported",
            statement=f"Exporting {table.label}, whose rows refer to each other in a circle,",
        )
