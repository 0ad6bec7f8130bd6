"""The providers' tables, empty, in a local DuckDB whose binder returns names and types."""

from __future__ import annotations

import re
import threading
from functools import lru_cache

import duckdb
from sqlglot import exp

from louver import errors
from louver.names import fold, quoted
from louver.trusted.planner.private import functions
from louver.trusted.planner.private.plan_cache import PlanCache
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.wire.questions import Dataset, TableFacts

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_QUOTED = re.compile(r"'(?:[^']|'')*'")


class Schema:
    """Empty tables, and DuckDB's results for statements over them."""

    def __init__(self, tables: tuple[TableFacts, ...]) -> None:
        self.tables = {fold(table.name): table for table in tables}
        self.plans = PlanCache()
        self._lock = threading.Lock()
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
                "threads": "1",
            },
        )
        self._connection.execute("SET TimeZone = 'UTC'")  # as in providers and the session
        functions.register(self._connection)
        rows = self._connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
        ).fetchall()
        self._keywords = {fold(str(row[0])) for row in rows}
        for table in tables:
            columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in table.columns)
            self._connection.execute(f"CREATE TABLE {quoted(table.name)} ({columns})")
        # The binder sees these functions as what they stand for.
        self._connection.execute("CREATE MACRO private(x) AS x")
        self._connection.execute("CREATE MACRO stdev(x) AS stddev(x)")

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Names and types of a query's columns; DuckDB's own error if it does not bind."""
        try:
            rows = self.rows(f"DESCRIBE {sql}")
        except errors.Error:
            # The statement without DESCRIBE gives a message with the user's own text.
            self.rows(sql)
            raise
        return [(str(row[0]), str(row[1])) for row in rows]

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement over the empty tables."""
        with self._lock:
            try:
                return list(self._connection.execute(sql).fetchall())
            except duckdb.Error as error:
                raise errors.from_duckdb(type(error)(_without_values(str(error)))) from None

    def value(self, sql: str) -> object:
        """The single value of a statement."""
        return self.rows(sql)[0][0]

    def identifier(self, name: str) -> exp.Identifier:
        """A name, in quotes if it needs them."""
        plain = _PLAIN.fullmatch(name) is not None and name not in self._keywords
        return exp.to_identifier(name, quoted=not plain)


def schema_of(dataset: Dataset) -> Schema:
    """The schema of a data set; cached, since a session uses few."""
    return _schema(dataset.tables)


@lru_cache(maxsize=8)
def _schema(tables: tuple[TableFacts, ...]) -> Schema:
    return Schema(tables)


def _without_values(message: str) -> str:
    """DuckDB's message without its quotations of the statement, which may contain a secret."""
    said = _QUOTED.sub("'…'", message.split("\n\nLINE ")[0])
    return re.sub(rf"{PARAMETER_PREFIX}\d+", "?", said)
