"""CSV files of a load: how they are written, their first line, and where one of them is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import bare

STDIN = "-"
_DELIMITERS = (",", ";", "\t", "|")
_LINE = re.compile(r"CSV Error on Line: (\d+)")
_COLUMN = re.compile(r'Error when converting column "([^"]*)"')
_VALUE = re.compile(r'Could not convert string "(.*)" to \'', re.DOTALL)
_COUNT = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_FILE = re.compile(r"^  file = (.*)$", re.MULTILINE)
_DELIMITER = re.compile(r"^  delimiter = (.) \(", re.MULTILINE)
_SHOWN_CHARACTERS = 60
#: Types of both engines whose values each writes in another way.
_PRINTED_OTHERWISE = frozenset(("BLOB", "TIMESTAMP WITH TIME ZONE", "FLOAT", "BOOLEAN"))
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How CSV files are written. Empty: the delimiter of the first line, dates as in SQL, and only
    empty fields are NULL.
    """

    delimiter: str = ""
    #: texts that stand for NULL, beside empty fields
    nulls: tuple[str, ...] = ()
    #: formats as in DuckDB's strptime
    date: str = ""
    timestamp: str = ""


def query(table: Table, paths: list[str], form: CsvForm) -> tuple[str, list[Any]]:
    """A query of the files in the types of the table, and its parameters."""
    delimiter, names = _header(table, _first_line(paths[0]), paths[0], form)
    for path in paths[1:]:
        if list(map(fold, _header(table, _first_line(path), path, form)[1])) != [*map(fold, names)]:
            detail = f"the first line of {path} differs from that of {paths[0]}"
            raise errors.make("load.columns", table=table.label, detail=detail)
    return _query(table, names, paths, form, delimiter)


def stdin_query(table: Table, form: CsvForm) -> tuple[str, list[Any], _Feed]:
    """The same of stdin, through a pipe that the returned thread fills."""
    first = sys.stdin.buffer.readline()
    line = first.decode("utf-8-sig", errors="replace")
    delimiter, names = _header(table, line, "stdin", form)
    feed = _Feed(first)
    sql, values = _query(table, names, [feed.path], form, delimiter)
    feed.start()
    return sql, values, feed


class _Feed(threading.Thread):
    """Writes stdin into a pipe that DuckDB reads as a file."""

    def __init__(self, first: bytes) -> None:
        super().__init__(name="louver-stdin", daemon=True)
        self._source, self._target = os.pipe()
        self._first = first
        self.path = f"/dev/fd/{self._source}"

    def run(self) -> None:
        """Copy to the end of stdin, or until no one reads."""
        try:
            with os.fdopen(self._target, "wb") as pipe:
                pipe.write(self._first)
                while data := sys.stdin.buffer.read(_READ_BYTES):
                    pipe.write(data)
        except OSError:
            # The load has failed, and says so itself.
            return

    def close(self) -> None:
        """Close the end that was read."""
        os.close(self._source)


def _query(
    table: Table, names: Sequence[str], paths: list[str], form: CsvForm, delimiter: str
) -> tuple[str, list[Any]]:
    items = []
    for name in names:
        column = table.column(name)
        items.append((name, read_as(column.type) if column else "VARCHAR"))
    options = {"nullstr": [*form.nulls, ""] if form.nulls else None, "dateformat": form.date,
               "timestampformat": form.timestamp}  # fmt: skip
    chosen = {name: value for name, value in options.items() if value}
    extra = "".join(f", {name}=${number}" for number, name in enumerate(chosen, 3))
    return (
        "SELECT * FROM read_csv($1, auto_detect=false, header=true, delim=$2, quote='\"',"
        f" escape='\"', columns={struct(items)}{extra})",
        [paths, delimiter, *chosen.values()],
    )


def _first_line(path: str) -> str:
    try:
        opened = gzip.open if fold(path).endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            return next(iter(file), "")
    except (OSError, UnicodeDecodeError) as error:
        raise failed(path, error) from None


def _header(table: Table, first: str, path: str, form: CsvForm) -> tuple[str, list[str]]:
    """The delimiter under which the first line names most table columns, and the names."""
    readings: list[tuple[int, int, str, list[str]]] = []
    for delimiter in (form.delimiter,) if form.delimiter else _DELIMITERS:
        try:
            names = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter), [])
        except (csv.Error, TypeError) as error:
            raise errors.make("load.file", path=path, detail=str(error)) from None
        hits = sum(table.column(name) is not None for name in names)
        readings.append((hits, -len(readings), delimiter, names))
    hits, _, delimiter, names = max(readings)
    if not hits:
        raise errors.make(
            "load.columns",
            table=table.label,
            detail=f"the first line of {path} does not name any column of the table",
        )
    return delimiter, names


def read_as(type_: str) -> str:
    """The type in which DuckDB reads fields for a column. What is PostgreSQL's is text, which that
    casts itself.
    """
    if spoken().prints_objects and (type_ in _PRINTED_OTHERWISE or type_ != keyword(type_)):
        return "VARCHAR"
    return bare(type_)


def struct(items: list[tuple[str, str]]) -> str:
    """Names and types as DuckDB's readers take them."""

    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    return "{" + ", ".join(f"{quoted(name)}: {text(type_)}" for name, type_ in items) + "}"


def failed(path: str, error: BaseException, table: Table | None = None) -> BaseException:
    """A read failure as one of our errors. It names file and line; it contains the value that is
    wrong only if the value is of a plain column.
    """
    said = str(error)
    line = _LINE.search(said)
    if line:
        column, count, file = _COLUMN.search(said), _COUNT.search(said), _FILE.search(said)
        detail = "the line cannot be read"
        if column:
            detail = f"{_value(said, column[1], table)} of {column[1]} does not fit its type"
        elif count:
            detail = f"{count[2]} fields instead of {count[1]}"
        own = path if path == "stdin" or file is None else file[1]
        delimiter = _DELIMITER.search(said)
        number = _line_of(own, int(line[1]), delimiter[1] if delimiter else ",")
        return errors.make("csv.row", path=own, line=str(number), detail=detail)
    if "INTERRUPT" in said or "interrupted" in said:
        return KeyboardInterrupt()
    first = said.splitlines()[0] if said else type(error).__name__
    return errors.make("load.file", path=path or "The data", detail=first)


def _line_of(path: str, record: int, delimiter: str) -> int:
    """The line on which a record begins, as an editor counts: DuckDB counts records, and a field in
    quotes may have several lines. stdin cannot be read again, so there it is the record's number.
    """
    if path == "stdin":
        return record
    opened = gzip.open if fold(path).endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            for _ in range(record - 1):
                next(reader)
            return reader.line_num + 1
    except (OSError, csv.Error, StopIteration):
        return record


def _value(said: str, name: str, table: Table | None) -> str:
    """How an error names a value: by itself only if the column is known to be plain."""
    column = None if table is None else table.column(name)
    match = _VALUE.search(said)
    if column is None or column.encrypted or match is None:
        return "the value"
    value = match[1] if len(match[1]) <= _SHOWN_CHARACTERS else match[1][:_SHOWN_CHARACTERS] + "…"
    return f"the value {value!r}"
