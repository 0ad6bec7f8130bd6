"""Questions about the schema: information_schema, pg_catalog, duckdb_tables() and the like.

What a query reads is read off DuckDB's own parse tree, through views and macros: a name stands for
DuckDB's catalog only where no table or view of the user's has it. Such a query is answered by the
declared local schema, which holds no rows. One that reads tables as well runs there too, over
rows that are put in for it and rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.executor import constraint_check, seen_state, storage, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.front import Common
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write import sequence_draws
from louver.trusted.planner.write.reads import Reads, names_of, reached
from louver.trusted.vault.catalog import Catalog

_SCHEMAS = frozenset(("information_schema", "pg_catalog"))
#: How names of DuckDB's catalog begin, and those of its macros that do not.
PREFIXES = ("duckdb_", "pragma_", "pg_", "sqlite_", "has_", "to_reg")
MACROS = frozenset(("format_type", "get_block_size"))
#: What names a sequence to draw from; of `pg_catalog` every function is looked at by its name.
_OF_SEQUENCES = frozenset(("regclass", "pg_catalog", "pg_get_serial_sequence"))
_STATEMENTS = frozenset(("show", "describe", "desc"))
_WORD = re.compile(r"\w+")


def asks_schema(context: Common, text: lexer.Text, tokens: Sequence[Token]) -> bool:
    """Whether a query reads something that describes the schema."""
    catalog, words = context.catalog, names_of(tokens)
    if not words.isdisjoint(spoken().takes_names):
        words |= {fold(inner) for word in words for inner in _WORD.findall(word)}
    local = context.local
    if not _may_ask(local, catalog, words) and not _shows(tokens):
        return False
    if not words.isdisjoint(spoken().names_objects):
        return True
    sources = local.statements.sources(text.home)
    if sources is None:
        # Not one query to DuckDB, as a PIVOT: then its words must tell.
        return True
    return any(_asks(local, catalog, kind, schema, name) for kind, schema, name in sources)


def _may_ask(local: LocalEngine, catalog: Catalog, words: set[str]) -> bool:
    """Whether some words name the catalog, by themselves or through views and macros."""
    if not {"VIEW", "MACRO"}.isdisjoint([item.kind for item in catalog.objects]):
        words = reached(catalog, words)[0]
    return describes(local, words)


def describes(local: LocalEngine, words: set[str]) -> bool:
    """Whether some words name DuckDB's own catalog."""
    if not words.isdisjoint(_SCHEMAS | spoken().names_objects):
        return True
    # Few statements get this far, so few sessions need to know all names.
    named = {word for word in words if word.startswith(PREFIXES) or word in MACROS}
    named |= {word for word in words if word.endswith("_description")}
    if not named:
        return False
    known = local.statements.system_names()
    return not named.isdisjoint(known.views | known.functions)


def _shows(tokens: Sequence[Token]) -> bool:
    """Whether SHOW or DESCRIBE stands in brackets, as a source."""
    return any(
        before.text == "(" and fold(token.text) in _STATEMENTS for before, token in pairwise(tokens)
    )


def _asks(local: LocalEngine, catalog: Catalog, kind: str, schema: str, name: str) -> bool:
    if kind == "statement" or schema in _SCHEMAS:
        return True
    if kind == "text":
        return _may_ask(local, catalog, {fold(word) for word in _WORD.findall(name)})
    own, places = ("MACRO",) if kind == "call" else ("VIEW",), catalog.schemas(schema)
    if any(
        item.kind in own and fold(item.name) == name and fold(item.schema) in places
        for item in catalog.objects
    ):
        return describes(local, reached(catalog, {name})[0] - {name})
    if kind == "call":
        return name in local.statements.system_names().functions
    return not any(catalog.table(position, name) for position in places) and (
        name in local.statements.system_names().views
    )


def answer(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Answer from the declared schema."""
    values = home_values(text, parameters)
    described = context.local.describe(text.home, values)
    resolver = Resolver(context.catalog, parse(text.plain), tokens)
    tables = resolver.all_tables(text, context.local)
    transaction.require_drawing(context, tokens)
    named = reached(context.catalog, names_of(tokens))[0]
    names_only = not describes(context.local, named - _OF_SEQUENCES)
    sequence_draws.require(
        Reads(context.catalog, parse(text.plain), tokens, None, context.state.origins),
        tokens,
        names_only=names_only,
    )
    if spoken().has_own_statements and context.has_temporary:
        from louver.trusted.executor import temporary_numbers

        temporary_numbers.require_none(context, tokens)
    if not tables and not context.local.temporary.mentioned(named):
        rows = context.local.ask_schema(text.home, values)
        transaction.keep_sequences(context, tokens)
        return Answer(rows, described, home_sql=text.home)
    from louver.trusted.executor.dry_run import fill, with_parents

    # A foreign key must find what it refers to.
    ordered = with_parents(context, tables)
    with seen_state.same_state(context):
        held = [(other, storage.whole(context.storage, other)) for other in ordered]
    with constraint_check.rehearsal(context) as connection:
        for table, rows in held:
            fill(context, connection, table, rows)
        context.local.temporary.fill(named)
        rows = context.local.ask_schema(text.home, values)
    transaction.keep_sequences(context, tokens)
    return Answer(rows, described, home_sql=text.home)
