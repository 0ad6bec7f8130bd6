"""Sources of a load as a stream of Arrow batches: Arrow, data frames, and files by path.

The local engine reads files. The first line of a CSV file names the columns; the types are those of
the table, so that a bad line is reported instead of changing an inferred type.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor import csv_files
from louver.trusted.executor.context import Context
from louver.trusted.executor.csv_files import CsvForm
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.frames import held
from louver.trusted.executor.server_rows import BATCH_ROWS
from louver.trusted.vault.catalog import Table

BATCH_BYTES = 2 << 20
"""Small batches avoid heap fragmentation, which would grow with the load."""
LEAST_ROWS = 1024
_NAME = "louver_source"
_AS_DUCKDB = CsvForm()
_KINDS = {
    "parquet": "parquet", "pq": "parquet", "csv": "csv", "tsv": "csv", "txt": "csv",
    "json": "json", "ndjson": "json", "jsonl": "json",
}  # fmt: skip
_FAILURES = (duckdb.Error, pa.ArrowException, RuntimeError, OSError)
#: The same of what the local engine runs, whose errors are Louver's already.
_FAILED_LOCALLY = (errors.Error, *_FAILURES)


@dataclass(slots=True)
class Source:
    """Batches to load, their total number of rows if known, and the path of their file."""

    reader: pa.RecordBatchReader
    total: int | None = None
    path: str = ""
    table: Table | None = None
    end: Callable[[], None] | None = None

    def batches(self) -> Iterator[pa.Table]:
        """The rows in batches of at most `BATCH_ROWS` rows and about `BATCH_BYTES` bytes."""
        while True:
            try:
                batch = self.reader.read_next_batch()
            except StopIteration:
                return
            except _FAILURES as error:
                raise csv_files.failed(self.path, error, self.table) from None
            most = batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1)
            step = min(BATCH_ROWS, max(most, LEAST_ROWS))
            for start in range(0, batch.num_rows, step):
                yield pa.Table.from_batches([batch.slice(start, step)])

    def close(self) -> None:
        """Close the file."""
        if self.end is not None:
            self.end()


def open_source(
    context: Context, table: Table, source: object, form: CsvForm = _AS_DUCKDB
) -> Source:
    """The source as a stream; raises ``load.file`` if it cannot be read. A path may be a pattern
    of several files; ``-`` is CSV from stdin, and ``form`` is how CSV is written.
    """
    if isinstance(source, str | os.PathLike):
        return _file(context, table, os.fsdecode(source), form)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return Source(source)
    if type(source).__module__.split(".")[0] == "pandas":
        source = pa.Table.from_pandas(source, preserve_index=False)
    if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
        source = source.collect()
    if isinstance(source, pa.Table):
        return Source(source.to_reader(BATCH_ROWS), source.num_rows)
    if hasattr(source, "__arrow_c_stream__"):
        count = len(source) if hasattr(source, "__len__") else None
        return Source(pa.RecordBatchReader.from_stream(source), count)
    raise errors.make(
        "load.file",
        path=f"An object of type {type(source).__name__}",
        detail="it is neither Arrow, nor a data frame, nor the path of a file",
    )


def paths_of(path: str) -> list[str]:
    """The files that a path or a pattern names, in the order of their names."""
    paths = [path] if Path(path).is_file() else sorted(glob.glob(path, recursive=True))
    if not paths:
        missing = "no file has such a name" if glob.has_magic(path) else "the file does not exist"
        raise errors.make("load.file", path=path, detail=missing)
    return paths


def kind_of(path: str) -> str:
    """parquet, csv or json, by the end of a file's name."""
    suffixes = Path(path).suffixes
    if suffixes and fold(suffixes[-1]) in (".gz", ".zst"):
        suffixes.pop()
    kind = _KINDS.get(fold(suffixes[-1]).removeprefix(".") if suffixes else "")
    if kind is None:
        raise errors.make(
            "load.file",
            path=path,
            detail="its name does not end in .parquet, .csv, .tsv, .txt, .json, .ndjson",
        )
    return kind


def _file(context: Context, table: Table, path: str, form: CsvForm) -> Source:
    if path == csv_files.STDIN:
        return _stdin(context, table, form)
    kind = kind_of(path)
    paths = paths_of(path)
    try:
        sql, values = _QUERIES[kind](table, paths, form)
    except _FAILURES as error:
        raise csv_files.failed(path, error, table) from None
    connection = context.local.reader()
    try:
        total = None
        if kind == "parquet":
            row = connection.fetchone(
                "SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata($1)", values
            )
            total = row[0] if row else None
        reader = connection.stream(sql, values, BATCH_ROWS)
    except BaseException as error:
        connection.close()
        if isinstance(error, _FAILED_LOCALLY):
            raise csv_files.failed(path, error, table) from None
        raise
    return Source(reader, total, path, table, connection.close)


def _stdin(context: Context, table: Table, form: CsvForm) -> Source:
    sql, values, feed = csv_files.stdin_query(table, form)
    connection = context.local.reader()

    def end() -> None:
        connection.close()
        feed.close()

    try:
        reader = connection.stream(sql, values, BATCH_ROWS)
    except BaseException as error:
        end()
        if isinstance(error, _FAILED_LOCALLY):
            raise csv_files.failed("stdin", error, table) from None
        raise
    return Source(reader, None, "stdin", table, end)


def _parquet(table: Table, paths: list[str], form: CsvForm) -> tuple[str, list[Any]]:
    named = ", union_by_name=true" if len(paths) > 1 else ""
    return f"SELECT * FROM read_parquet($1{named})", [paths]


def _json(table: Table, paths: list[str], form: CsvForm) -> tuple[str, list[Any]]:
    """JSON carries no SQL types, so its fields are read in the types of the table."""
    with duckdb.connect(":memory:") as connection, translated():
        results = connection.execute("DESCRIBE SELECT * FROM read_json($1)", [paths]).fetchall()
    items = []
    for name, type_, *_ in results:
        column = table.column(name)
        items.append((name, csv_files.read_as(column.type) if column else type_))
    return f"SELECT * FROM read_json($1, columns={csv_files.struct(items)})", [paths]


def columns_of(context: Context, source: object, form: CsvForm) -> list[tuple[str, str]]:
    """Names and types of a source's columns, as the local engine reads them; no row is consumed."""
    if isinstance(source, str | os.PathLike):
        return sniffed(os.fsdecode(source), form)
    if isinstance(source, pa.RecordBatchReader):
        source = source.schema.empty_table()
    with closing(context.local.reader()) as connection:
        connection.register(_NAME, held(source))
        try:
            rows = connection.fetchall(f"DESCRIBE FROM {_NAME}")
        finally:
            connection.unregister(_NAME)
    return [(str(row[0]), str(row[1])) for row in rows]


def sniffed(path: str, form: CsvForm) -> list[tuple[str, str]]:
    """Names and types of the columns of files, for a table that is created for them."""
    kind, paths = kind_of(path), paths_of(path)
    sql = f"DESCRIBE SELECT * FROM read_{kind}($1"
    options = {"delim": form.delimiter, "nullstr": [*form.nulls, ""] if form.nulls else None,
               "dateformat": form.date, "timestampformat": form.timestamp}  # fmt: skip
    chosen = {name: value for name, value in options.items() if value and kind == "csv"}
    sql += "".join(f", {name}=${number}" for number, name in enumerate(chosen, 2)) + ")"
    with duckdb.connect(":memory:") as connection, translated():
        rows = connection.execute(sql, [paths, *chosen.values()]).fetchall()
    return [(row[0], row[1]) for row in rows]


_QUERIES: dict[str, Callable[[Table, list[str], CsvForm], tuple[str, list[Any]]]] = {
    "parquet": _parquet,
    "csv": csv_files.query,
    "json": _json,
}
