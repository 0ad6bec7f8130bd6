"""The local DuckDB, in two instances in memory.

The *binder* holds every declared table, empty, with constraints, views, types and macros. The
*workspace* holds decrypted rows, without constraints, while one query is finished on them.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot.tokens import Token

from louver.names import fold, keyword, quoted
from louver.trusted.executor.local import arrow_values, exact, views
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.duckdb_instances import LIVE, DuckDBKept, options
from louver.trusted.executor.local.local import Answers, Parameters
from louver.trusted.executor.local.repeated import Columns, Repeated
from louver.trusted.executor.local.temporary import DuckDBTemporary
from louver.trusted.planner.sql.dialect import DUCKDB
from louver.trusted.planner.sql.resolver import pivots
from louver.trusted.vault.catalog import Catalog, HomeObject, Table
from louver.untrusted.engines.interruption import CtrlC

_MOST_VALUES = 4_096


class DuckDBLocalEngine(DuckDBKept):
    """Both instances with all that a session keeps in them."""

    dialect = DUCKDB
    has_frames = True

    def __init__(self) -> None:
        super().__init__()
        self._arrow_types: dict[str, pa.Field] = {}
        self._values: dict[str, pa.Array] = {}
        #: names and types of the last answer: of PIVOT they depend on the data
        self.last_columns: list[tuple[str, str]] = []
        self.last_affected = -1
        self._changed: dict[str, str] = {}
        self.temporary = DuckDBTemporary(self)
        self._repeated = Repeated(self.workspace)
        self.unresolved: list[HomeObject] = []
        self._standing = False
        self.state = "new"  # then "broken" while it is built, and "whole"

    @property
    def _plain(self) -> duckdb.DuckDBPyConnection:
        """Gives the Arrow and the Python values of DuckDB itself; few sessions need it."""
        if self._converter is None:
            self._converter = self._connect(lossless=False)
            for sql in self._changed.values():
                self._converter.execute(sql)
        return self._converter

    def rebuild(self, catalog: Catalog) -> None:
        """Schema and workspace anew from the catalog."""
        if self.state != "new":
            self.temporary.leave()
            self._replace()
        self.state = "broken"
        for sql in self._changed.values():
            self.binder.execute(sql)
            self.workspace.execute(sql)
        self.variables.restore((self.binder, self.workspace))
        self.path.restore(self.binder, self.workspace)
        self._repeated = Repeated(self.workspace)
        self.revision += 1
        self.unresolved = list(catalog.objects)
        views = any(item.kind in ("VIEW", "MACRO") for item in self.unresolved)
        with translated(), self._stand_ins(catalog, needed=views):
            self.resolve(catalog)
            self.temporary.arrive()
            self.resolve(catalog)
        for item in filter(lambda other: other.kind == "TABLE", self.unresolved):
            self.define(item, catalog)
        self.files.restore((self.binder, self.workspace), catalog, options(self.directory))
        self.state = "whole"

    def renew(self, catalog: Catalog) -> None:
        """All instances anew, after DuckDB has given one up."""
        self._converter = None
        self.rebuild(catalog)

    def change_setting(self, name: str, sql: str) -> None:
        """Run a SET or RESET wherever DuckDB computes or shows something locally."""
        # A constant may mean something else from now on, as a time without a zone does.
        self.forget_types()
        with translated():
            for connection in self.instances:
                connection.execute(sql)
        self._changed[name] = sql

    def change_path(self, sql: str) -> tuple[str, ...]:
        """Run a statement that sets the search path, or none; the path's folded schemas."""
        self.forget_types()
        with translated():
            self.path.change(self.binder, self.workspace, sql, {*self.files.known})
        return tuple(map(fold, self.path.schemas))

    def beside(self, catalog: Catalog) -> DuckDBLocalEngine:
        """Another engine of a catalog, with what the session keeps in this one."""
        other = DuckDBLocalEngine()
        with _closed_on_failure(other):
            other.variables, other.path, other.files = self.variables, self.path, self.files
            other.rebuild(catalog)
            if self.temporary.names:
                other.temporary.restore(self.temporary.state())
        return other

    def alone(self, catalog: Catalog) -> DuckDBLocalEngine:
        """Another engine of a catalog."""
        other = DuckDBLocalEngine()
        with _closed_on_failure(other):
            other.rebuild(catalog)
        return other

    def settings_changed(self, names: Sequence[str]) -> list[str]:
        """Which of these settings the session has changed."""
        return [name for name in names if name in self._changed]

    def reorders_nulls(self) -> bool:
        """Whether the session has said where NULLs, or rows, stand in an order."""
        return bool(self.settings_changed(("default_null_order", "null_order", "default_order")))

    def collated(self) -> bool:
        """Whether texts compare by a collation, which codes of theirs do not know."""
        if "default_collation" not in self._changed:
            return False
        row = self.binder.execute("SELECT current_setting('default_collation')").fetchone()
        return row is not None and fold(str(row[0])) not in ("", "binary", "c", "posix")

    def resolve(self, catalog: Catalog) -> None:
        """Define what is not yet defined, in as many passes as the objects' needs take.

        What is left over then reads a table that is gone; it stays in the catalog, as a view
        outlives its table in DuckDB too, and is tried again when something is created.
        """
        self.unresolved = views.resolve(
            self.unresolved, lambda item: self.define(item, catalog), catalog
        )

    def define(self, item: HomeObject, catalog: Catalog) -> None:
        """Run the statement that makes an object, in both instances as fits each."""
        with translated(), self.path.instead(self.binder, item.path):
            self.binder.execute(item.sql)
        self.mirror(item, catalog)

    def mirror(self, item: HomeObject, catalog: Catalog) -> None:
        """Make in the workspace what the schema has got.

        The workspace holds no tables between queries: a table that a plan forgot to fill is then an
        error there, and never an empty table that gives a wrong answer. DuckDB binds a view when
        it is made, so the tables stand there for that long.
        """
        if item.kind in ("INDEX", "COMMENT", "TABLE"):
            return
        # The stand-ins of a schema's tables may have created it.
        schema = f"CREATE SCHEMA IF NOT EXISTS {quoted(item.name)}"
        sql = schema if item.kind == "SCHEMA" else item.sql
        needed = item.kind in ("VIEW", "MACRO")
        path = self.path.instead(self.workspace, item.path)
        with translated(), self._stand_ins(catalog, needed=needed), path:
            self.workspace.execute(sql)

    @contextmanager
    def _stand_ins(self, catalog: Catalog, *, needed: bool) -> Iterator[None]:
        """Empty tables in the workspace for as long as something is defined there."""
        if not needed or self._standing:
            yield
            return
        self._standing, run = True, self.workspace.execute
        try:
            for table in catalog.tables.values():
                if fold(table.schema) != "main":
                    run(f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)}")
                run(f"CREATE OR REPLACE TABLE {table.local_name} ({_body(table)})")
            yield
        finally:
            self._standing = False
            for table in catalog.tables.values():
                run(f"DROP TABLE IF EXISTS {table.local_name}")

    def is_pivot_by_rows(self, sql: str, tokens: Sequence[Token]) -> bool:
        """Whether a statement has a PIVOT whose columns the rows give. DuckDB reads these first, so
        it is several statements.
        """
        with translated():
            return pivots(tokens) and len(self.binder.extract_statements(sql)) > 1

    def describe(self, sql: str, parameters: Parameters = ()) -> list[tuple[str, str]]:
        """Names and types of a query's columns, as DuckDB's binder sees them."""
        with translated():
            if keyword(sql.lstrip()[:9]) == "SUMMARIZE":
                results = self.binder.sql(sql, params=parameters or None)
                return list(zip(results.columns, map(str, results.types), strict=True))
            try:
                rows = self._execute(self.binder, f"DESCRIBE {sql}", parameters).fetchall()
            except duckdb.Error:
                # A query itself, over empty tables, gives the message with the user's own text.
                kinds = [other.type for other in self.binder.extract_statements(sql)]
                if kinds == [duckdb.StatementType.SELECT]:  # nothing else must run here
                    self._execute(self.binder, sql, parameters)
                raise
        return [(row[0], row[1]) for row in rows]

    def tables_of(self, sql: str) -> set[str]:
        """The names of tables and views that a statement reads."""
        try:
            return set(self.binder.get_table_names(sql))
        except duckdb.Error:
            # The parser's tree must tell; what neither finds is an error in the workspace.
            return set()
        finally:
            views.bind(self.binder, sql)

    def arrow_field(self, type_: str) -> pa.Field:
        """The Arrow field of a DuckDB type, without loss."""
        field = self._arrow_types.get(type_)
        if field is None:
            with translated():
                rows = self.binder.execute(f"SELECT NULL::{type_} AS c").to_arrow_table()
            field = self._arrow_types[type_] = rows.schema.field(0)
        return field

    def value(self, expression: str) -> pa.Array:
        """The value of a constant expression, as an array of one element."""
        known = self._values.get(expression)
        if known is None:
            with translated():
                rows = self.binder.execute(f"SELECT {expression} AS c").to_arrow_table()
            if len(self._values) >= _MOST_VALUES:
                self._values.clear()
            known = self._values[expression] = rows.column(0).combine_chunks()
        return known

    def forget_types(self) -> None:
        """After CREATE or DROP TYPE, or when names mean something else."""
        super().forget_types()
        self._arrow_types.clear()
        self._repeated.forget()
        self._values.clear()

    def ask_schema(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """Run a statement on the schema: DESCRIBE, SHOW TABLES, information_schema …"""
        with translated():
            return self._fetched(self._execute(self.binder, sql, parameters))

    def finish(
        self,
        answers: Answers,
        sql: str,
        parameters: Parameters = (),
        types: Sequence[str] = (),
        *,
        keeps: bool = False,
    ) -> pa.Table:
        """Run a query on opened rows that fill (schema, name); a temporary table without one."""
        with translated(), self._filled(answers, keeps=keeps), CtrlC(self.workspace.interrupt):
            if any(map(exact.may_change, types)):
                self.last_columns, rows = exact.fetched(self.workspace, sql, parameters, types)
                return rows
            return self._fetched(self._execute(self.workspace, sql, parameters))

    def finish_over(
        self, name: str, columns: Columns, rows: pa.Table, sql: str, parameters: Parameters = (),
        _types: Sequence[str] = (),
    ) -> pa.Table:  # fmt: skip
        """Run a query on a few rows alone, which stand under a name; see `Repeated.run`."""
        with translated(), CtrlC(self.workspace.interrupt):
            self.last_columns, rows = self._repeated.run(name, columns, rows, sql, parameters)
            return rows

    @contextmanager
    def _filled(self, answers: Answers, *, keeps: bool) -> Iterator[None]:
        if not answers:
            yield
            return
        from louver.trusted.executor.local import filling

        with filling.filled(self.workspace, answers):
            self.workspace.execute("BEGIN TRANSACTION")
            ending = "ROLLBACK"
            try:
                yield
                ending = "COMMIT" if keeps else ending
            finally:
                self.workspace.execute(ending)

    def _fetched(self, done: duckdb.DuckDBPyConnection) -> pa.Table:
        self.last_columns = arrow_values.described(done)
        return done.to_arrow_table()

    @staticmethod
    def _execute(
        connection: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters
    ) -> duckdb.DuckDBPyConnection:
        with CtrlC(connection.interrupt):
            return connection.execute(sql, parameters) if parameters else connection.execute(sql)

    def plain_arrow(self, rows: pa.Table) -> pa.Table:
        """The Arrow that DuckDB gives by default: HUGEINT and the like without extensions."""
        if not any(arrow_values.extended(field.type) for field in rows.schema):
            return rows
        with self.reading(rows) as connection:
            reply = connection.to_arrow_table()
        return reply.rename_columns(rows.column_names)

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """The rows as the Python values that DuckDB gives."""
        if arrow_values.are_same(rows):
            return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        with self.reading(rows) as connection:
            return connection.fetchall()

    def texts(self, rows: pa.Table) -> list[tuple[str | None, ...]]:
        """See `Workspace`."""
        with self.reading(rows) as connection:
            printed = connection.execute("SELECT COLUMNS(*)::VARCHAR FROM louver_rows")
            return list(printed.fetchall())

    def write_csv(
        self, rows: pa.Table, names: Sequence[str], write: Callable[[bytes], object]
    ) -> None:
        """See `Workspace`."""
        from louver.trusted.executor.local import duckdb_csv

        with self.reading(rows) as connection:
            duckdb_csv.write_csv(connection, names, write)

    def data_frame(self, rows: pa.Table) -> Any:
        """See `Workspace`; as DuckDB makes it."""
        with self.reading(rows) as connection:
            return connection.df().set_axis(rows.column_names, axis="columns")

    def numpy_arrays(self, rows: pa.Table) -> list[Any]:
        """See `Workspace`; as DuckDB makes them."""
        with self.reading(rows) as connection:
            return [*connection.fetchnumpy().values()]

    @contextmanager
    def reading(self, rows: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
        """The rows in DuckDB, under names that are all different."""
        places = [f"c{position}" for position in range(rows.num_columns)]
        with translated():
            arrow_values.register(self._plain, "louver_rows", rows.rename_columns(places))
            try:
                yield self._plain.execute("SELECT * FROM louver_rows")
            finally:
                self._plain.unregister("louver_rows")


def _body(table: Table) -> str:
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in table.columns)


@contextmanager
def _closed_on_failure(engine: DuckDBLocalEngine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.close()
        raise


@atexit.register
def _clean() -> None:
    for folder in list(LIVE):
        folder.remove()
