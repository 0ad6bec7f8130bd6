"""Everything as plaintext in a database of a server: `louver export --to`.

All of it is one transaction there, so that nothing is half written. The rows are of one state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import HERE, fold, quoted
from louver.trusted import backends
from louver.trusted.executor import inventory, seen_state, storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import arrow_values, object_texts
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.progress import Progress
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.backends.postgres_plain import WrittenTable
    from louver.untrusted.engines.engine import Engine

_BATCH = "louver_batch"
_COLUMNS = (
    'SELECT schema_name AS schema, table_name AS "table", column_name AS name,'
    ' data_type AS type, column_default AS "default", is_nullable AS nullable, comment'
    f" FROM duckdb_columns() WHERE {HERE} AND NOT internal"
    " ORDER BY schema_name, table_name, column_index"
)
_QUERIES = {
    "tables": "SELECT schema_name AS schema, table_name AS name, comment FROM duckdb_tables()"
    f" WHERE {HERE} ORDER BY table_oid",
    "constraints": "SELECT schema_name AS schema, table_name AS \"table\","
    " constraint_type AS kind, constraint_column_names AS columns, expression,"
    " constraint_text AS text, referenced_table AS parent,"
    f" referenced_column_names AS parent_columns FROM duckdb_constraints() WHERE {HERE}"
    " ORDER BY table_oid, constraint_index",
    "indexes": "SELECT schema_name AS schema, index_name AS name, table_name AS \"table\","
    f" is_unique, sql FROM duckdb_indexes() WHERE {HERE} ORDER BY index_oid",
    "views": "SELECT schema_name AS schema, view_name AS name, sql FROM duckdb_views()"
    f" WHERE {HERE} AND NOT internal ORDER BY view_oid",
    "types": "SELECT schema_name AS schema, type_name AS name, labels FROM duckdb_types()"
    f" WHERE {HERE} AND NOT internal AND logical_type = 'ENUM' ORDER BY type_oid",
}  # fmt: skip
_Connection = duckdb.DuckDBPyConnection


def export(
    context: Context, url: str, *, progress: Progress | None = None, as_text: bool = False
) -> tuple[dict[str, int], list[str]]:
    """Write everything into the database at a URL, whose tables of these names do not exist yet;
    the number of rows of each table, and what is left. ``as_text`` writes values of types that the
    server does not have as text.
    """
    scheme = url.partition("://")[0]
    module = backends.plain(scheme)
    if not context.in_transaction:
        seen_state.refresh(context)
    target = backends.engine(scheme).open_url(url)
    with closing(target), closing(duckdb.connect(config=options(context.local.directory))) as plain:
        if target.address == context.engine.address:
            raise errors.make("source.same", place=target.address)
        # However its address is spelled: whose server holds ciphertext gets no plaintext beside it.
        module.require_others(target)
        items = inventory.stored_objects(context)
        inventory.run_all(plain, items)
        written = module.written(_described(plain), as_text=as_text)
        macros = [item.name for item in items if item.kind == "MACRO"]
        if macros:
            written.left["macro"] = macros
        with seen_state.same_state(context):
            target.begin()
            for sql in written.before:
                target.run(Statement(sql, kind="ddl"))
            give = _Giver(plain, module.sent)
            counts = _rows(context, give, target, written.tables, progress)
            for sql in written.after:
                target.run(Statement(sql, kind="ddl"))
            target.commit()
    return counts, module.notices(written.left)


def _described(plain: _Connection) -> dict[str, list[dict[str, Any]]]:
    """The objects of a database of the local engine, as rows by kind."""
    local = {kind: _dicts(plain, sql) for kind, sql in _QUERIES.items()}
    known = {(row["schema"], row["name"]) for row in local["tables"]}
    views = {(row["schema"], row["name"]): row for row in local["views"]}
    for row in views.values():
        row["columns"] = []
    local["columns"] = []
    for row in _dicts(plain, _COLUMNS):
        key = (row["schema"], row["table"])
        if key in views:
            views[key]["columns"].append(row["name"])
        elif key in known:
            row["labels"] = _labels(plain, row["type"])
            row["generated"] = fold(row["name"]) in DuckDBSchema(plain).generated(*key)
            local["columns"].append(row)
    local["sequences"] = []
    for state in DuckDBSchema(plain).sequences().values():
        text = object_texts.stored_sequence(state)
        following = text.rpartition(" START ")[2].split(" ")[0]
        local["sequences"].append({
            "schema": state.schema, "name": state.name, "temporary": state.temporary,
            "increment_by": state.increment, "min_value": state.low, "max_value": state.high,
            "start_value": state.start, "last_value": state.last, "cycle": state.cycle,
            "next": following,
        })  # fmt: skip
    return local


def _labels(plain: _Connection, type_: str) -> list[str] | None:
    """The values of an enumerated type."""
    if not type_.startswith("ENUM("):
        return None
    row = plain.execute(f"SELECT enum_range(NULL::{type_})").fetchone()
    return list(row[0]) if row else None


def _dicts(plain: _Connection, sql: str) -> list[dict[str, Any]]:
    cursor = plain.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _rows(
    context: Context, giver: _Giver, target: Engine, written: list[WrittenTable],
    progress: Progress | None,
) -> dict[str, int]:  # fmt: skip
    """Copy the rows of all tables, and compare their numbers."""
    total = sum(table.row_count for table in context.catalog.tables.values())
    done = 0
    counts: dict[str, int] = {}

    def count(label: str, rows: int) -> None:
        nonlocal done
        counts[label] += rows
        done += rows
        if progress is not None:
            progress(done, max(done, total))

    for table in written:
        entry = context.catalog.table(table.schema, table.name)
        if entry is None:
            continue
        counts[entry.label] = 0
        empty = giver.given(table, giver.no_rows(table))
        batches = _opened_rows(context, giver, table, entry, count)
        target.append(table.path, pa.RecordBatchReader.from_batches(empty.schema, batches))
        rows = target.value(Statement(f"SELECT count(*) FROM {table.path}"))
        if rows != counts[entry.label]:
            expected = counts[entry.label]
            raise errors.make("source.count", table=entry.label, rows=rows, expected=expected)
    return counts


def _opened_rows(
    context: Context, giver: _Giver, table: WrittenTable, entry: Table,
    count: Callable[[str, int], None],
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The opened rows of a table, as they are sent."""
    for batch in context.storage.batches(entry):
        yield from giver.given(table, batch.drop_columns([storage.ROW_ID])).to_batches()
        count(entry.label, batch.num_rows)


@dataclass(frozen=True, slots=True)
class _Giver:
    """Rows in the types of which the server's binary form is made."""

    plain: _Connection
    sent: Callable[[pa.Table], pa.Table]

    def given(self, table: WrittenTable, batch: pa.Table) -> pa.Table:
        """These rows of a table."""
        listed = ", ".join(f"{text} AS {quoted(name)}" for name, text in table.columns)
        arrow_values.register(self.plain, _BATCH, batch)
        try:
            with translated():
                rows = self.plain.execute(f"SELECT {listed} FROM {_BATCH}").to_arrow_table()
        finally:
            self.plain.unregister(_BATCH)
        return self.sent(rows)

    def no_rows(self, table: WrittenTable) -> pa.Table:
        """No row of a table, in its types."""
        path = f"{quoted(table.schema)}.{quoted(table.name)}"
        return self.plain.execute(f"SELECT * FROM {path} LIMIT 0").to_arrow_table()
