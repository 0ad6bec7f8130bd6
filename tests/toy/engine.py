"""SQLite as the untrusted machine, by Python's own library.

A file has one writer at a time, so side connections write to a file of their own beside it.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa

from louver import errors
from louver.untrusted.engines.engine import Engine, Prompt, Traffic
from louver.untrusted.engines.stored import Ask, StoredRows, StoredTable
from louver.wire.messages import Constant, Statement

_ARROW = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(),
    "VARCHAR": pa.string(), "BLOB": pa.binary(),
}  # fmt: skip
_WAIT_SECONDS = 5.0


class SQLiteEngine(Prompt):
    """One connection to a SQLite file."""

    backend = "sqlite"

    def __init__(self, path: str) -> None:
        """Open or create the file."""
        self.created = not Path(path).exists()
        self.address = _place(path)
        self.traffic = Traffic()
        self.in_transaction = False
        self._path = path
        self._types: dict[str, list[str]] = {}
        self._connection = sqlite3.connect(
            path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        with self._translated():
            self._connection.execute("PRAGMA journal_mode = WAL")
        _register(self._connection)

    def side(self) -> SQLiteEngine:
        """A connection to the file that ledger and epochs are in."""
        return SQLiteEngine(self._path.removesuffix("-side") + "-side")

    def query(self, statement: Statement) -> pa.Table:
        """Run a query and return all of its rows."""
        with self._inputs(statement), self._translated():
            cursor = self._run(statement)
            names = [item[0] for item in cursor.description]
            rows = cursor.fetchall()
            declared = self._declared(statement, len(names))
        columns = [
            pa.array([row[index] for row in rows], _ARROW.get(type_))
            for index, type_ in enumerate(declared)
        ]
        table = pa.Table.from_arrays(columns, names)
        self.traffic.bytes_in += table.nbytes
        self.traffic.rows_in += table.num_rows
        return table

    def stream(self, statement: Statement) -> pa.RecordBatchReader:
        """Run a query; its rows are in memory."""
        return self.query(statement).to_reader()

    def value(self, statement: Statement) -> Constant:
        """The first column of a query's first row."""
        with self._inputs(statement), self._translated():
            row = self._run(statement).fetchone()
        return cast(Constant, row[0]) if row else None

    def table_names(self) -> list[str]:
        """The names of all tables."""
        sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        with self._translated():
            return [row[0] for row in self._connection.execute(sql)]

    def run(self, statement: Statement) -> int:
        """Run a statement and return the number of rows it touched."""
        with self._inputs(statement), self._translated():
            cursor = self._run(statement)
        self._types.clear()
        return max(cursor.rowcount, 0) if statement.kind == "write" else 0

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Insert Arrow rows, all or none."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        names = ", ".join(f'"{name}"' for name in rows.schema.names)
        places = ", ".join("?" * len(rows.schema.names))
        own = not self.in_transaction
        if own:
            self.begin()
        try:
            for batch in batches:
                values = list(zip(*map(_python, batch.columns), strict=True))
                with self._translated():
                    sql = f"INSERT INTO {table} ({names}) VALUES ({places})"
                    self._connection.executemany(sql, values)
                self.traffic.bytes_out += batch.nbytes
                self.traffic.rows_out += batch.num_rows
        except BaseException:
            if own:
                self.rollback()
            raise
        if own:
            self.commit()

    def begin(self) -> None:
        """Open a transaction."""
        with self._translated():
            self._connection.execute("BEGIN")
        self.in_transaction = True

    def commit(self) -> None:
        """Commit it."""
        with self._translated():
            self._connection.execute("COMMIT")
        self.in_transaction = False

    def rollback(self) -> None:
        """Undo it."""
        self.in_transaction = False
        self._types.clear()
        with self._translated():
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def lost_race(self, error: errors.Error) -> bool:
        """Whether another connection was faster: it holds the lock, or has changed the file."""
        return isinstance(error, errors.IntegrityError) or error.code == "database.locked"

    def interrupt(self) -> None:
        """Stop the running statement."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _run(self, statement: Statement) -> sqlite3.Cursor:
        self.traffic.statements += 1
        self.traffic.bytes_out += len(statement.sql.encode())
        bound = {str(index): value for index, value in enumerate(statement.constants, 1)}
        return self._connection.execute(statement.sql, bound)

    def _declared(self, statement: Statement, count: int) -> list[str]:
        """The types of a query's columns, where they are stored ones; a view without any values
        bound tells.
        """
        known = self._types.get(statement.sql)
        if known is None:
            text = statement.sql
            for number in range(len(statement.constants), 0, -1):
                text = text.replace(f"${number}", "NULL")
            self._connection.execute(f"CREATE TEMP VIEW louver_shape AS {text}")
            columns = self._connection.execute("PRAGMA table_info(louver_shape)").fetchall()
            self._connection.execute("DROP VIEW louver_shape")
            known = self._types[statement.sql] = [row[2] for row in columns]
        if len(known) != count:
            raise errors.make("reply.format", detail="columns that were not asked for")
        return known

    @contextmanager
    def _inputs(self, statement: Statement) -> Iterator[None]:
        """The Arrow inputs of a statement as temporary tables."""
        try:
            for name, rows in statement.tables.items():
                listed = ", ".join(f'"{column}"' for column in rows.column_names)
                places = ", ".join("?" * rows.num_columns)
                with self._translated():
                    self._connection.execute(f"CREATE TEMP TABLE {name} ({listed})")
                    columns = [_python(column.combine_chunks()) for column in rows.columns]
                    values = list(zip(*columns, strict=True))
                    self._connection.executemany(f"INSERT INTO {name} VALUES ({places})", values)
            yield
        finally:
            for name in statement.tables:
                with self._translated():
                    self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise errors.from_duckdb(duckdb.ConstraintException(str(error))) from error
        except sqlite3.Error as error:
            locked = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            code = "database.locked" if locked else "database.io"
            raise errors.make(code, place=self.address, detail=str(error)) from error


def open_url(url: str) -> SQLiteEngine:
    """The engine of ``sqlite:///file``."""
    return SQLiteEngine(url.partition(":///")[2])


def place_of_url(url: str) -> str:
    """The stable name of the file."""
    return _place(url.partition(":///")[2])


def require_database(url: str) -> None:
    """An error where the file is no database."""
    open_url(url).close()


@contextmanager
def stored_at(url: str) -> Iterator[StoredRows]:
    """What the file of a URL stores."""
    engine = open_url(url)
    try:
        yield stored_of(engine)
    finally:
        engine.close()


def stored_of(engine: Engine) -> StoredRows:
    """The same through an open connection, whose side connections have a file of their own."""
    return StoredRows(lambda sql: engine.query(Statement(sql)), _tables)


def _tables(ask: Ask) -> list[StoredTable]:
    columns: dict[str, list[tuple[str, str]]] = {}
    sql = (
        "SELECT m.name AS t, c.name AS c, c.type AS d FROM sqlite_master m"
        " JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid"
    )
    for row in ask(sql).to_pylist():
        columns.setdefault(row["t"], []).append((row["c"], row["d"]))
    sizes = {
        name: ask(f'SELECT count(*) AS n FROM "{name}"').column(0)[0].as_py() for name in columns
    }
    return [StoredTable("main", name, tuple(columns[name]), sizes[name]) for name in columns]


def _place(path: str) -> str:
    return "sqlite:" + str(Path(path).resolve())


def _python(values: pa.Array) -> list[Any]:
    plain = values.storage if isinstance(values, pa.ExtensionArray) else values
    return cast("list[Any]", plain.to_pylist())


class _ArgMin:
    """The value beside the least key."""

    def __init__(self) -> None:
        self._least: tuple[Any, Any] | None = None

    def step(self, value: Any, key: Any) -> None:
        if key is not None and (self._least is None or key < self._least[0]):
            self._least = (key, value)

    def finalize(self) -> Any:
        return None if self._least is None else self._least[1]


def _register(connection: sqlite3.Connection) -> None:
    from louver._rust import server

    def each(name: str, code: pa.DataType) -> Any:
        """A function on columns as one on values."""
        function = getattr(server, name)

        def call(value: Any, *rest: Any) -> Any:
            columns = [pa.array([value], code)]
            columns += [
                pa.array([value], pa.int64() if isinstance(value, int) else pa.binary())
                for value in rest
            ]
            return _python(function(*columns))[0]

        return call

    narrow, wide = pa.int64(), pa.binary(16)
    connection.create_function("onion_open", 3, each("onion_open", narrow))
    connection.create_function("onion_open_wide", 3, each("onion_open_wide", wide))
    connection.create_function("onion_join", 2, each("onion_join", narrow))
    connection.create_function("onion_join_wide", 2, each("onion_join_wide", wide))
    connection.create_function("wide_code", 1, lambda text: text and uuid.UUID(text).bytes)
    connection.create_aggregate("arg_min", 2, cast("Any", _ArgMin))
