"""The objects of a DuckDB database as the statements that create them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from louver import errors
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import RANKS
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import HomeObject

_Connection = duckdb.DuckDBPyConnection


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
        for item in context.local.schema.objects()
        if item.kind in ("TABLE", "VIEW", "INDEX", "COMMENT") and not item.temporary
    ]
    return sorted(own + shown, key=lambda item: RANKS.index(item.kind))


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
