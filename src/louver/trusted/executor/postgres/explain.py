"""EXPLAIN: Louver's own, of what would happen; PostgreSQL's options mean nothing to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import show
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import admitted, prepared, rights
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.postgres_types import own_type

#: How a query in brackets begins; other brackets hold options.
_BRACKETED = ("SELECT", "WITH", "VALUES", "TABLE", "(")


def explain(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXPLAIN [ANALYZE] [(LEAKAGE [, FORMAT text|json|mermaid])] statement."""
    try:
        wanted = show.explaining_of(text)
    except errors.Error as error:
        if error.code != "sql.syntax":
            raise
        context.local.statements.require_syntax(text.home)
        refuse("EXPLAIN with options of PostgreSQL's")
    inner, words = wanted.text, lexer.tokens(wanted.text.plain)
    first = keyword(words[0].text) if len(words) > 1 else ""
    if first == "EXECUTE":
        inner, parameters = prepared.resolved(context, inner, words, parameters)
        words = lexer.tokens(inner.plain)
    elif first == "VERBOSE" or (first == "(" and keyword(words[1].text) not in _BRACKETED):
        refuse("EXPLAIN with options of PostgreSQL's")
    admitted.require(context, inner, words)
    if context.state.restricted:
        rights.require(context, inner, words)
    explanation = show.explained(
        context, inner, parameters, leakage=wanted.leakage, form=wanted.form
    )
    run = lambda: context.run(inner, parameters)  # noqa: E731
    answer = show.told_by(wanted, explanation, context.storage, run)
    return replace(answer, columns=[(name, own_type(type_)) for name, type_ in answer.columns])
