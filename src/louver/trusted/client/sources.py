"""What a connection makes relations of: statements, tables, files, and data of the user's process.

Local data stays local: a query that reads it is finished on the user's machine, and no server is
sent any of it.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.client import composition, relation
from louver.trusted.client.composition import Composition
from louver.trusted.client.relation import Lookup, Relation
from louver.trusted.executor import local_frames
from louver.trusted.executor.containment import contained, face
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.frames import held, is_scanned
from louver.trusted.executor.parameters import Parameters

if TYPE_CHECKING:
    from louver.trusted.executor.front import Front

_OURS = str(Path(errors.__file__).parent)
#: The names of data that a relation was made of, and of the ledger.
_LOCAL = "louver_local_data"
_LEDGER = "louver_leakage"
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@face
class Sources(ABC):
    """The methods of a connection that give relations."""

    _session: Front
    _lock: threading.RLock

    @property
    @abstractmethod
    def _context(self) -> Context:
        """The database's context."""

    @abstractmethod
    def _require_open(self) -> None:
        """Raise ``connection.closed`` after `close`."""

    def sql(self, query: str, params: Parameters = None) -> Relation:
        """A relation: a query is planned now and runs when its rows are first needed; any other
        statement runs now. Names that mean nothing in the database are looked up among the
        caller's variables: data frames, Arrow, relations.
        """
        self._require_open()
        with self._lock, contained(self._session):
            return relation.of_statements(self._session, query, params, variables())

    def query(self, query: str, params: Parameters = None) -> Relation:
        """The same as `sql`."""
        return self.sql(query, params)

    from_query = query

    def table(self, table_name: str) -> Relation:
        """The relation of a table."""
        return self._relation(composition.named_table(table_name))

    def view(self, view_name: str) -> Relation:
        """The relation of a view, or of registered data."""
        return self._relation(composition.named_table(view_name))

    def values(self, *rows: object) -> Relation:
        """The relation of rows that are given as lists or tuples; one list is one row."""
        lists = [row if isinstance(row, list | tuple) else (row,) for row in rows]
        given = tuple(value for row in lists for value in row)
        places = iter(range(1, len(given) + 1))
        body = ", ".join(f"({', '.join(f'${next(places)}' for _ in row)})" for row in lists)
        return self._relation(Composition("", text=f"VALUES {body}", values=given))

    def from_df(self, df: object) -> Relation:
        """The relation of a DataFrame of pandas or polars, which stays local."""
        return self._local(df)

    def from_arrow(self, arrow_object: object) -> Relation:
        """The relation of a table, a dataset or a stream of Arrow, which stays local. A stream is
        read into memory.
        """
        return self._local(arrow_object)

    def read_csv(self, path_or_buffer: Paths, **options: object) -> Relation:
        """The relation of CSV files, read locally; options as of DuckDB's ``read_csv``."""
        return self._reader("read_csv", path_or_buffer, options)

    from_csv_auto = read_csv

    def read_parquet(self, file_glob: Paths, **options: object) -> Relation:
        """The relation of Parquet files, read locally; options as of ``read_parquet``."""
        return self._reader("read_parquet", file_glob, options)

    from_parquet = read_parquet

    def read_json(self, path_or_buffer: Paths, **options: object) -> Relation:
        """The relation of JSON files, read locally; options as of DuckDB's ``read_json``."""
        return self._reader("read_json", path_or_buffer, options)

    def leakage(self) -> Relation:
        """The ledger: everything that the server has learned, one row for each fact."""
        self._require_open()
        with self._lock, contained(self._session):
            rows = self._session.context.ledger.table()
        return self._relation(Composition(_LEDGER, "leakage", frames={_LEDGER: rows}))

    def register(self, view_name: str, python_object: object) -> None:
        """Give local data a name in this connection's statements: a DataFrame of pandas or polars,
        Arrow, NumPy arrays. It stays local. Raises ``table.temporary`` if a table or view of the
        database has the name.
        """
        self._require_open()
        with self._lock, contained(self._session):
            if isinstance(python_object, Relation):
                python_object = python_object.arrow()
            local_frames.register(self._context, view_name, python_object)

    def unregister(self, view_name: str) -> None:
        """Take the name of registered data away."""
        self._require_open()
        with self._lock, contained(self._session):
            local_frames.unregister(self._context, view_name)

    if not TYPE_CHECKING:  # type checkers know the names that exist

        def __getattr__(self, name: str) -> None:
            from louver.trusted.client import duckdb_names

            raise duckdb_names.of_connection(name)

    def _local(self, data: object) -> Relation:
        if isinstance(data, Relation):
            return data
        self._require_open()
        return self._relation(Composition(_LOCAL, _LOCAL, frames={_LOCAL: held(data)}))

    def _reader(self, function: str, paths: Paths, options: Mapping[str, object]) -> Relation:
        if not isinstance(paths, str | os.PathLike | Sequence):
            raise errors.make("frame.path", kind=type(paths).__name__)
        listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        errors.refuse_keys(*listed)
        texts = [os.fspath(path) for path in listed]
        given = [composition.literal(texts if len(texts) != 1 else texts[0])]
        given += [f"{name} = {composition.literal(value)}" for name, value in options.items()]
        return self._relation(Composition("", text=f"SELECT * FROM {function}({', '.join(given)})"))

    def _relation(self, query: Composition) -> Relation:
        self._require_open()
        with self._lock:
            return relation.of_query(self._session, query)


def variables() -> Lookup:
    """The variables of the caller that hold tables: of the first frame above that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    scopes = [] if frame is None else [frame.f_locals, frame.f_globals]

    def lookup(name: str) -> object:
        for scope in scopes:
            if name in scope:
                value = scope[name]
                return value if isinstance(value, Relation) or is_scanned(value) else None
        return None

    return lookup
