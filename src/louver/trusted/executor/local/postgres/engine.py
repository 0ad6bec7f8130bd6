"""The local PostgreSQL as a whole: two databases of the private server, and what a session keeps.

What only DuckDB has (attached files, objects of the process, variables, COPY to a file) raises
`local.feature`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor.local.local import (
    Answers,
    Described,
    LocalConnection,
    Parameters,
    Statements,
)
from louver.trusted.executor.local.postgres import plain_values, printed, unused
from louver.trusted.executor.local.postgres.declarations import OF_IDENTITY, statements
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.instances import Identity, path_instead
from louver.trusted.executor.local.postgres.rehearsals import PostgresRehearsals
from louver.trusted.executor.local.postgres.schema import PostgresSchema
from louver.trusted.executor.local.postgres.session_settings import refuse
from louver.trusted.executor.local.postgres.temporary import PostgresTemporary
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from louver.trusted.planner.sql.postgres_types import own_type
from louver.trusted.vault.catalog import Catalog, HomeObject

_MOST_VALUES = 4_096
#: Kinds of objects that no query reads, or that the workspace has while one runs.
_NOT_MIRRORED = frozenset({"INDEX", "COMMENT", "TABLE"})


_FUNCTIONS = (
    "SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n"
    " ON n.oid = p.pronamespace WHERE n.nspname = $1 AND $2 IN (p.proname::text,"
    " p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')')"
)


class PostgresLocalEngine(PostgresRehearsals):
    """Binder and workspace with all that a session keeps in them."""

    dialect = DIALECT
    has_frames = False

    def __init__(self, identity: Identity = ("", "")) -> None:
        super().__init__(identity)
        #: names and types of the last answer
        self.last_columns: Described = []
        self.last_affected = -1
        self._temporary = PostgresTemporary(self)
        self._files = unused.NoFiles()
        self._state = "new"

    # ------------------------------------------------------------------ lifecycle

    @property
    def temporary(self) -> PostgresTemporary:
        """See `LocalEngine`."""
        return self._temporary

    @property
    def files(self) -> unused.NoFiles:
        """See `LocalEngine`."""
        return self._files

    @property
    def state(self) -> str:
        """See `Lifecycle`."""
        return self._state

    def rebuild(self, catalog: Catalog) -> None:
        """See `Lifecycle`."""
        if self._state != "new":
            self.temporary.leave()
            self._replace()
            # A caller that wants the time to stand still compares the generation.
            self._time_is_fixed = False
        self._state = "broken"
        self._views.clear()
        self.forget_types()
        self._run_everywhere(self._changed.values())
        self.unresolved = list(catalog.objects)
        self.resolve(catalog)
        # What is declared has its own path, or the first one of all.
        self._run_everywhere(filter(None, [self._path.text]))
        self.temporary.arrive()
        self._state = "whole"

    def _run_everywhere(self, texts: Iterable[str]) -> None:
        for sql in texts:
            for connection in self.instances:
                connection.execute(sql)

    def renew(self, catalog: Catalog) -> None:
        """See `Lifecycle`."""
        self.rebuild(catalog)

    def beside(self, catalog: Catalog) -> PostgresLocalEngine:
        """See `LocalEngine`."""
        other = PostgresLocalEngine(self.identity)
        with _closed_on_failure(other):
            other.rights, other._path, other._changed = self.rights, self._path, {**self._changed}
            other._limits = dict(self._limits)
            other.rebuild(catalog)
            if self.temporary.names:
                other.temporary.restore(self.temporary.state())
        return other

    def alone(self, catalog: Catalog) -> PostgresLocalEngine:
        """See `LocalEngine`."""
        other = PostgresLocalEngine(self.identity)
        with _closed_on_failure(other):
            other.rebuild(catalog)
        return other

    def define(self, item: HomeObject, catalog: Catalog) -> None:
        """See `Lifecycle`."""
        with path_instead(self.binder, item.path):
            if item.kind != "SEQUENCE":
                self.binder.execute(item.sql)
            elif (creation := statements(item)[0])[: len(OF_IDENTITY)] != OF_IDENTITY:
                self.binder.execute(creation)
        self.mirror(item, catalog)

    def mirror(self, item: HomeObject, catalog: Catalog) -> None:
        """See `Lifecycle`. A view needs its tables in PostgreSQL, so the workspace has it only
        while a query that names it is finished.
        """
        if item.kind in _NOT_MIRRORED:
            return
        self.forget_types()
        if item.kind == "VIEW":
            self._views[item.kind, fold(item.schema), fold(item.name)] = item
            return
        texts = [item.sql]
        if item.kind == "SCHEMA":
            texts = [f"CREATE SCHEMA IF NOT EXISTS {quoted(item.name)}"]
        elif item.kind == "SEQUENCE":
            texts = [sql for sql in statements(item) if not sql.startswith("ALTER")]
        try:
            with path_instead(self.workspace, item.path):
                for sql in texts:
                    self.workspace.execute(sql)
        except errors.Error:
            if item.kind != "MACRO":
                raise
            # A function whose body PostgreSQL reads at once needs its tables too.
            self._views[item.kind, fold(item.schema), fold(item.name)] = item
            return

    def resolve(self, catalog: Catalog) -> None:
        """See `Lifecycle`; in as many passes as the objects' needs take."""
        self._resolve(catalog)
        tables = [item for item in self.unresolved if item.kind == "TABLE"]
        if tables:
            from louver.trusted.executor.local.postgres import circles

            with circles.parting(self.binder, self.unresolved, tables):
                self._resolve(catalog)
                for item in [other for other in self.unresolved if other.kind == "TABLE"]:
                    self.define(item, catalog)
        self._settle(catalog)

    def _resolve(self, catalog: Catalog) -> None:
        before = -1
        while self.unresolved and len(self.unresolved) != before:
            before, items, self.unresolved = len(self.unresolved), self.unresolved, []
            for item in items:
                try:
                    self.define(item, catalog)
                except errors.Error:
                    self.unresolved.append(item)

    def _settle(self, catalog: Catalog) -> None:
        """Have sequences go with their columns, and stand where they stood."""
        items = [item for item in catalog.objects if item.kind == "SEQUENCE"]
        for item in items:
            for sql in statements(item)[1:]:
                self.binder.execute(sql)
        for connection in self.instances if items else ():
            # No number of before was drawn in this session.
            connection.execute("DISCARD SEQUENCES")

    def forget(self, kind: str, schema: str, name: str) -> None:
        """See `Lifecycle`."""
        if self._views.pop((kind, fold(schema), fold(name)), None) is not None:
            return
        path = quoted(name) if kind == "SCHEMA" else f"{quoted(schema)}.{quoted(name)}"
        dropped = [f"{kind} IF EXISTS {path}"]
        if kind == "MACRO":
            # One of several of its name stands with its arguments.
            rows = self.workspace.fetchall(_FUNCTIONS, [schema, name])
            dropped = [f"ROUTINE {path}" for (path,) in rows]
        with suppress(errors.Error):
            for what in dropped:
                self.workspace.execute(f"DROP {what} CASCADE")

    # ------------------------------------------------------------------ the binder

    @property
    def schema(self) -> PostgresSchema:
        """See `Binder`."""
        return PostgresSchema(self.binder)

    @property
    def schemas(self) -> tuple[PostgresSchema, PostgresSchema]:
        """See `Binder`."""
        return self.schema, PostgresSchema(self.workspace)

    @property
    def statements(self) -> Statements:
        """See `Binder`."""
        from louver.trusted.executor.local.postgres.statements import PostgresStatements

        return PostgresStatements(self.binder, self.workspace)

    def declare(self, sql: str, parameters: Parameters = ()) -> None:
        """See `Binder`."""
        self.binder.execute(sql, parameters)
        self.schema.cache_none()

    def key_store(self) -> LocalConnection:
        """See `Binder`."""
        return self.another(0)

    def is_pivot_by_rows(self, sql: str, tokens: Sequence[Token]) -> bool:
        """See `Binder`; PostgreSQL has none."""
        return False

    def describe(self, sql: str, parameters: Parameters = ()) -> Described:
        """See `Binder`."""
        with self.binder.guarded(), translated(sql):
            raw, own = self.binder.raw, []
            if parameters:
                from louver.trusted.executor.local.postgres import parameters as given

                own = given.own_types(given.listed(parameters), raw.describe(sql)[0])
            columns = raw.describe(sql, own)[1]
            return self.binder.described(columns)

    def tables_of(self, sql: str) -> set[str]:
        """See `Binder`; none of a statement of another kind."""
        from louver.trusted.executor.local.postgres.statements import PostgresStatements

        try:
            reach = PostgresStatements(self.binder, self.workspace).reach(sql)
        except errors.Error as error:
            if error.code == "postgres.feature":
                return set()
            raise
        return {name for _, name in reach.relations}

    def ask_schema(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """See `Binder`."""
        self.temporary.show_places()
        with self.binder.undone() if self._limits else nullcontext(), self.acting():
            for text in self._limits.values():
                self.binder.execute(text)
            self.last_columns, rows = self.binder.fetch_described(sql, parameters)
            if any(self._is_of_rows(type_) for _, type_ in self.last_columns):
                from louver.trusted.executor.local.postgres import readable

                text = readable.as_text(self.binder.raw, sql)
                rows = self.binder.fetch_arrow(text, parameters)
        return rows

    def arrow_field(self, type_: str) -> pa.Field:
        """See `Binder`."""
        if type_ not in self._arrow_types:
            # Of no row: a domain may not take NULL.
            rows = self.binder.fetch_arrow(f"SELECT NULL::{own_type(type_)} AS c LIMIT 0")
            self._arrow_types[type_] = rows.schema.field(0)
        return self._arrow_types[type_]

    def value(self, expression: str) -> pa.Array:
        """See `Binder`."""
        if expression not in self._values:
            rows = self.binder.fetch_arrow(f"SELECT {expression} AS c")
            if len(self._values) >= _MOST_VALUES:
                self._values.clear()
            self._values[expression] = rows.column(0).combine_chunks()
        return self._values[expression]

    # ------------------------------------------------------------------ the workspace

    def finish(
        self,
        answers: Answers,
        sql: str,
        parameters: Parameters = (),
        types: Sequence[str] = (),
        *,
        keeps: bool = False,
    ) -> pa.Table:
        """See `Workspace`; in a transaction that is undone, unless something is kept."""
        from louver.trusted.executor.local.postgres import finishing

        self.last_affected, self.last_columns, rows = finishing.finished(
            self.workspace,
            self.binder,
            answers,
            [*self._views.values()],
            sql,
            parameters,
            keeps=keeps,
            limits=[*self._limits.values()],
            is_printed=any(map(self._is_of_rows, types)),
        )
        return rows

    def _is_of_rows(self, type_: str) -> bool:
        if type_ not in self._of_rows:
            from louver.trusted.executor.local.postgres import readable

            self._of_rows[type_] = readable.is_of_rows(self.binder, own_type(type_))
        return self._of_rows[type_]

    def finish_over(
        self,
        name: str,
        columns: Sequence[tuple[str, str]],
        rows: pa.Table,
        sql: str,
        parameters: Parameters = (),
        types: Sequence[str] = (),
    ) -> pa.Table:
        """See `Workspace`."""
        return self.finish({("", name): (columns, rows)}, sql, parameters, types)

    def over(self, name: str, rows: pa.Table, sql: str) -> pa.Table:
        """See `RowQueries`."""
        return self.workspace.over(name, rows, sql)

    def write_file(
        self, rows: pa.Table, clauses: str, parameters: Parameters = ()
    ) -> tuple[Described, pa.Table]:
        """See `Workspace`."""
        refuse("COPY to a file")

    def reader(self) -> LocalConnection:
        """See `Workspace`: DuckDB, for the private server would open files as itself, and knows
        fewer forms of them.
        """
        from louver.trusted.executor.local.postgres import files

        return files.reader(self.directory)

    def apart(self) -> LocalConnection:
        """See `Workspace`."""
        return self.another(1)

    def plain_arrow(self, rows: pa.Table) -> pa.Table:
        """See `Workspace`; intervals become Arrow's."""
        return plain_values.plain(rows)

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """See `Workspace`; those of psycopg 3. The binder alone has the tables that values of
        types like `regclass` mean, and whose rows are values.
        """
        return printed.in_either(self, rows, lambda connection: connection.python_rows(rows))

    def texts(self, rows: pa.Table) -> list[tuple[str | None, ...]]:
        """See `Workspace`."""
        return printed.in_either(self, rows, lambda connection: printed.texts(rows, connection))

    def write_csv(
        self, rows: pa.Table, names: Sequence[str], write: Callable[[bytes], object]
    ) -> None:
        """See `Workspace`."""
        printed.write_csv(self.texts(rows), names, write)

    def data_frame(self, rows: pa.Table) -> Any:
        """See `Workspace`; what Arrow has no type for stands there as Python's values."""
        return plain_values.data_frame(rows, self.python_rows(rows))

    def numpy_arrays(self, rows: pa.Table) -> list[Any]:
        """See `Workspace`."""
        return [column.to_numpy() for _, column in self.data_frame(rows).items()]


@contextmanager
def _closed_on_failure(engine: PostgresLocalEngine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.close()
        raise
