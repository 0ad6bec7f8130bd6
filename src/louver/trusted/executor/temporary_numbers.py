"""Numbers of temporary sequences: the workspace draws them, where queries and changes of TEMP
tables run. The binder, where changes of stored tables do, has sequences that never move.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.executor.front import Common
from louver.trusted.planner.write import sequence_draws

_ENDS = (TokenType.R_PAREN, TokenType.COMMA, TokenType.DCOLON)
_SAYS_ONE = ("nextval", "currval", "setval")


def require_none(context: Common, tokens: Sequence[Token]) -> None:
    """Refuse what would draw from a temporary sequence in the binder, or may, since no constant
    says of which sequence a number is.
    """
    if not sequence_draws.draws(context.catalog, tokens):
        return
    sequences = context.local.temporary.sequences
    if sequences and not all(_is_of_others(tokens, at, sequences) for at in range(len(tokens))):
        statement = "A statement on stored tables that may draw from a TEMP sequence"
        raise errors.make("postgres.refused", statement=statement)


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
