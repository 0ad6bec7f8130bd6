"""Load files into tables of a DuckDB database; rows keep the order of the file and a number."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb

from louver import errors
from louver.names import fold, quoted
from louver.untrusted.providers.sources import Source

#: The column of every table that contains the number of the row.
POSITION = "louver_position"

#: Receives the current stage and the share of all the work done, from 0 to 1.
Told = Callable[[str, float], None]

_LOOK_SECONDS = 0.25
_MOST_TYPE_CHARACTERS = 16_000
_MOST_NAME_CHARACTERS = 255
_ATTACHED = "louver_source"


def read_source(
    connection: duckdb.DuckDBPyConnection, source: Source, progress: Told | None,
    check: Callable[[], None],
) -> list[str]:  # fmt: skip
    """Create the tables of one source; returns their names.

    Raises:
        louver.errors.Error: `provider.data` with the file's name and the problem; whatever
            `check` raises.
    """
    where = source.files[0]
    if any(character in file for file in source.files for character in "*?[]\0"):
        raise errors.make("provider.data", detail=f"{where}: a name with *, ? or [ in it")
    try:
        if source.kind == "duckdb":
            return _copy(connection, where, progress, check)
        _name(connection, source.name, where)
        with _watched(connection, f"reading {source.name}", progress):
            _create(connection, source)
    except duckdb.Error as error:
        check()
        if "No space left" in str(error):
            raise errors.make("disk.full", place=where) from error
        line = str(error).partition("\n")[0][:500]
        raise errors.make("provider.data", detail=f"{where}: {line}") from error
    _columns(connection, source.name, where)
    return [source.name]


def _create(connection: duckdb.DuckDBPyConnection, source: Source) -> None:
    files = "[" + ", ".join("'" + file.replace("'", "''") + "'" for file in source.files) + "]"
    table = f"CREATE TABLE {quoted(source.name)} AS SELECT "
    numbered = f"*, (row_number() OVER ()) - 1 AS {POSITION} FROM "
    if source.kind == "csv":
        try:
            connection.execute(f"{table}{numbered}read_csv({files}, hive_partitioning = false)")
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            # A later row did not fit the types of the first ones: detect types from all rows.
            wide = "hive_partitioning = false, sample_size = -1"
            connection.execute(f"{table}{numbered}read_csv({files}, {wide})")
        return
    # A column made of a folder's name would make the version depend on the path of the file.
    parquet = f"read_parquet({files}, hive_partitioning = false"
    if len(source.files) > 1:
        connection.execute(f"{table}{numbered}{parquet})")
        return
    described = connection.execute(f"DESCRIBE SELECT * FROM {parquet})").fetchall()
    if any(fold(row[0]) == "file_row_number" for row in described):
        connection.execute(f"{table}{numbered}{parquet})")
        return
    # The file's own row numbers need no single-threaded pass.
    connection.execute(
        f"{table}* EXCLUDE (file_row_number), file_row_number AS {POSITION} "
        f"FROM {parquet}, file_row_number = true)"
    )


def _copy(
    connection: duckdb.DuckDBPyConnection, file: str, progress: Told | None,
    check: Callable[[], None],
) -> list[str]:  # fmt: skip
    """All tables of a DuckDB file."""
    escaped = file.replace("'", "''")
    connection.execute(f"ATTACH '{escaped}' AS {_ATTACHED} (READ_ONLY)")
    try:
        names = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() "
            f"WHERE database_name = '{_ATTACHED}' AND NOT internal ORDER BY ALL"
        ).fetchall()
        if not names:
            raise errors.make("provider.data", detail=f"{file} holds no table")
        for position, (schema, name) in enumerate(names):
            check()
            _name(connection, name, file)
            part = None if progress is None else _share(progress, position, len(names))
            with _watched(connection, f"reading {name}", part):
                connection.execute(
                    f"CREATE TABLE {quoted(name)} AS SELECT *, (row_number() OVER ()) - 1 AS "
                    f"{POSITION} FROM {_ATTACHED}.{quoted(schema)}.{quoted(name)}"
                )
            _columns(connection, name, file)
    finally:
        connection.execute(f"DETACH {_ATTACHED}")
    return [name for _, name in names]


def _name(connection: duckdb.DuckDBPyConnection, name: str, file: str) -> None:
    if not name or len(name) > _MOST_NAME_CHARACTERS or not name.isprintable():
        raise errors.make("provider.data", detail=f"{file} gives no name for a table")
    # A parameter would make DuckDB import pandas, which takes longer than a small load.
    tables = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
    if fold(name) in (fold(row[0]) for row in connection.execute(tables).fetchall()):
        raise errors.make("provider.data", detail=f"{file}: two tables are named {name}")


def _columns(connection: duckdb.DuckDBPyConnection, name: str, file: str) -> None:
    """Refuse columns that cannot be described to clients."""
    for column, kind, *_ in connection.execute(f"DESCRIBE {quoted(name)}").fetchall()[:-1]:
        # DuckDB would have renamed a second column of the same name.
        if fold(column).startswith(POSITION):
            raise errors.make("provider.data", detail=f"{file} has a column named {POSITION}")
        if len(column) > _MOST_NAME_CHARACTERS or len(kind) > _MOST_TYPE_CHARACTERS:
            raise errors.make("provider.data", detail=f"{file}: a column's name or type is long")


def _share(progress: Told, position: int, count: int) -> Told:
    return lambda stage, done: progress(stage, (position + done) / count)


@contextmanager
def _watched(
    connection: duckdb.DuckDBPyConnection, stage: str, progress: Told | None
) -> Iterator[None]:
    """Report the progress of the statement that runs in this thread."""
    if progress is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        furthest = 0.0
        while not ended.wait(_LOOK_SECONDS):
            # -1 if DuckDB does not know, for example when the statement has just ended.
            furthest = min(1.0, max(furthest, connection.query_progress() / 100))
            progress(stage, furthest)

    thread = threading.Thread(target=look, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress(stage, 1.0)
