"""VACUUM and ANALYZE in PostgreSQL's language."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import keyword
from louver.trusted.executor import maintenance
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import messages
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement

_OPTIONS = frozenset(("FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE"))


def vacuum(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """VACUUM and ANALYZE, on the server as well: of each table that is named, or of all."""
    if context.in_transaction and keyword(tokens[0].text) == "VACUUM":
        raise messages.said("25001", "VACUUM cannot run inside a transaction block")
    answer = maintenance.vacuum(context, text, tokens, parameters)
    if not context.engine.in_transaction and context.state.writable:
        # What follows such a word is one token to the lexer.
        words = lexer.tokens(text.plain[tokens[0].end + 1 :])
        for table in _named_tables(context, words):
            sql = context.backend.tidied(table, whole=_is_full(words))
            context.engine.run(Statement(sql, kind="ddl"))
    return answer


def _is_full(words: Sequence[Token]) -> bool:
    return any(
        keyword(word.text) == "FULL" and word.token_type is not TokenType.IDENTIFIER
        for word in words
    )


def _named_tables(context: Context, tokens: Sequence[Token]) -> list[Table]:
    """The stored tables that VACUUM or ANALYZE names; all of them where it names none."""
    names, depth, follows = list[list[str]](), 0, False
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth or token.text in "),":
            follows = False
        elif token.text == ".":
            follows = True
        elif follows:
            names[-1].append(token.text)
            follows = False
        elif keyword(token.text) not in _OPTIONS or token.token_type is TokenType.IDENTIFIER:
            names.append([token.text])
    if not names:
        return list(context.catalog.tables.values())
    known = [context.catalog.named(".".join(name[:-1]), name[-1]) for name in names]
    return [table for table in known if table is not None]
