"""Questions about the schema: information_schema, pg_catalog, duckdb_tables() and the like.

What a query reads is read off DuckDB's own parse tree, through views and macros: a name stands for
DuckDB's catalog only where no table or view of the user's has it. Such a query is answered by the
declared local schema, which holds no rows. One that reads tables as well runs there too, over
rows that are put in for it and rolled back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import duckdb
from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.executor import constraint_check, storage, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.front import Common
from louver.trusted.executor.local.local_engine import LocalEngine
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import TAKES_NAMES, Resolver
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write.reads import names_of, reached
from louver.trusted.vault.catalog import Catalog

_SCHEMAS = frozenset(("information_schema", "pg_catalog"))
#: How names of DuckDB's catalog begin, and those of its macros that do not.
PREFIXES = ("duckdb_", "pragma_", "pg_", "sqlite_")
MACROS = frozenset(("format_type", "get_block_size"))
_STATEMENTS = frozenset(("show", "describe", "desc"))
_ABOUT_DATA = "SUMMARY"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class System:
    """Names of DuckDB's own views, table functions, and macros over these."""

    views: frozenset[str]
    functions: frozenset[str]


@cache
def system_names() -> System:
    """The names of DuckDB's own catalog."""
    connection = duckdb.connect(":memory:")
    try:
        views = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE internal"
            " AND schema_name <> 'information_schema'"
        ).fetchall()
        functions = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal AND"
            r" (regexp_matches(macro_definition, '\b(duckdb|pragma)_\w+\(') OR"
            r" (function_type = 'table' AND regexp_matches(function_name, '^(duckdb|pragma)_')))"
        ).fetchall()
    finally:
        connection.close()
    return System(
        frozenset(fold(name) for (name,) in views), frozenset(fold(name) for (name,) in functions)
    )


def asks_schema(context: Common, text: lexer.Text, tokens: Sequence[Token]) -> bool:
    """Whether a query reads something that describes the schema."""
    catalog, words = context.catalog, names_of(tokens)
    if not words.isdisjoint(TAKES_NAMES):
        words |= {fold(inner) for word in words for inner in _WORD.findall(word)}
    if not _may_ask(catalog, words) and not _shows(tokens):
        return False
    sources = _sources(context.local, text.home)
    if sources is None:
        # Not one query to DuckDB, as a PIVOT: then its words must tell.
        return True
    return any(_asks(catalog, kind, schema, name) for kind, schema, name in sources)


def _may_ask(catalog: Catalog, words: set[str]) -> bool:
    """Whether some words name the catalog, by themselves or through views and macros."""
    if not {"VIEW", "MACRO"}.isdisjoint([item.kind for item in catalog.objects]):
        words = reached(catalog, words)[0]
    return describes(words)


def describes(words: set[str]) -> bool:
    """Whether some words name DuckDB's own catalog."""
    if not words.isdisjoint(_SCHEMAS):
        return True
    # Few statements get this far, so few sessions need to know all names.
    named = {word for word in words if word.startswith(PREFIXES) or word in MACROS}
    return bool(named) and not named.isdisjoint(system_names().views | system_names().functions)


def _shows(tokens: Sequence[Token]) -> bool:
    """Whether SHOW or DESCRIBE stands in brackets, as a source."""
    return any(
        before.text == "(" and fold(token.text) in _STATEMENTS for before, token in pairwise(tokens)
    )


def _sources(home: LocalEngine, sql: str) -> list[tuple[str, str, str]] | None:
    """What a query reads: kind (table, call or statement), schema and name; None for what
    DuckDB's parser does not call a query.
    """
    row = home.binder.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchone()
    body = json.loads(row[0]) if row else {"error": True}
    return None if body["error"] else list(_read_off(body["statements"], frozenset()))


def _read_off(node: Any, ctes: frozenset[str]) -> Iterator[tuple[str, str, str]]:
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
        if name in TAKES_NAMES:
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


def _asks(catalog: Catalog, kind: str, schema: str, name: str) -> bool:
    if kind == "statement" or schema in _SCHEMAS:
        return True
    if kind == "text":
        return _may_ask(catalog, {fold(word) for word in _WORD.findall(name)})
    own, places = ("MACRO",) if kind == "call" else ("VIEW",), catalog.schemas(schema)
    if any(
        item.kind in own and fold(item.name) == name and fold(item.schema) in places
        for item in catalog.objects
    ):
        return describes(reached(catalog, {name})[0] - {name})
    if kind == "call":
        return name in system_names().functions
    return not any(catalog.table(position, name) for position in places) and (
        name in system_names().views
    )


def answer(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Answer from the declared schema."""
    values = home_values(text, parameters)
    described = context.local.describe(text.home, values)
    resolver = Resolver(context.catalog, parse(text.plain), tokens)
    tables = resolver.all_tables(text, context.local)
    named = reached(context.catalog, names_of(tokens))[0]
    if not tables and not context.local.temporary.mentioned(named):
        return Answer(context.local.ask_schema(text.home, values), described, home_sql=text.home)
    from louver.trusted.executor.dry_run import fill, with_parents

    # A foreign key must find what it refers to.
    ordered = with_parents(context, tables)
    with transaction.same_state(context):
        held = [(other, storage.whole(context.storage, other)) for other in ordered]
    with constraint_check.rehearsal(context) as connection:
        for table, rows in held:
            fill(context, connection, table, rows)
        context.local.temporary.fill(connection, context.local.workspace, named)
        rows = context.local.ask_schema(text.home, values)
    return Answer(rows, described, home_sql=text.home)
