"""Statements of a user who may not do everything: the private PostgreSQL decides, by its own rules
for views, columns and changes (docs/decisions/0036). What it does not decide is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import schema_queries
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.executor.local.postgres.role_rights import Rights
from louver.trusted.executor.postgres.messages import said
from louver.trusted.planner.sql import lexer

_DECIDED = frozenset((
    "SELECT", "WITH", "VALUES", "TABLE", "(", "INSERT", "UPDATE", "DELETE", "MERGE",
))  # fmt: skip
#: Statements that open nothing, or others in turn, which are decided when they run.
_FREE = frozenset((
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET",
    "SHOW", "PREPARE", "EXECUTE", "DEALLOCATE", "DECLARE", "FETCH", "MOVE", "CLOSE", "DISCARD",
    "LISTEN", "UNLISTEN", "NOTIFY", "EXPLAIN",
))  # fmt: skip
#: Numbers of sequences, which are of no table.
_SEQUENCES = frozenset(("nextval", "setval", "currval", "lastval", "pg_sequence_last_value"))
_MOST_TEXTS = 4_096
_DENIED = "42501"


@dataclass(slots=True)
class _Permitted:
    """Texts with the rights that they may be run with, while names mean the same."""

    revision: int = -1
    path: tuple[str, ...] = ()
    texts: set[tuple[Rights | None, str]] = field(default_factory=set)


def restrict(context: Context, rights: Rights | None) -> None:
    """From now on, outside of a transaction, the session may do what these rights say, and no more;
    everything without any. `rights.user` where their role cannot be, and so nothing is decided.
    """
    if rights is None and not context.state.restricted:
        return
    local = _engine(context)
    if local.rights == rights:
        return
    context.state.restricted, local.rights = rights is not None, rights
    with local.acting():
        pass


def require(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """Raise 42501 for a statement that the session's user may not run."""
    word = keyword(tokens[0].text) if tokens else ""
    if word in _FREE:
        return
    if word not in _DECIDED:
        raise said(_DENIED, f"permission denied for {word}")
    if context.attached or context.has_temporary:
        raise said(_DENIED, "permission denied for other databases and temporary tables")
    if is_permitted(context, text):
        return
    local, permitted = _engine(context), context.state.cache(_Permitted)
    takes_names = local.require_right(text.home)
    words = {fold(t.text) for t in tokens if t.token_type != TokenType.STRING}
    drawn = words & _SEQUENCES
    if drawn:
        raise said(_DENIED, f"permission denied for function {min(drawn)}")
    if takes_names and not schema_queries.asks_schema(context, text, tokens):
        raise said(_DENIED, "permission denied for a function that reads what a text names")
    permitted.texts.add((local.rights, text.home))


def is_permitted(context: Context, text: lexer.Text) -> bool:
    """Whether a text was decided for the user's rights, and means the same."""
    permitted = context.state.cache(_Permitted)
    now = context.local.revision, context.catalog.path
    if (permitted.revision, permitted.path) != now or len(permitted.texts) >= _MOST_TEXTS:
        permitted.revision, permitted.path = now
        permitted.texts = set()
    return (_engine(context).rights, text.home) in permitted.texts


def require_sql(context: Context, sql: str) -> None:
    """The same of a text of one statement."""
    (text,) = lexer.split(sql)
    require(context, text, lexer.tokens(text.plain))


def _engine(context: Context) -> PostgresLocalEngine:
    if not isinstance(context.local, PostgresLocalEngine):
        raise errors.make("internal", detail="rights of a database in another language")
    return context.local
