"""The objects of a DuckDB database as the statements that create them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from louver import errors
from louver.names import quoted
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import comments
from louver.trusted.executor.schema import head, object_texts, objects
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import HomeObject

_Connection = duckdb.DuckDBPyConnection


def of(connection: _Connection) -> list[HomeObject]:
    """Every object of a database except macros, in an order in which they can be created."""
    seen = objects.snapshot(connection, macros=False)
    results = []
    for (kind, schema, name), what in sorted(seen.items(), key=lambda other: other[1].oid):
        sql = what.sql
        if kind == "SCHEMA":
            sql = f"CREATE SCHEMA {quoted(name)}"
        elif kind == "TYPE":
            qualified_name = f"{quoted(schema)}.{quoted(name)}"
            row = connection.execute(f"DESCRIBE SELECT NULL::{qualified_name} AS c").fetchone()
            sql = f"CREATE TYPE {qualified_name} AS {row[1]}" if row else ""
        elif kind == "SEQUENCE":
            sql = object_texts.stored_sequence(connection, schema, name)
        elif kind == "TABLE":
            sql = object_texts.introspected(connection, kind, schema, name)
        results.append(HomeObject(kind, schema, name, sql))
    results.sort(key=lambda item: objects.RANKS.index(item.kind))
    return results + comments.of(connection)


def stored_objects(context: Context) -> list[HomeObject]:
    """Every object of a session's database; sequences, types and macros as declared."""
    own = [
        item
        for item in context.catalog.objects
        if item.kind in ("SCHEMA", "TYPE", "SEQUENCE", "MACRO") or item in context.local.unresolved
        if not item.temporary
    ]
    shown = [
        item
        for item in of(context.local.binder)
        if item.kind in ("TABLE", "VIEW", "INDEX", "COMMENT") and not item.temporary
    ]
    return sorted(own + shown, key=lambda item: objects.RANKS.index(item.kind))


def macros(path: Path, directory: str) -> list[HomeObject]:
    """The macros of a database file. DuckDB shows their default arguments only in an export, so
    the schema is exported, without rows, into a private directory.
    """
    scratch = duckdb.connect(":memory:")
    try:
        path_text = str(path).replace("'", "''")
        scratch.execute(f"ATTACH '{path_text}' AS louver_source (READ_ONLY)")
        if not scratch.execute(
            "SELECT 1 FROM duckdb_functions() WHERE database_name = 'louver_source'"
            " AND NOT internal LIMIT 1"
        ).fetchone():
            return []
        scratch.execute("COPY FROM DATABASE louver_source TO memory (SCHEMA)")
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            scratch.execute(f"EXPORT DATABASE '{folder}'")
            text = (Path(folder) / "schema.sql").read_text(encoding="utf-8")
    except duckdb.Error as error:
        raise errors.make("file.database", path=str(path), detail=str(error)) from None
    finally:
        scratch.close()
    results = []
    for statement in lexer.split(text):
        tokens = lexer.tokens(statement.plain)
        if lexer.words(tokens, 2) == ["CREATE", "MACRO"]:
            name = head.read(tokens).name
            schema = name[-2] if len(name) > 1 else "main"
            results.append(HomeObject("MACRO", schema, name[-1], statement.home))
    return results


def run_all(plain: _Connection, items: Sequence[HomeObject]) -> list[HomeObject]:
    """Run the statements in as many passes as their dependencies need; returns those that fail."""
    left = list(items)
    before = -1
    while left and len(left) != before:
        before, tried = len(left), left
        left = []
        for item in tried:
            try:
                plain.execute(item.sql)
            except duckdb.Error:
                left.append(item)
    return left


def count(connection: _Connection, path: str) -> int:
    """The rows of a table."""
    row = connection.execute(f"SELECT count(*) FROM {path}").fetchone()
    return int(row[0]) if row else 0
