"""VACUUM, ANALYZE, CHECKPOINT, CALL and USE."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import select as queries
from louver.trusted.executor import settings
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.write.grammar import TABLE_FUNCTIONS

_CHECKPOINTS = ("checkpoint", "force_checkpoint")
_CALLED = TABLE_FUNCTIONS | {"unnest", "test_all_types"}


def vacuum(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """VACUUM and ANALYZE: what they name must exist, and nothing is left to do. Statistics are of
    the server's making, and of sealed values there are none.
    """
    context.local.declare(text.home)
    return Answer()


def checkpoint(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """[FORCE] CHECKPOINT [database]: rows are folded into tiles, where the server has them, and it
    writes its log into its file.
    """
    context.local.statements.require_syntax(text.home)
    if keyword(tokens[-1].text) != "CHECKPOINT":
        context.local.declare(text.home)
    _checkpoint(context)
    return Answer()


def _checkpoint(context: Context) -> None:
    if context.backend.has_tiles and context.state.writable and not context.in_transaction:
        from louver.trusted.executor import folding

        folding.fold(context)
    context.storage.checkpoint()


def call(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """CALL function(…): the rows of a table function that does nothing but give rows."""
    start, statements = tokens[0].end + 1, context.local.statements
    statements.require_syntax(text.home)
    words = lexer.tokens(text.plain[start:])
    name = fold(words[0].text) if words else ""
    if name in _CHECKPOINTS:
        _checkpoint(context)
        return Answer()
    known = _CALLED | spoken().takes_names | statements.system_names().functions
    macros = {fold(o.name) for o in context.catalog.objects if o.kind == "MACRO"}
    if name not in known | macros:
        if not statements.has_function(name):
            statements.bind(text.home)
        raise errors.make("sql.unsupported", statement=f"CALL {name}()")
    # No placeholder precedes the function, so both texts begin alike.
    query = lexer.Text(f"FROM {text.home[start:]}", f"FROM {text.plain[start:]}", text.parameters)
    return queries.select(context, query, lexer.tokens(query.plain), parameters)


def use(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """USE of a schema: what names without one mean from now on."""
    context.local.statements.require_syntax(text.home)
    settings.change_path(context, text.home)
    return Answer()
