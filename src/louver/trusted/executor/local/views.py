"""Views in the local DuckDB: their columns, and those that read themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import duckdb
from sqlglot.tokens import TokenType

from louver import errors
from louver.names import HERE, fold, keyword, quoted
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.reads import names_of, reached
from louver.trusted.vault.catalog import Catalog, HomeObject

_EVERY = f"SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND {HERE}"


def bind(schema: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Binding views brings back their columns, which DuckDB forgets when it looks for names."""
    with suppress(duckdb.Error):
        schema.execute(f"DESCRIBE {sql}")
        return
    for position in schema.execute(_EVERY).fetchall():
        with suppress(duckdb.Error):
            schema.execute(f"DESCRIBE FROM {'.'.join(map(quoted, position))}")


def resolve(
    items: Sequence[HomeObject], define: Callable[[HomeObject], None], catalog: Catalog
) -> list[HomeObject]:
    """Define objects in as many passes as their needs take; those that need what is missing.

    A view may read itself, as after `CREATE OR REPLACE VIEW v AS FROM v`: DuckDB binds it when it
    is made, and refuses to read it. So it replaces here too a view of its name.
    """
    unresolved = _in_passes(items, define)
    for item in tuple(unresolved):
        header, columns = _replaced(item, catalog)
        if columns and item in unresolved:
            with suppress(errors.Error):
                define(replace(item, sql=f"CREATE OR REPLACE {header} AS SELECT {columns}"))
                unresolved = _in_passes(unresolved, define)
            if item in unresolved:
                define(replace(item, sql=f"DROP VIEW IF EXISTS {header.split('VIEW', 1)[1]}"))
    return unresolved


def _in_passes(
    items: Sequence[HomeObject], define: Callable[[HomeObject], None]
) -> list[HomeObject]:
    before, unresolved = -1, list(items)
    while unresolved and len(unresolved) != before:
        before, items, unresolved = len(unresolved), unresolved, []
        for item in items:
            try:
                define(item)
            except errors.Error:
                unresolved.append(item)
    return unresolved


def _replaced(item: HomeObject, catalog: Catalog) -> tuple[str, str]:
    """Of a view that replaces one and reads itself: `VIEW name`, and columns that it may be read
    by, which are all names that its text reaches.
    """
    tokens = lexer.tokens(item.sql)
    words = [keyword(token.text) for token in tokens]
    if item.kind != "VIEW" or words[1:3] != ["OR", "REPLACE"]:
        return "", ""
    start = words.index("VIEW")
    ends = (TokenType.L_PAREN, TokenType.ALIAS)
    end = next(i for i in range(start, len(tokens)) if tokens[i].token_type in ends)
    names = reached(catalog, names_of(tokens[end:]))[0]
    if fold(item.name) not in names:
        return "", ""
    temporary = "TEMP " if item.temporary else ""
    header = temporary + item.sql[tokens[start].start : tokens[end].start]
    return header, ", ".join(f"NULL AS {quoted(name)}" for name in sorted(names) if name)
