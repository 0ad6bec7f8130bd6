"""Clients that use sessions one after the other: their settings go with them, and nothing else.

A session that is shared by transactions runs no statement that would leave something in it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.apps.pgproxy.failures import failed, fields_of
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.role_rights import Rights
from louver.trusted.executor.local.postgres.wire import FIRST_OF_USERS, Described
from louver.trusted.executor.postgres import cursors, given, notify, prepared, rights, setting
from louver.trusted.executor.session import Session
from louver.trusted.planner.sql.dialect import speaking
from louver.untrusted.engines.engine import Messaging

#: Statements that leave nothing in a session; of others see `require_shared`.
_SHARED = frozenset((
    "SELECT", "WITH", "VALUES", "TABLE", "(", "EXPLAIN", "SHOW", "INSERT", "UPDATE", "DELETE",
    "MERGE", "TRUNCATE", "COPY", "LOCK", "COMMENT", "ALTER", "DROP", "CREATE", "BEGIN", "START",
    "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "DECLARE", "FETCH", "MOVE",
    "CLOSE", "SET", "RESET", "DISCARD", "NOTIFY", "CHECKPOINT", "VACUUM", "ANALYZE", "REINDEX",
    "GRANT", "REVOKE",
))  # fmt: skip
_TEMPORARY = frozenset(("TEMP", "TEMPORARY"))
_MODIFIERS = _TEMPORARY | {"OR", "REPLACE", "GLOBAL", "LOCAL", "UNLOGGED", "RECURSIVE"}
#: Functions that change a session, or read what is of it alone.
_CALLS = frozenset((
    "currval", "lastval", "setseed", "pg_advisory_lock", "pg_advisory_lock_shared",
    "pg_try_advisory_lock", "pg_try_advisory_lock_shared", "pg_advisory_unlock",
    "pg_advisory_unlock_shared", "pg_temp", "pg_listening_channels",
))  # fmt: skip
_OID = 26
#: Words of queries that show numbers of tables and types.
_NUMBERED = re.compile(
    r"pg_\w*|oid(vector)?|tableoid|information_schema|reg(class|type|proc(edure)?|oper(ator)?"
    r"|namespace|role|config|dictionary|collation)"
)
_stamps: dict[object, int] = {}
_numbers = itertools.count(1)


@dataclass(slots=True)
class Visitor:
    """A client: who it is, what it brought along, and its settings since."""

    user: str
    parameters: list[tuple[str, str]]
    #: what it may do, where that is not everything
    rights: Rights | None = None
    #: what RESET goes back to; None before it has been in a session
    startup: dict[str, str] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    #: the same number as of others with the same user, rights and settings
    stamp: int = 0
    #: whether it knows numbers of one session's
    is_pinned: bool = False


def of(
    user: str, parameters: Sequence[tuple[str, str]], own: Rights | None = None, *, shared: bool
) -> Visitor:
    """A client by what it brings along. What PostgreSQL's clients know nothing of is ignored, like
    replication.
    """
    brought = list[tuple[str, str]]()
    for name, value in parameters:
        name = fold(name)
        if name in ("user", "database", "replication") or name.startswith("_pq_."):
            continue
        if name == "client_encoding":
            if fold(value.strip("'\"")).replace("-", "") not in ("utf8", "unicode", "auto"):
                raise failed("0A000", f"client_encoding {value}: only UTF8 is spoken")
            continue
        if shared and setting.stays(name):
            error = errors.make("serve.session", statement=f"SET {name}")
            raise failed("0A000", error.message, f"{error.fix} ({error.code})")
        brought.append((name, value))
    return Visitor(user, brought, own)


def enter(session: Session, visitor: Visitor) -> None:
    """Give a session the client's rights and settings. Where that fails, no client may have it."""
    context = session.context
    # Before anything runs for it; what was learnt for the client before is forgotten.
    rights.restrict(context, visitor.rights)
    if visitor.startup is not None:
        given.begin(context, visitor.startup, visitor.settings)
        return
    setting.forget_startup(context)
    state = context.state
    state.begun_encryption = state.default_encryption = "none"
    for name, value in visitor.parameters:
        try:
            if name in setting.OWN:
                quoted = value.replace("'", "''")
                session.execute(f"SET {name} = '{quoted}'")
            else:
                session.execute("SELECT set_config($1, $2, false)", [name, value])
        except errors.Error as error:
            raise failed(str(fields_of(error, "")["sqlstate"]), error.message) from None
    # A pool's RESET ALL must not have columns of later tables in plaintext.
    state.begun_encryption = state.default_encryption
    visitor.startup = setting.started(context)
    visitor.stamp = _stamp(visitor)


def leave(context: Context, visitor: Visitor) -> None:
    """Keep the client's settings for it; raises where the session has more of it."""
    if _has_left(context):
        raise errors.make("internal", detail="a statement has left something in a shared session")
    now = given.of(context).session
    if now != visitor.settings:
        visitor.settings = dict(now)
        visitor.stamp = _stamp(visitor)


def reset(session: Session) -> None:
    """Clear all that a session has, as DISCARD ALL does, and what its client had begun with."""
    if session.in_transaction:
        session.rollback()
    with speaking(session.dialect):
        rights.restrict(session.context, None)
        setting.discard_all(session.context)
        setting.forget_startup(session.context)


def _has_left(context: Context) -> bool:
    state, engine = context.state, context.engine
    return bool(
        context.has_temporary
        or state.cache(cursors.Cursors).open
        or state.cache(notify.Channels).names
        or prepared.names(context)
        or (isinstance(engine, Messaging) and engine.holds_session)
    )


def _stamp(visitor: Visitor) -> int:
    startup = frozenset((visitor.startup or {}).items())
    key = (visitor.user, visitor.rights, startup, frozenset(visitor.settings.items()))
    if key not in _stamps:
        if len(_stamps) > 10_000:
            _stamps.clear()
        _stamps[key] = next(_numbers)
    return _stamps[key]


def require_shared(tokens: Sequence[Token]) -> None:
    """Raise `serve.session` for a statement that needs a session of its own."""
    words = ["" if t.token_type == TokenType.STRING else keyword(t.text) for t in tokens]
    why = _leaving(words)
    for at, token in enumerate(tokens):
        name = fold(token.text)
        if token.token_type != TokenType.STRING and name in _CALLS:
            why = f"{name}()"
        if name == "set_config" and not _follows(tokens[at + 1 : at + 7]):
            why = "set_config() of this form"
    if why:
        raise errors.make("serve.session", statement=why)


def _follows(tokens: Sequence[Token]) -> bool:
    """Whether the arguments of set_config() are those of a setting that goes with the client, or of
    one that ends with the transaction.
    """
    texts = [fold(token.text) for token in tokens]
    if texts[2:3] == [","] and texts[4:6] == [",", "true"]:
        return True
    named = len(tokens) > 1 and tokens[1].token_type == TokenType.STRING
    return named and not setting.stays(texts[1])


def _leaving(words: Sequence[str]) -> str:
    """What a statement leaves in its session; "" for nothing."""
    word = words[0] if words else ""
    if word == "UNLISTEN" and words[1:] == ["*"]:
        return ""
    if word == "DEALLOCATE" and words[-1] == "ALL":
        return ""
    if word not in _SHARED:
        return word
    if word == "CREATE" and _TEMPORARY.intersection(takewhile(_MODIFIERS.__contains__, words[1:])):
        return "CREATE TEMPORARY"
    if word in ("SELECT", "WITH") and "INTO" in words:
        at = words.index("INTO") + 1
        if _TEMPORARY.intersection(words[at : at + 2]):
            return "SELECT INTO TEMPORARY"
    if word == "DECLARE" and _holds(words):
        return "DECLARE CURSOR WITH HOLD"
    if word in ("SET", "RESET"):
        return _set(words)
    return ""


def _holds(words: Sequence[str]) -> bool:
    at = words.index("CURSOR") if "CURSOR" in words else len(words)
    return words[at + 1 : at + 3] == ["WITH", "HOLD"]


def _set(words: Sequence[str]) -> str:
    """Settings go with the client, but for those of Louver's and of all later transactions."""
    at = 2 if words[1:2] == ["SESSION"] else 1
    if words[0] == "RESET" or words[1:2] == ["LOCAL"]:
        return ""
    if words[at : at + 1] == ["CHARACTERISTICS"]:
        return "SET SESSION CHARACTERISTICS"
    name = fold(words[at]) if len(words) > at else ""
    return f"SET {name}" if setting.stays(name) else ""


def shows_numbers(
    tokens: Sequence[Token], parameters: Sequence[int], columns: Sequence[Described] | None
) -> bool:
    """Whether a statement may show numbers of tables or types, which each session has its own
    of.
    """
    types = [*parameters, *(column[3] for column in columns or ())]
    if any(type_ >= FIRST_OF_USERS or type_ == _OID for type_ in types):
        return True
    return any(_NUMBERED.fullmatch(fold(token.text)) for token in tokens)
