"""Numbers of temporary sequences: the workspace draws them, where queries and changes of TEMP tables
run. The binder, where changes of stored tables do, has sequences that never move.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import temporary_tables
from louver.trusted.executor.postgres import lock_clause
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.write import sequence_draws

_QUERIES = ("SELECT", "VALUES", "TABLE", "(")
_ENDS = (TokenType.R_PAREN, TokenType.COMMA, TokenType.DCOLON)
_SAYS_ONE = ("nextval", "currval", "setval")


def require(context: Context, tokens: Sequence[Token], *, by_binder: bool = False) -> None:
    """Refuse what would draw from a temporary sequence elsewhere, or may, since no constant says of
    which sequence a number is.
    """
    if not sequence_draws.draws(context.catalog, tokens):
        return
    word = keyword(tokens[0].text)
    if word == "CREATE" and keyword(tokens[1].text) in ("TEMP", "TEMPORARY", "LOCAL", "GLOBAL"):
        return
    locks = lock_clause.locks(tokens) or bool(lock_clause.within(tokens))
    if not by_binder and (
        (word in _QUERIES and not locks) or temporary_tables.is_target(context, tokens)
    ):
        return
    sequences = context.local.temporary.sequences
    if sequences and not all(_is_of_others(tokens, at, sequences) for at in range(len(tokens))):
        refuse("A statement on stored tables that may draw from a TEMP sequence")


def _is_of_others(tokens: Sequence[Token], at: int, sequences: frozenset[str]) -> bool:
    """Whether a token draws from no temporary sequence."""
    word = fold(tokens[at].text)
    if word == "lastval":
        return False
    if word not in _SAYS_ONE or tokens[at].token_type == TokenType.STRING:
        return True
    said = tokens[at + 1 : at + 4]
    kinds = [token.token_type for token in said]
    if kinds[:2] != [TokenType.L_PAREN, TokenType.STRING] or kinds[2] not in _ENDS:
        return False
    schema, _, name = fold(said[1].text).replace('"', "").rpartition(".")
    return not schema.startswith("pg_temp") and name not in sequences
