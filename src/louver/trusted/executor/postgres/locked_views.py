"""Views in queries that lock rows: one that has just the columns of one table is that table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor.change import through_views
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import HomeObject, Table

_BEFORE = ("FROM", "JOIN", ",")
_MOST_VIEWS = 32


def written_out(
    context: Context, text: lexer.Text, tokens: Sequence[Token]
) -> tuple[lexer.Text, Sequence[Token]]:
    """The query with such views' tables in their place, under the views' names."""
    every = [item for item in context.catalog.objects if item.kind == "VIEW"]
    others = {name for _, name in context.catalog.tables} | context.local.temporary.names
    counted = Counter(fold(item.name) for item in every)
    views = {
        fold(item.name): item for item in every
        if counted[fold(item.name)] == 1 and not item.temporary and fold(item.name) not in others
    }  # fmt: skip
    words = [fold(token.text) for token in tokens]
    places = [at for at, word in enumerate(words) if word in views]
    sources = [at for at in places if _is_source(tokens, at)]
    if text.parameters or not sources:
        return text, tokens
    if any(at not in sources and not _is_qualifier(tokens, at) for at in places):
        # A whole row, or another sort of name.
        return text, tokens
    # Whether the name is seen at all is PostgreSQL's to say.
    context.local.statements.bind(text.home)
    pieces, position = list[str](), 0
    for at in sources:
        table = _table_of(context, views[words[at]])
        if table is None:
            return text, tokens
        name = f"{quoted(table.schema)}.{quoted(table.name)}"
        alias = "" if _has_alias(tokens, at) else f" AS {quoted(words[at])}"
        pieces += [text.home[position : tokens[at].start], f"{name}{alias}"]
        position = tokens[at].end + 1
    (result,) = lexer.split("".join([*pieces, text.home[position:]]))
    return result, lexer.tokens(result.plain)


def _is_source(tokens: Sequence[Token], at: int) -> bool:
    return keyword(tokens[at - 1].text) in _BEFORE and not _is_qualifier(tokens, at)


def _is_qualifier(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name stands before another one, or behind OF."""
    before = keyword(tokens[at - 1].text) if at else ""
    return before == "OF" or (at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.DOT)


def _has_alias(tokens: Sequence[Token], at: int) -> bool:
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    named = (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
    return following is not None and following.token_type in named


def _table_of(context: Context, view: HomeObject) -> Table | None:
    """The table of which a view has all columns, under their names, and all rows."""
    for _ in range(_MOST_VIEWS):
        try:
            query = through_views.query_of(view)
        except errors.Error:
            return None
        said = {key for key, value in query.args.items() if value}
        columns = [item.unalias() for item in query.expressions]
        names = [fold(item.alias_or_name) for item in query.expressions]
        same = all(isinstance(column, exp.Column) for column in columns)
        if said != {"expressions", "from_"} or not same:
            return None
        if [fold(column.name) for column in columns] != names:
            return None
        node = query.args["from_"].this
        table = context.catalog.named(node.db, node.name)
        if table is not None:
            return table if [fold(c.name) for c in table.columns] == names else None
        inner = through_views.view_of(context, node.db, node.name)
        if inner is None or names != _names(inner):
            return None
        view = inner
    return None


def _names(view: HomeObject) -> list[str]:
    try:
        return [fold(item.alias_or_name) for item in through_views.query_of(view).expressions]
    except errors.Error:
        return []
