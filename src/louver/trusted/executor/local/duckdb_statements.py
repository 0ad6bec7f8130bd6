"""What DuckDB says of a statement without running it, and of its own names and settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.local import Parameters, Source, Statements, SystemNames
from louver.trusted.planner.sql.dialect import DUCKDB

_VALUE, _SHOWN = "louver_value", "SELECT typeof($1), $1::VARCHAR, $1"
_ABOUT_DATA = "SUMMARY"


class DuckDBStatements(Statements):
    """By a connection to the binder, and one to the workspace."""

    def __init__(
        self, binder: duckdb.DuckDBPyConnection, workspace: duckdb.DuckDBPyConnection
    ) -> None:
        """Over open connections."""
        self._binder = binder
        self._workspace = workspace

    def require_syntax(self, sql: str) -> None:
        """See `Statements`."""
        with translated():
            self._binder.extract_statements(sql)

    def bind(self, sql: str, parameters: Parameters = ()) -> None:
        """See `Statements`."""
        with translated():
            self._binder.execute(f"EXPLAIN {sql}", parameters or None)

    def sources(self, sql: str) -> list[Source] | None:
        """See `Statements`; read off DuckDB's own tree."""
        request = "SELECT json_serialize_sql($1::VARCHAR)"
        with translated():
            row = self._binder.execute(request, [sql]).fetchone()
        body = json.loads(row[0]) if row else {"error": True}
        return None if body["error"] else list(_read_off(body["statements"], frozenset()))

    def names_read(self, sql: str) -> set[str]:
        """See `Statements`."""
        with translated():
            return set(map(fold, self._binder.get_table_names(sql)))

    def exact_value(self, expression: str) -> tuple[bool, object]:
        """See `Statements`."""
        with translated():
            self._binder.execute(f"PREPARE {_VALUE} AS {_SHOWN}")
            try:
                first = self._binder.execute(f"EXECUTE {_VALUE}({expression})").fetchone()
            finally:
                self._binder.execute(f"DEALLOCATE {_VALUE}")
            value = first[2] if first else None
            second = self._binder.execute(_SHOWN, [value]).fetchone()
        return bool(first and second and first[:2] == second[:2]), value

    def values(self, items: Sequence[str], parameters: Parameters = ()) -> pa.Table:
        """See `Statements`."""
        sql = f"SELECT {', '.join(items)}"
        with translated():
            return self._binder.execute(sql, parameters or None).to_arrow_table()

    def has_function(self, name: str) -> bool:
        """See `Statements`."""
        sql = "SELECT count(*) FROM duckdb_functions() WHERE function_name = $1"
        return self._is_counted(sql, name)

    def has_setting(self, name: str) -> bool:
        """See `Statements`."""
        sql = "SELECT count(*) FROM duckdb_settings() WHERE lower(name) = $1"
        return self._is_counted(sql, name)

    def _is_counted(self, sql: str, name: str) -> bool:
        with translated():
            row = self._binder.execute(sql, [name]).fetchone()
        return bool(row and row[0])

    def setting(self, name: str) -> pa.Table | None:
        """See `Statements`."""
        sql = "SELECT CAST(current_setting(?) AS VARCHAR) AS value"
        with suppress(duckdb.Error):
            return self._workspace.execute(sql, [name]).to_arrow_table()
        return None

    def system_names(self) -> SystemNames:
        """See `Statements`."""
        return system_names()

    def broken(self, message: str) -> errors.Error:
        """See `Statements`."""
        from louver.trusted.executor.local.duckdb_keys import constraint_error

        return constraint_error(message)

    def own_functions(self) -> frozenset[str]:
        """See `Statements`; DuckDB's own macros are called by name alone."""
        return _own_functions()


@cache
def system_names() -> SystemNames:
    """The names of DuckDB's own catalog: views, table functions, and macros over these."""
    views = _names(
        "SELECT view_name FROM duckdb_views() WHERE internal"
        " AND schema_name <> 'information_schema'"
    )
    functions = _names(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal AND"
        r" (regexp_matches(macro_definition, '\b(duckdb|pragma)_\w+\(') OR"
        r" (function_type = 'table' AND regexp_matches(function_name, '^(duckdb|pragma)_')))"
    )
    return SystemNames(views, functions)


@cache
def _own_functions() -> frozenset[str]:
    return _names(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal"
        " AND function_type NOT IN ('macro', 'table_macro')"
    )


@cache
def reserved_words() -> frozenset[str]:
    """The words that DuckDB takes for no name."""
    return _names(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
    )


def _names(sql: str) -> frozenset[str]:
    """The folded names that a query gives in a DuckDB without any object of a user's."""
    connection = duckdb.connect(":memory:")
    try:
        return frozenset(fold(name) for (name,) in connection.execute(sql).fetchall())
    finally:
        connection.close()


def _read_off(node: Any, ctes: frozenset[str]) -> Iterator[Source]:
    if isinstance(node, list):
        for part in node:
            yield from _read_off(part, ctes)
    if not isinstance(node, dict):
        return
    named = node["cte_map"]["map"] if isinstance(node.get("cte_map"), dict) else []
    ctes |= {fold(entry["key"]) for entry in named}
    kind = node.get("type")
    if kind == "BASE_TABLE":
        schema, name = fold(node["schema_name"]), fold(node["table_name"])
        if schema or name not in ctes:
            yield "table", schema, name
    elif kind == "SHOW_REF" and node["show_type"] != _ABOUT_DATA:
        yield "statement", "", ""
    elif kind == "FUNCTION" and "function_name" in node:
        name = fold(node["function_name"])
        yield "call", fold(node["schema"]), name
        if name in DUCKDB.takes_names:
            yield from (("text", "", text) for text in _words(node["children"]))
    for part in node.values():
        yield from _read_off(part, ctes)


def _words(node: Any) -> Iterator[str]:
    """The strings and names among a function's arguments."""
    if isinstance(node, list):
        for part in node:
            yield from _words(part)
    elif isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, part in node.items():
            if key in ("children", "value", "column_names"):
                yield from _words(part)
