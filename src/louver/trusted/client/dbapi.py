"""PEP 249 connections and cursors, with DuckDB's additional method names."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver import errors
from louver.trusted.client import relation as relations
from louver.trusted.client.result import Copying, Result, Row, warned
from louver.trusted.client.sources import Sources, variables
from louver.trusted.executor import attach as attaching
from louver.trusted.executor import local_frames, seen_state
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.containment import contained, face
from louver.trusted.executor.context import Context
from louver.trusted.executor.front import Front
from louver.trusted.executor.parameters import Parameters, bound, check_excess
from louver.trusted.planner.sql import lexer

if TYPE_CHECKING:
    from louver.trusted.client.lake_handle import LakeHandle
    from louver.trusted.executor.csv_files import CsvForm
    from louver.trusted.executor.load_created import Encrypt

Description = list[tuple[str, str, None, None, None, None, None]]
Progress = Callable[[int, int | None], None]


@face
class Connection(Sources):
    """One client of one database. Each statement commits on its own outside of BEGIN … COMMIT."""

    # PEP 249's optional extension: the exceptions as attributes.
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Front) -> None:
        """Wrap a session; use `louver.connect`."""
        self._session = session
        self._dialect = session.dialect
        self._lock = threading.RLock()

    @property
    def _context(self) -> Context:
        """The database's context: its catalog, its keys, its ledger."""
        context = self._session.context
        if not isinstance(context, Context):
            raise errors.make(
                "provider.language", detail="what needs a database of one's own",
                instead="providers hold public data that others publish: ask SELECT",
            )  # fmt: skip
        return context

    def cursor(self) -> Cursor:
        """A new cursor; all cursors of a connection share its transaction."""
        self._require_open()
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Run a statement on a new cursor and return the cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, rows: Sequence[Parameters]) -> Cursor:
        """Run a statement once for each row of values, all or nothing."""
        return self.cursor().executemany(sql, rows)

    @property
    def lake(self) -> LakeHandle:
        """Files, snapshots and maintenance of the tables of a lake; raises for other databases."""
        from louver.trusted.client.lake_handle import LakeHandle

        self._require_open()
        return LakeHandle(self._context)

    def attach(self, url: str, name: str, keys: Any = None) -> None:
        """Open a second connection; queries read its tables as ``name.table``.

        Args:
            url: as for `connect`.
            name: the schema under which its tables appear.
            keys: its key file (default: the keys of this connection).
        """
        self._require_open()
        with self._lock:
            attaching.attach(self._context, url, name, keys)

    def detach(self, name: str) -> None:
        """Close an attached connection."""
        self._require_open()
        with self._lock:
            attaching.detach(self._context, name)

    def load(
        self,
        table: str,
        data: Any,
        *,
        encrypt: Encrypt = None,
        progress: Progress | None = None,
        form: CsvForm | None = None,
        policy: str | os.PathLike[str] | None = None,
        create: bool = True,
    ) -> int:
        """Append rows to a table, all or nothing: of Arrow, a DataFrame, a relation, or Parquet,
        CSV or JSON files. Returns the number of rows.

        Args:
            table: a table that is not there is created with the columns of the data.
            data: types of a new table's columns are those that DuckDB reads in it.
            encrypt: which columns of a new table are ENC: a list of columns, True for all, or by
                column what follows ENC, such as ``{"name": "MAY REVEAL equality"}``. The policy
                and the profile decide what this does not say.
            progress: called with the number of rows loaded and the total, or None if the total is
                unknown.
            form: how CSV files are written.
            policy: a policy file for a new table, whose columns are ENC as it says; those that it
                does not name are ENC too. ``encrypt`` goes first.
            create: False refuses a table that is not there (``load.table``).

        Raises:
            errors.Error: ``load.*`` for data that does not fit; no row is loaded then.
        """
        from louver.trusted.executor import load_created
        from louver.trusted.executor.progress import bar

        self._require_open()
        errors.refuse_keys(policy)
        with self._lock, contained(self._session), bar(progress) as report:
            exists = load_created.is_there(self._context, table)
            if not (exists or create):
                raise errors.make("load.table", table=table)
            if isinstance(data, relations.Relation):
                if encrypt is not None or policy is not None:
                    detail = "a relation's columns are kept as what they are computed from"
                    raise errors.make("load.encrypt", table=table, detail=detail)
                return relations.stored(data, table, create=not exists)
            answer = load_created.loaded(self._context, table, data, encrypt, report, form, policy)
            return warned(answer).affected

    def begin(self) -> None:
        """Begin a transaction."""
        self._require_open()
        with self._lock, contained(self._session):
            self._session.begin()

    def commit(self) -> None:
        """Commit the open transaction, if there is one."""
        self._require_open()
        with self._lock, contained(self._session):
            if self._session.in_transaction:
                self._session.commit()

    def rollback(self) -> None:
        """Roll back the open transaction, if there is one."""
        self._require_open()
        with self._lock, contained(self._session):
            if self._session.in_transaction:
                self._session.rollback()

    def interrupt(self) -> None:
        """Stop the running statement; may be called from another thread."""
        self._require_open()
        self._session.context.engine.interrupt()
        self._session.context.local.interrupt()

    def close(self) -> None:
        """Close the connection and roll back an open transaction. May be called twice."""
        self._session.close()

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return self._session.closed

    def _run(self, sql: str, parameters: Parameters) -> Answer:
        """Run statements and return the answer of the last one."""
        self._require_open()
        lookup = variables()

        def resolve(
            text: lexer.Text, values: list[object]
        ) -> tuple[lexer.Text, list[object], dict[str, object]]:
            if not local_frames.candidates(text, lookup):
                return text, values, {}
            return relations.resolved(self._session, text, values, lookup)

        with self._lock:
            return warned(self._session.execute(sql, parameters, resolve))

    def _require_open(self) -> None:
        if self._session.closed:
            raise errors.make("connection.closed")

    def __enter__(self) -> Connection:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self.closed:
                self.commit()
        finally:
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<louver.Connection {self._session.context.engine.address or ':memory:'} {state}>"


@face
class Cursor(Copying):
    """Runs statements and returns their rows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = connection._dialect
        #: PEP 249: the default number of rows of `fetchmany`.
        self.arraysize = 1
        self._result: Result | None = None
        self._affected = -1
        self._closed = False

    @property
    def connection(self) -> Connection:
        """PEP 249's optional extension: the connection that the cursor was made by."""
        return self._connection

    @property
    def description(self) -> Description | None:
        """Name and type of each column, in PEP 249's tuples of seven; None without rows."""
        if self._result is None or self._result.answer.count < 0:
            return None
        return [(name, type_, None, None, None, None, None) for name, type_ in self._result.columns]

    @property
    def rowcount(self) -> int:
        """Rows of the last query, or rows affected by the last change; -1 if unknown."""
        if self._affected >= 0 or self._result is None or self._result.answer.count < 0:
            return self._affected
        return self._result.answer.count

    @property
    def rownumber(self) -> int | None:
        """The number of rows fetched so far; None without rows."""
        return None if self.description is None or self._result is None else self._result.position

    @property
    def times_ms(self) -> dict[str, float]:
        """Milliseconds of each step of the last statement."""
        return {} if self._result is None else dict(self._result.answer.times_ms)

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Run one statement, or several; the rows are those of the last one."""
        self._require_open()
        self._result, self._affected = None, -1
        answer = self._connection._run(sql, parameters)
        self._set_answer(answer)
        return self

    def executemany(self, sql: str, rows: Sequence[Parameters]) -> Cursor:
        """Run a statement once for each set of values, all or nothing."""
        self._require_open()
        self._result, self._affected = None, -1
        session = self._connection._session
        own = session.transactional and not session.in_transaction
        rows = list(rows)
        answer = bulk(self._connection, sql, rows)
        if answer is not None:
            self._set_answer(answer)
            return self
        if own:
            self._connection.begin()
        touched = 0
        try:
            for values in rows:
                answer = self._connection._run(sql, values)
                touched += max(answer.affected, 0)
        except BaseException:
            if own:
                self._connection.rollback()
            raise
        if own:
            self._connection.commit()
        if answer is not None:
            self._set_answer(answer)
            self._affected = touched if answer.affected >= 0 else -1
        return self

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        rows = self._rows().take(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, at most ``size`` of them."""
        return self._rows().take(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """The remaining rows."""
        return self._rows().take(None)

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._rows().arrow()

    def fetch_arrow_table(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._rows().arrow()

    def df(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self._rows().df()

    fetchdf = fetch_df = df

    def pl(self) -> Any:
        """All rows as a polars DataFrame."""
        return self._rows().pl()

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Required by PEP 249; has no effect."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Required by PEP 249; has no effect."""

    def close(self) -> None:
        """Close the cursor and release its rows."""
        self._closed = True
        self._result = None

    def _set_answer(self, answer: Answer) -> None:
        self._result = Result(self._connection._session, answer)
        self._affected = answer.affected

    def _rows(self) -> Result:
        self._require_open()
        if self._result is None or self._result.answer.count < 0:
            raise errors.make("cursor.empty")
        return self._result

    def _require_open(self) -> None:
        if self._closed:
            raise errors.make("cursor.closed")
        if self._connection.closed:
            raise errors.make("connection.closed")

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bulk(connection: Connection, sql: str, rows: Sequence[Parameters]) -> Answer | None:
    """INSERT … VALUES of placeholders as one statement; None for any other statement."""
    from louver.trusted.executor import change

    texts = lexer.split(sql)
    if not rows or len(texts) != 1 or any(isinstance(values, Mapping) for values in rows):
        return None
    tokens = lexer.tokens(texts[0].plain)
    if lexer.words(tokens, 1) != ["INSERT"]:
        return None
    context = connection._context
    if not context.in_transaction:
        seen_state.refresh(context)
    for row in rows:
        check_excess(texts, row)
    values = [bound(texts[0], row) for row in rows]
    with connection._lock, contained(connection._session):
        return change.insert_many(context, texts[0], tokens, values)
