"""A DuckLake catalog (version 1.0) in an SQLite file, with two additional tables of Louver's.

DuckDB's extension opens it (`ATTACH 'ducklake:sqlite:FILE'`) and lists tables, snapshots and files,
but it contains no usable bound, name or key.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from louver import errors

NAMESPACE = "louver"
#: How long writers wait for each other.
WAIT_SECONDS = 60

#: DuckLake's own tables, as version 1.5 of its extension creates them in SQLite.
_DUCKLAKE = """
metadata("key" VARCHAR NOT NULL, "value" VARCHAR NOT NULL, "scope" VARCHAR, scope_id BIGINT);
snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time VARCHAR, schema_version BIGINT,
    next_catalog_id BIGINT, next_file_id BIGINT);
snapshot_changes(snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR,
    commit_message VARCHAR, commit_extra_info VARCHAR);
schema(schema_id BIGINT PRIMARY KEY, schema_uuid VARCHAR, begin_snapshot BIGINT,
    end_snapshot BIGINT, schema_name VARCHAR, path VARCHAR, path_is_relative BIGINT);
table(table_id BIGINT, table_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT,
    schema_id BIGINT, table_name VARCHAR, path VARCHAR, path_is_relative BIGINT);
view(view_id BIGINT, view_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT,
    schema_id BIGINT, view_name VARCHAR, dialect VARCHAR, "sql" VARCHAR, column_aliases VARCHAR);
tag(object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR);
column_tag(table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT,
    "key" VARCHAR, "value" VARCHAR);
data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT,
    end_snapshot BIGINT, file_order BIGINT, path VARCHAR, path_is_relative BIGINT,
    file_format VARCHAR, record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT,
    row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT,
    partial_max BIGINT);
file_column_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT,
    column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR,
    max_value VARCHAR, contains_nan BIGINT, extra_stats VARCHAR);
file_variant_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR,
    shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT,
    min_value VARCHAR, max_value VARCHAR, contains_nan BIGINT, extra_stats VARCHAR);
delete_file(delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT,
    end_snapshot BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative BIGINT,
    format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT,
    encryption_key VARCHAR, partial_max BIGINT);
column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT,
    column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR,
    default_value VARCHAR, nulls_allowed BIGINT, parent_column BIGINT,
    default_value_type VARCHAR, default_value_dialect VARCHAR);
table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT);
table_column_stats(table_id BIGINT, column_id BIGINT, contains_null BIGINT, contains_nan BIGINT,
    min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR);
partition_info(partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT,
    column_id BIGINT, "transform" VARCHAR);
file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT,
    partition_value VARCHAR);
files_scheduled_for_deletion(data_file_id BIGINT, path VARCHAR, path_is_relative BIGINT,
    schedule_start VARCHAR);
inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT);
column_mapping(mapping_id BIGINT, table_id BIGINT, "type" VARCHAR);
name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT,
    parent_column BIGINT, is_partition BIGINT);
schema_versions(begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT);
macro(schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT,
    end_snapshot BIGINT);
macro_impl(macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, "sql" VARCHAR, "type" VARCHAR);
macro_parameters(macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR,
    parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR);
sort_info(sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
sort_expression(sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR,
    dialect VARCHAR, sort_direction VARCHAR, null_order VARCHAR)
"""

#: Louver's: roots of snapshots, and side files (indexes, lists, roots) in chunks.
_LOUVER = (
    "CREATE TABLE louver_snapshot(snapshot_id BIGINT PRIMARY KEY, table_id BIGINT, root VARCHAR)",
    "CREATE TABLE louver_file(path VARCHAR PRIMARY KEY, size BIGINT, written DOUBLE)",
    "CREATE TABLE louver_index(path VARCHAR, piece BIGINT, bytes BLOB, PRIMARY KEY (path, piece))",
    "CREATE INDEX louver_path ON ducklake_data_file(table_id, path)",
    "CREATE INDEX louver_stats ON ducklake_file_column_stats(data_file_id)",
)


class DuckLakeCatalog:
    """The file. Safe to use from several threads and processes."""

    def __init__(self, file: Path, data_path: str) -> None:
        """Open the catalog, or create one whose files are stored in the folder `data_path`."""
        self.file = file
        with self._translated():
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
        with self.writing() as connection:
            known = "SELECT count(*) FROM sqlite_master WHERE name = 'ducklake_snapshot'"
            if not connection.execute(known).fetchone()[0]:
                _make(connection, data_path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A consistent state of the catalog."""
        with self._translated(), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """An exclusive write transaction; rolled back if it raises."""
        with self._translated(), closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def _connect(self) -> sqlite3.Connection:
        # None: transactions are explicit. A foreign schema gets no functions with side effects.
        connection = sqlite3.connect(self.file, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate SQLite's errors to those of the lake. They contain no secret."""
        path = str(self.file)
        try:
            yield
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                raise errors.make("disk.full", place=path, detail=str(error)) from error
            raise errors.make("lake.io", place=path, detail=str(error)) from error
        except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
            detail = f"the catalog cannot be read ({type(error).__name__})"
            raise errors.make("lake.format", path=path, detail=detail) from error


def head(connection: sqlite3.Connection) -> tuple[int, int, int, int]:
    """The newest snapshot: its id, schema version, next ids of catalog entries and of files."""
    row = connection.execute(
        "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id "
        "FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
    ).fetchone()
    if row is None or not all(isinstance(number, int) for number in row):
        raise ValueError("no snapshot")
    number, version, entry, file = row
    return number, version, entry, file


def add_snapshot(
    connection: sqlite3.Connection,
    changes: str,
    *,
    made_ms: int | None = None,
    schema: int = 0,
    entries: int = 0,
    files: int = 0,
) -> int:
    """Add a snapshot after the newest one, with its counters increased; returns its id."""
    number, version, entry, file = head(connection)
    moment = datetime.fromtimestamp((made_ms or time.time_ns() // 1_000_000) / 1_000, UTC)
    row = (number + 1, _text(moment), version + schema, entry + entries, file + files)
    insert(connection, "ducklake_snapshot", row)
    change = (number + 1, changes, None, None, None)
    insert(connection, "ducklake_snapshot_changes", change)
    return number + 1


def insert(connection: sqlite3.Connection, table: str, *rows: tuple[Any, ...]) -> None:
    """Add rows with all columns given."""
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def milliseconds(moment: str) -> int:
    """A timestamp in DuckLake's format, in ms since 1970."""
    return round(datetime.fromisoformat(f"{moment}:00").timestamp() * 1_000)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}+00"


def _make(connection: sqlite3.Connection, data_path: str) -> None:
    for table in _DUCKLAKE.strip().split(";\n"):
        connection.execute(f"CREATE TABLE ducklake_{table}")
    for statement in _LOUVER:
        connection.execute(statement)
    facts = {"version": "1.0", "created_by": "Louver", "data_path": data_path, "encrypted": "true"}
    rows = [(key, value, None, None) for key, value in facts.items()]
    insert(connection, "ducklake_metadata", *rows)
    insert(connection, "ducklake_snapshot", (0, _text(datetime.now(UTC)), 0, 2, 0))
    change = f'created_schema:"main",created_schema:"{NAMESPACE}"'
    insert(connection, "ducklake_snapshot_changes", (0, change, None, None, None))
    schemas = [
        (position, str(uuid.uuid4()), 0, None, name, f"{name}/", 1)
        for position, name in enumerate(("main", NAMESPACE))
    ]
    insert(connection, "ducklake_schema", *schemas)
