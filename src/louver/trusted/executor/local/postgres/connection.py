"""A connection to the private PostgreSQL: Arrow and Python values, Louver's errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.names import quoted
from louver.trusted.executor.local.local import (
    MOST_ROWS,
    Described,
    ForeignKey,
    LocalConnection,
    Parameters,
    UniqueKey,
)
from louver.trusted.executor.local.postgres import parameters as values_given
from louver.trusted.executor.local.postgres import python_values, readable, values
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.own_caches import OwnCaches
from louver.trusted.executor.local.postgres.type_names import TypeNames
from louver.trusted.planner.sql.postgres_types import own_type
from louver.trusted.vault.catalog import Table

Statement = tuple[str, Sequence[Any]]
Reply = postgres.Reply
_FAILURES = (postgres.ServerError, postgres.ConnectionLost)
_COPY_ROWS = 65_536
_numbers = itertools.count()


class PostgresConnection(LocalConnection):
    """One of the private server's sessions. A text is one statement."""

    def __init__(self, raw: postgres.Session, types: TypeNames) -> None:
        """Over an open one; ``types`` are those of its database."""
        self.raw = raw
        self._types = types
        self._caches = OwnCaches(raw)
        #: whether a statement that fails leaves the open transaction as it was before it
        self.is_guarded = False
        #: how many rows were written, some of them twice
        self.written = 0

    # ------------------------------------------------------------------ statements

    def run(self, sql: str, parameters: Parameters = ()) -> Reply:
        """A statement's tag, columns and arrays."""
        try:
            with self.guarded(), translated(sql):
                reply = self.raw.run([(sql, self.given(sql, parameters))])[0]
            self.note_written(reply[0])
            return reply
        except errors.Error as error:
            if self.raw.state() == "failed" or not readable.needs_text(error):
                raise
        with self.guarded(), translated(sql):
            given = self.given(sql, parameters)
            return self.raw.run([(readable.as_text(self.raw, sql), given)])[0]

    def note_written(self, tag: str) -> None:
        """Count the rows that a statement wrote, by its tag."""
        verb, _, count = tag.rpartition(" ")
        if count.isdecimal() and not verb.startswith(("SELECT", "FETCH")):
            self.written += int(count)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Leave the open transaction as it was where the block fails, if that is asked for."""
        if not self.is_guarded or self.raw.state() != "within":
            yield
            return
        name = f"louver_{next(_numbers)}"
        with translated():
            self.raw.run([(f"SAVEPOINT {name}", [])])
        try:
            yield
        except BaseException:
            with suppress(*_FAILURES):
                self.raw.run([(f"ROLLBACK TO {name}", []), (f"RELEASE {name}", [])])
            raise
        with translated():
            self.raw.run([(f"RELEASE {name}", [])])

    def given(self, sql: str, parameters: Parameters) -> list[Any]:
        """Values as they are sent with a statement, which is described before if need be."""
        if not parameters:
            return []
        own = values_given.listed(parameters)
        if all(value is None or isinstance(value, str) for value in own):
            return own
        inferred = self.raw.describe(sql)[0]
        return values_given.sent(own, values_given.own_types(own, inferred))

    def numbers(self, names: Sequence[str]) -> list[int]:
        """The numbers of types by their names."""
        with translated():
            return self._types.numbers(self.raw, [own_type(name) for name in names])

    def base_type(self, name: str) -> str:
        """The type that a domain is of in the end; of any other type its name."""
        with translated():
            return self._types.base(self.raw, own_type(name))

    def table(self, reply: Reply) -> pa.Table:
        """The rows of a reply."""
        _, columns, arrays = reply
        return values.answer(columns, arrays, self._types.of(self.raw, columns))

    def described(self, columns: Sequence[values.Column]) -> Described:
        """Names and types of columns."""
        names = self._types.of(self.raw, columns)
        return [(column[0], name) for column, name in zip(columns, names, strict=True)]

    def execute(self, sql: str, parameters: Parameters = ()) -> None:
        """See `LocalConnection`."""
        self.run(sql, parameters)

    def noticed(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement within the open transaction: the fields of what is remarked on it."""
        self.execute("SET LOCAL client_min_messages = notice")
        self.raw.notices()
        self.execute(sql)
        return self.raw.notices()

    def fetchall(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """See `LocalConnection`."""
        return self.python_rows(self.fetch_arrow(sql, parameters))

    def fetchone(self, sql: str, parameters: Parameters = ()) -> tuple[Any, ...] | None:
        """See `LocalConnection`."""
        rows = self.python_rows(self.fetch_arrow(sql, parameters).slice(0, 1))
        return rows[0] if rows else None

    def fetch_arrow(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """See `LocalConnection`."""
        reply = self.run(sql, parameters)
        with translated(sql):
            return self.table(reply)

    def fetch_described(self, sql: str, parameters: Parameters = ()) -> tuple[Described, pa.Table]:
        """See `LocalConnection`."""
        reply = self.run(sql, parameters)
        with translated(sql):
            return self.described(reply[1]), self.table(reply)

    def stream(
        self, sql: str, parameters: Parameters = (), batch_rows: int = MOST_ROWS
    ) -> pa.RecordBatchReader:
        """See `LocalConnection`; in a transaction of its own where none is open."""
        is_own = self.raw.state() == "idle"
        portal = f"louver_{next(_numbers)}"
        with translated(sql):
            if is_own:
                self.raw.run([("BEGIN", [])])
            try:
                columns = self.raw.open_portal(portal, sql, self.given(sql, parameters))
                names = self._types.of(self.raw, columns)
            except BaseException:
                self._end(is_own)
                raise
        empty = [pa.nulls(0, _storage(c[1], c[2], n)) for c, n in zip(columns, names, strict=True)]
        schema = values.answer(columns, empty, names).schema

        def batches() -> Iterator[pa.RecordBatch]:
            more = True
            try:
                while more:
                    with translated(sql):
                        arrays, more = self.raw.fetch(portal, columns, batch_rows)
                    yield from values.answer(columns, arrays, names).to_batches()
            finally:
                self._end(is_own)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _end(self, is_own: bool) -> None:
        if is_own:
            with suppress(*_FAILURES):
                self.raw.run([("ROLLBACK", [])])

    @contextmanager
    def undone(self) -> Iterator[None]:
        """A transaction, or a part of the one that is open, that is undone at the end."""
        first, last = "BEGIN", ["ROLLBACK"]
        if self.raw.state() != "idle":
            name = f"louver_{next(_numbers)}"
            first, last = f"SAVEPOINT {name}", [f"ROLLBACK TO {name}", f"RELEASE {name}"]
        with translated():
            self.raw.run([(first, [])])
        try:
            yield
        finally:
            with suppress(*_FAILURES):
                for text in last:
                    self.raw.run([(text, [])])
                self.note_undone()

    def note_undone(self) -> None:
        """See `OwnCaches`."""
        self._caches.note_undone()

    # ------------------------------------------------------------------ rows

    def create(
        self, target: str, columns: Sequence[tuple[str, str]], rows: pa.Table, word: str = "TABLE"
    ) -> None:
        """Make a table of these columns, with these rows."""
        with translated():
            self.raw.run([(creation(target, columns, rows, word), [])])
        self.fill(target, [name for name, _ in columns], rows)

    def fill(self, target: str, names: Sequence[str], rows: pa.Table) -> None:
        """Put rows, whose columns are in this order, into columns of a table: by binary COPY."""
        if not rows.num_rows:
            return
        self.written += rows.num_rows
        listed = ", ".join(map(quoted, names))
        with translated():
            types = [column[1] for column in self.raw.describe(f"SELECT {listed} FROM {target}")[1]]
            self.raw.copy_in(
                f"COPY {target} ({listed}) FROM STDIN (FORMAT binary)", types, _sent(rows, types)
            )

    def register(self, name: str, rows: object) -> None:
        """See `LocalConnection`; a temporary table."""
        if isinstance(rows, pa.RecordBatchReader):
            rows = rows.read_all()
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if not isinstance(rows, pa.Table):
            raise errors.make("local.feature", feature=f"rows of Python's {type(rows).__name__}")
        self.unregister(name)
        columns = [(field.name, values.declared(field.type)) for field in rows.schema]
        self.create(f"pg_temp.{quoted(name)}", columns, rows)

    def unregister(self, name: str) -> None:
        """See `LocalConnection`."""
        if self.raw.state() != "failed":
            self.execute(f"DROP TABLE IF EXISTS pg_temp.{quoted(name)}")

    def over(self, name: str, rows: pa.Table, sql: str) -> pa.Table:
        """See `RowQueries`."""
        with self.undone():
            self.register(name, rows)
            return self.fetch_arrow(sql)

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """Rows as Python values."""
        zone = self.raw.parameters().get("TimeZone", "UTC")
        return python_values.rows(rows, zone, self.texts)

    def texts(self, column: pa.ChunkedArray) -> list[str | None]:
        """The text forms of values of a type."""
        rows = pa.table({"v": column, "n": pa.array(range(len(column)), pa.int64())})
        sql = "SELECT v::text FROM pg_temp.louver_texts ORDER BY n"
        texts: list[str | None] = self.over("louver_texts", rows, sql).column(0).to_pylist()
        return texts

    # ------------------------------------------------------------------ keys

    def require_key(self, key: UniqueKey, fresh: str, spared: str) -> None:
        """See `LocalConnection`."""
        from louver.trusted.executor.local.postgres import keys

        keys.require_key(self, key, fresh, spared)

    def require_parent(self, foreign: ForeignKey, fresh: str, parent: str) -> None:
        """See `LocalConnection`."""
        from louver.trusted.executor.local.postgres import keys

        keys.require_parent(self, foreign, fresh, parent)

    def require_unreferenced(self, foreign: ForeignKey, keys: pa.Table, children: pa.Table) -> None:
        """See `LocalConnection`."""
        from louver.trusted.executor.local.postgres import keys as checks

        checks.require_unreferenced(self, foreign, keys, children)

    def taken(self, table: str, rows: pa.Table) -> list[str]:
        """See `LocalConnection`: texts are read as values of other types, as COPY reads them."""
        sql = (
            "SELECT a.attname::text, format_type(t.oid, a.atttypmod) FROM pg_attribute AS a"
            " JOIN pg_type AS t ON t.oid = a.atttypid"
            " WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND t.typcategory <> 'S'"
        )
        casts = dict(self.fetchall(sql, [table]))
        return [
            f"{quoted(field.name)}::{casts[field.name]}"
            if field.name in casts and pa.types.is_string(field.type) else quoted(field.name)
            for field in rows.schema
        ]  # fmt: skip

    def require_exact(self, source: str, table: Table, rows: pa.Table) -> None:
        """See `LocalConnection`; rows are without loss here, see `values`."""

    def close(self) -> None:
        """See `LocalConnection`."""
        self.raw.close()


#: A row of so many bytes at most is stored as it is: its table needs no second one, which takes as
#: long to make as itself.
_SMALL_BYTES = 2_000


def creation(
    target: str, columns: Sequence[tuple[str, str]], rows: pa.Table, word: str = "TABLE"
) -> str:
    """The statement that makes a table of these columns, for these rows: NOT NULL where their
    fields are not nullable.
    """
    # The value of a domain, or a type without a length, knows best how it is stored.
    plain = " STORAGE PLAIN" if rows.nbytes <= _SMALL_BYTES else ""
    strict = {field.name for field in rows.schema if not field.nullable}
    items = ", ".join(
        f"{quoted(name)} {type_}{plain if type_ in _LONG else ''}"
        f"{' NOT NULL' if name in strict else ''}"
        for name, type_ in ((name, own_type(type_)) for name, type_ in columns)
    )
    return f"CREATE {word} {target} ({items})"


_LONG = frozenset({"text", "bytea", "numeric", "character varying", "jsonb", "json"})


def _sent(rows: pa.Table, types: Sequence[int]) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, _COPY_ROWS):
        part = rows.slice(start, _COPY_ROWS)
        columns = zip(part.columns, types, strict=True)
        arrays = [values.sent(column, type_) for column, type_ in columns]
        yield pa.RecordBatch.from_arrays(arrays, [f"c{ordinal}" for ordinal in range(len(arrays))])


def _storage(type_: int, modifier: int, name: str) -> pa.DataType:
    """The type of an array as the wire client gives it, where it has no rows."""
    arrow = values.arrow_type(type_, modifier, name)
    if pa.types.is_decimal(arrow):
        return pa.string()
    if pa.types.is_time64(arrow):
        return pa.binary()
    return arrow.storage_type if isinstance(arrow, pa.OpaqueType) else arrow
