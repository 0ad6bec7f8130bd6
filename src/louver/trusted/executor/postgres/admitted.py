"""Which queries and changes may run: those that do nothing but read, and change their target.

The local engine runs a statement over rows that it is given, and what it does besides stays there:
a lock that no one else sees, a row that is gone here alone. So a statement is decided by the tree
of PostgreSQL's own analyser (`Statements.refused`), by default: what is not known is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import temporary_tables
from louver.trusted.executor.postgres import lock_clause
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write import sequence_draws

_DECIDED = frozenset((
    "SELECT", "WITH", "VALUES", "TABLE", "(", "INSERT", "UPDATE", "DELETE", "MERGE",
))  # fmt: skip
_MOST_SHAPES = 4_096
#: What may stand in rows of constants: anything that calls or reads has other tokens.
_CONSTANT = frozenset((
    TokenType.NUMBER, TokenType.STRING, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA,
    TokenType.DASH, TokenType.PLUS, TokenType.NULL, TokenType.TRUE, TokenType.FALSE,
    TokenType.DEFAULT,
))  # fmt: skip
_NAMES = frozenset((TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT, TokenType.COMMA))


@dataclass(slots=True)
class _Shapes:
    """Shapes of statements that may run, while names and types mean the same."""

    revision: int = -1
    path: tuple[str, ...] = ()
    known: set[str] = field(default_factory=set)


def require(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    *,
    locking: bool = False,
    running: bool = False,
) -> None:
    """Raise for a query or change that does more, or other things, than Louver does of it;
    ``locking``: it is run as a statement, so that a query may lock rows (`row_locks`);
    ``running``: it runs now, so that its parts may change TEMP tables, as all of it then does.
    """
    word = keyword(tokens[0].text) if tokens else ""
    own = word == "SELECT" and lock_clause.locks(tokens)
    if not locking and (own or lock_clause.within(tokens)):
        raise errors.make("postgres.refused", statement="SELECT FOR UPDATE within a statement")
    if word not in _DECIDED:
        return
    if word == "INSERT" and _is_numbered(text) and _is_of_constants(tokens):
        return
    shapes, local = context.state.cache(_Shapes), context.local
    now = (local.revision, context.catalog.path)
    if (shapes.revision, shapes.path) != now or len(shapes.known) > _MOST_SHAPES:
        shapes.revision, shapes.path = now
        shapes.known = set()
    key = lexer.shape(text.plain, tokens).key
    if key in shapes.known:
        return
    draws = sequence_draws.draws(context.catalog, tokens)
    temporary = running and word == "WITH" and context.has_temporary
    temporary = temporary and temporary_tables.is_target(context, tokens)
    feature = local.statements.refused(
        _without_locks(context, text, tokens), draws=draws, temporary=temporary
    )
    if feature:
        raise errors.make("postgres.refused", statement=feature)
    if not temporary:
        shapes.known.add(key)


def _without_locks(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> str:
    """What else a query does whose rows are locked on the server (`row_locks`)."""
    from louver.trusted.executor.change import statement_parts

    itself = keyword(tokens[0].text) == "SELECT" and lock_clause.locks(tokens)
    queries = [] if itself else lock_clause.within(tokens)
    if not (itself or queries):
        return text.home
    context.local.statements.require_syntax(text.home)
    none = [None] * len(text.parameters)
    words = statement_parts.words_of(text, tokens, none)
    if itself:
        plain = lock_clause.cut(words).without
        words = statement_parts.Words(plain, lexer.tokens(plain), none)
    else:
        words = lock_clause.without(words, queries)
    return lock_clause.Numbered(words, text.parameters).text()


def require_query(context: Context, sql: str) -> None:
    """The same of a query within another statement."""
    (text,) = lexer.split(sql) or (lexer.Text("", "", ()),)
    tokens = lexer.tokens(text.plain)
    if not tokens or keyword(tokens[0].text) not in _DECIDED:
        raise errors.make("postgres.refused", statement="A query of this form")
    require(context, text, tokens)


def _is_numbered(text: lexer.Text) -> bool:
    """Whether no placeholder is left out below another one, whose type PostgreSQL would ask for."""
    return set(text.parameters) == set(range(1, len(set(text.parameters)) + 1))


def _is_of_constants(tokens: Sequence[Token]) -> bool:
    """Whether a statement is INSERT INTO name [(names)] VALUES rows of constants and placeholders,
    and nothing else.
    """
    words = [keyword(token.text) for token in tokens]
    if words[1:2] != ["INTO"] or "VALUES" not in words:
        return False
    at = words.index("VALUES")
    head = [token.token_type for token in tokens[2:at]]
    brackets = {TokenType.L_PAREN, TokenType.R_PAREN}
    if not _NAMES.union(brackets).issuperset(head):
        return False
    return all(
        token.token_type in _CONSTANT or fold(token.text).startswith(lexer.PARAMETER_PREFIX)
        for token in tokens[at + 1 :]
    )
