"""Plaintext beside the database, to be read only, in both local instances: DuckDB files that are
attached, and data frames and Arrow that have a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb
from sqlglot.tokens import Token

from louver.names import fold, keyword, quoted
from louver.trusted.executor.local.frames import Frames
from louver.trusted.executor.local.local import File, Place
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog

_TABLES = "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE database_name = $1"
_VIEWS = (
    "SELECT schema_name, view_name, sql FROM duckdb_views()"
    " WHERE database_name = $1 AND NOT internal"
)
_MACROS = (
    "SELECT function_name, macro_definition FROM duckdb_functions()"
    " WHERE database_name = $1 AND NOT internal"
)

_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Files:
    """All attached files by folded name."""

    known: dict[str, File] = field(default_factory=dict)
    #: those that could not be attached again when the local DuckDB was made anew
    lost: set[str] = field(default_factory=set)
    #: the tables of each, for the flow rule; of "" the data frames
    tables: dict[str, frozenset[Place]] = field(default_factory=dict)
    frames: Frames = field(default_factory=Frames)

    def put(
        self, connections: Sequence[duckdb.DuckDBPyConnection], name: str, data: object
    ) -> None:
        """See `Frames.put`."""
        self.frames.put(connections, name, data)
        self.tables[""] = frozenset(("main", key) for key in self.frames.known)

    def drop(self, connections: Sequence[duckdb.DuckDBPyConnection], name: str) -> None:
        """See `Frames.drop`."""
        self.frames.drop(connections, name)
        self.tables[""] = frozenset(("main", key) for key in self.frames.known)

    def attach(
        self,
        connections: Sequence[duckdb.DuckDBPyConnection],
        name: str,
        path: str,
        options: Mapping[str, object],
    ) -> None:
        """Attach a file to both instances, or to neither."""
        file = _read(name, path, options)
        try:
            for connection in connections:
                connection.execute(_attach(name, path))
        except duckdb.Error:
            for connection in connections:
                with suppress(duckdb.Error):
                    connection.execute(f"DETACH {quoted(name)}")
            raise
        self.known[fold(name)] = file
        self.tables[fold(name)] = file.tables

    def detach(self, connections: Sequence[duckdb.DuckDBPyConnection], name: str) -> None:
        """Let go of a file."""
        file = self.known.pop(fold(name))
        del self.tables[fold(name)]
        if fold(name) not in self.lost:
            for connection in connections:
                connection.execute(f"DETACH {quoted(file.name)}")
        self.lost.discard(fold(name))

    def restore(
        self,
        connections: Sequence[duckdb.DuckDBPyConnection],
        catalog: Catalog,
        options: Mapping[str, object],
    ) -> None:
        """Attach all to instances that do not know them. Lost is one that is gone or is no longer
        what it was, and one whose name a schema has got meanwhile.
        """
        schemas = schemas_of(catalog)
        self.lost = schemas & self.known.keys()
        for key, file in list(self.known.items()):
            if key in self.lost:
                continue
            try:
                self.attach(connections, file.name, file.path, options)
            except duckdb.Error:
                self.lost.add(key)
        self.frames.restore(connections)

    def said(self, tokens: Sequence[Token]) -> list[str]:
        """The files that some tokens may name: by a word before a dot, or as a DATABASE."""
        words = [fold(a.text) for a, b in pairwise(tokens) if b.text == "."]
        words += [fold(b.text) for a, b in pairwise(tokens) if keyword(a.text) == "DATABASE"]
        return [word for word in words if word in self.known]


def schemas_of(catalog: Catalog) -> set[str]:
    """The folded names of a catalog's schemas."""
    entries = {fold(item.name) for item in catalog.objects if item.kind == "SCHEMA"}
    return entries | {fold(table.schema) for table in catalog.tables.values()}


def _attach(name: str, path: str) -> str:
    path_text = path.replace("'", "''")
    return f"ATTACH '{path_text}' AS {quoted(name)} (TYPE duckdb, READ_ONLY)"


def _read(name: str, path: str, options: Mapping[str, object]) -> File:
    """Look at a file in a DuckDB that has nothing else."""
    alone = duckdb.connect(":memory:", config=dict(options))  # type: ignore[arg-type]
    try:
        alone.execute(_attach(name, path))
        tables = alone.execute(_TABLES, [name]).fetchall()
        views = alone.execute(_VIEWS, [name]).fetchall()
        macros = alone.execute(_MACROS, [name]).fetchall()
        foreign = {fold(view) for schema, view, _ in views if not _binds(alone, name, schema, view)}
    finally:
        alone.close()
    computed = {fold(table) for _, table, sql in tables if "GENERATED" in keyword(sql)}
    texts = [(fold(table), "") for table in computed]
    texts += [(fold(view), sql) for _, view, sql in views]
    texts += [(fold(macro), definition) for macro, definition in macros]
    closed = {view: words for view, words in _closed(texts).items() if view in dict(texts)}
    foreign |= computed | {view for view, words in closed.items() if words & computed}
    return File(
        name,
        path,
        frozenset((fold(schema), fold(table)) for schema, table, _ in tables),
        closed,
        frozenset(foreign),
        frozenset(fold(macro) for macro, _ in macros),
    )


def _binds(alone: duckdb.DuckDBPyConnection, name: str, schema: str, view: str) -> bool:
    with suppress(duckdb.Error):
        alone.execute(f"DESCRIBE FROM {quoted(name)}.{quoted(schema)}.{quoted(view)}")
        return True
    return False


def _closed(texts: Sequence[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """The words of each object with those of all objects that they name."""
    own: dict[str, set[str]] = {}
    for name, text in texts:
        words = {fold(token.text) for token in lexer.tokens(text)}
        own.setdefault(name, set()).update(words, _WORD.findall(fold(text)))
    closed = {}
    for name, words in own.items():
        seen, fresh = set[str](), set(words)
        while fresh:
            seen |= fresh
            fresh = {word for other in fresh & own.keys() for word in own[other]} - seen
        closed[name] = frozenset(seen - {name})
    return closed
