"""Sources of a load as a stream of Arrow batches: Arrow, data frames, and files by path.

The local engine reads files. The first line of a CSV file names the columns; the types are those of
the table, so that a bad line is reported instead of changing an inferred type.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local_engine import translated
from louver.trusted.executor.server_storage import BATCH_ROWS
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import bare

BATCH_BYTES = 2 << 20
"""Small batches avoid heap fragmentation, which would grow with the load."""
LEAST_ROWS = 1024
_DELIMITERS = (",", ";", "\t", "|")
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_COLUMN = re.compile(r'Error when converting column "([^"]*)"')
_CSV_COUNT = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_FAILURES = (duckdb.Error, pa.ArrowException, RuntimeError, OSError)


@dataclass(slots=True)
class Source:
    """Batches to load, their total number of rows if known, and the path of their file."""

    reader: pa.RecordBatchReader
    total: int | None = None
    path: str = ""
    end: Callable[[], None] | None = None

    def batches(self) -> Iterator[pa.Table]:
        """The rows in batches of at most `BATCH_ROWS` rows and about `BATCH_BYTES` bytes."""
        while True:
            try:
                batch = self.reader.read_next_batch()
            except StopIteration:
                return
            except _FAILURES as error:
                raise _failed(self.path, error) from None
            most = batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1)
            step = min(BATCH_ROWS, max(most, LEAST_ROWS))
            for start in range(0, batch.num_rows, step):
                yield pa.Table.from_batches([batch.slice(start, step)])

    def close(self) -> None:
        """Close the file."""
        if self.end is not None:
            self.end()


def open_source(context: Context, table: Table, source: object) -> Source:
    """The source as a stream; raises ``load.file`` if it cannot be read."""
    if isinstance(source, str | os.PathLike):
        return _file(context, table, os.fspath(source))
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


def _file(context: Context, table: Table, path: str | bytes) -> Source:
    path_text = os.fsdecode(path)
    kinds: dict[str, Callable[[Table, str], tuple[str, list[Any]]]] = {
        ".parquet": _parquet,
        ".pq": _parquet,
        ".csv": _csv,
        ".tsv": _csv,
        ".txt": _csv,
        ".json": _json,
        ".ndjson": _json,
        ".jsonl": _json,
    }
    suffixes = Path(path_text).suffixes
    if suffixes and fold(suffixes[-1]) in (".gz", ".zst"):
        suffixes.pop()
    kind = kinds.get(fold(suffixes[-1]) if suffixes else "")
    if kind is None:
        raise errors.make(
            "load.file",
            path=path_text,
            detail="its name does not end in .parquet, .csv, .tsv, .txt, .json, .ndjson",
        )
    if not Path(path_text).is_file():
        raise errors.make("load.file", path=path_text, detail="the file does not exist")
    connection = context.local.workspace.cursor()
    try:
        sql, values = kind(table, path_text)
        total = None
        if kind is _parquet:
            row = connection.execute(
                "SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata($1)", values
            ).fetchone()
            total = row[0] if row else None
        reader = connection.execute(sql, values).to_arrow_reader(BATCH_ROWS)
    except BaseException as error:
        connection.close()
        if isinstance(error, _FAILURES):
            raise _failed(path_text, error) from None
        raise
    return Source(reader, total, path_text, connection.close)


def _parquet(table: Table, path: str) -> tuple[str, list[Any]]:
    return "SELECT * FROM read_parquet($1)", [path]


def _json(table: Table, path: str) -> tuple[str, list[Any]]:
    """JSON carries no SQL types, so its fields are read in the types of the table."""
    with duckdb.connect(":memory:") as connection, translated():
        results = connection.execute("DESCRIBE SELECT * FROM read_json($1)", [path]).fetchall()
    items = []
    for name, type_, *_ in results:
        column = table.column(name)
        items.append((name, bare(column.type) if column else type_))
    return f"SELECT * FROM read_json($1, columns={_struct(items)})", [path]


def _csv(table: Table, path: str) -> tuple[str, list[Any]]:
    delimiter, names = _header(table, path)
    items = []
    for name in names:
        column = table.column(name)
        items.append((name, bare(column.type) if column else "VARCHAR"))
    return (
        "SELECT * FROM read_csv($1, auto_detect=false, header=true, delim=$2, quote='\"',"
        f" escape='\"', columns={_struct(items)})",
        [path, delimiter],
    )


def _header(table: Table, path: str) -> tuple[str, list[str]]:
    """The delimiter under which the first line names most table columns, and the names."""
    try:
        opened = gzip.open if fold(path).endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            readings: list[tuple[int, int, str, list[str]]] = []
            first = next(iter(file), "")
            for delimiter in _DELIMITERS:
                names = next(csv.reader([first], delimiter=delimiter), [])
                hits = sum(table.column(name) is not None for name in names)
                readings.append((hits, -len(readings), delimiter, names))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _failed(path, error) from None
    hits, _, delimiter, names = max(readings)
    if not hits:
        raise errors.make(
            "load.columns",
            table=table.label,
            detail=f"the first line of {path} does not name any column of the table",
        )
    return delimiter, names


def _struct(items: list[tuple[str, str]]) -> str:
    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    return "{" + ", ".join(f"{quoted(name)}: {text(type_)}" for name, type_ in items) + "}"


def _failed(path: str, error: BaseException) -> BaseException:
    """A read failure as one of our errors, whose message omits the text of the line."""
    said = str(error)
    line = _CSV_LINE.search(said)
    if line:
        column, count = _CSV_COLUMN.search(said), _CSV_COUNT.search(said)
        detail = "the line cannot be read"
        if column:
            detail = f"the value of {column[1]} does not fit its type"
        elif count:
            detail = f"{count[2]} fields instead of {count[1]}"
        return errors.make("csv.row", path=path, line=line[1], detail=detail)
    if "INTERRUPT" in said or "interrupted" in said:
        return KeyboardInterrupt()
    first = said.splitlines()[0] if said else type(error).__name__
    return errors.make("load.file", path=path or "The data", detail=first)
