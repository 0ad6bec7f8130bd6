"""LISTEN, UNLISTEN and NOTIFY: the server hands messages on whose channels and payloads it cannot
read.

As in PostgreSQL, LISTEN and UNLISTEN of a transaction count when it is committed, and a message
that says the same as one before it in a transaction is sent once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokens import Token

from louver import errors
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import pseudonyms
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.planner.sql import lexer
from louver.untrusted.engines.engine import Messaging
from louver.wire.messages import Statement

_LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that another client, or this one, has sent with NOTIFY."""

    channel: str
    payload: str


@dataclass(slots=True)
class Channels:
    """What a session listens to, by pseudonyms, and what its open transaction has said."""

    names: dict[str, str] = field(default_factory=dict)
    #: LISTEN and UNLISTEN of the open transaction, with the number of savepoints that were there
    pending: list[tuple[bool, str, int]] = field(default_factory=list)
    #: its messages, with the same
    sent: dict[tuple[str, str], int] = field(default_factory=dict)
    #: what has arrived and was not read yet, as one before it could not be read
    unread: list[tuple[str, str]] = field(default_factory=list)


def listen(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """LISTEN channel."""
    words = Words(context, text, tokens)
    name = _shortened(words.name())
    words.ends()
    _later(context, True, name)
    return Answer()


def unlisten(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """UNLISTEN channel | *."""
    words = Words(context, text, tokens)
    name = "" if words.takes("*") else _shortened(words.name())
    words.ends()
    _later(context, False, name)
    return Answer()


def notify(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """NOTIFY channel [, payload]."""
    context.local.statements.require_syntax(text.home)
    words, payload = Words(context, text, tokens), ""
    name = _shortened(words.name())
    if words.takes(","):
        (value,) = context.local.python_rows(context.local.statements.values([words.rest()]))[0]
        payload = str(value)
    words.ends()
    send(context, name, payload)
    return Answer()


def send(context: Context, name: str, payload: str) -> None:
    """Send a message, of a transaction when it is committed."""
    if not name:
        raise said("22023", "channel name cannot be empty")
    if len(name.encode()) > _LONGEST_NAME:
        raise said("22023", "channel name too long")
    own = context.state.cache(Channels)
    sealed = pseudonyms.sealed(context, name, payload)
    if context.in_transaction:
        _follow(context, own)
        if (name, payload) in own.sent:
            return
        own.sent[name, payload] = len(context.state.savepoints)
    values = (pseudonyms.channel(context, name), sealed)
    context.engine.query(Statement(context.backend.session_call("pg_notify"), values, "write"))


def _later(context: Context, listens: bool, name: str) -> None:
    engine = _messaging(context)
    own = context.state.cache(Channels)
    if context.in_transaction:
        _follow(context, own)
        own.pending.append((listens, name, len(context.state.savepoints)))
    else:
        _apply(context, engine, own, listens, name)


def _follow(context: Context, own: Channels) -> None:
    """At the end of the transaction what it has said counts, or never was."""
    if own.pending or own.sent:
        return

    def end(committed: bool) -> None:
        pending, own.pending, own.sent = own.pending, [], {}
        for listens, name, _ in pending if committed else ():
            _apply(context, _messaging(context), own, listens, name)

    context.state.endings.append(end)


def undone_to(context: Context, savepoints: int) -> None:
    """What was said after a savepoint was not said."""
    own = context.state.cache(Channels)
    own.sent = {said_: depth for said_, depth in own.sent.items() if depth < savepoints}
    own.pending = [later for later in own.pending if later[2] < savepoints]


def released(context: Context, savepoints: int) -> None:
    """What was said after a savepoint that is released was said before it."""
    own = context.state.cache(Channels)
    own.sent = {said_: min(depth, savepoints) for said_, depth in own.sent.items()}
    own.pending = [(*later[:2], min(later[2], savepoints)) for later in own.pending]


def _apply(context: Context, engine: Messaging, own: Channels, listens: bool, name: str) -> None:
    if listens:
        pseudonym = pseudonyms.channel(context, name)
        engine.listen(pseudonym)
        own.names[pseudonym] = name
        return
    pseudonym = pseudonyms.channel(context, name) if name else ""
    if not name:
        own.names.clear()
    elif own.names.pop(pseudonym, None) is None:
        return
    engine.unlisten(pseudonym)


def forget_all(context: Context) -> None:
    """UNLISTEN *."""
    if context.state.cache(Channels).names:
        _later(context, False, "")


def arrived(context: Context) -> list[Notification]:
    """The messages that have arrived since they were asked for last."""
    own = context.state.cache(Channels)
    results = list[Notification]()
    own.unread += _messaging(context).arrived()
    while own.unread:
        channel, sent = own.unread[0]
        name = own.names.get(channel)
        try:
            if name is not None:
                results.append(Notification(name, pseudonyms.opened(context, name, sent)))
        except errors.Error:
            if results:
                break  # those before it first; the next call says what is wrong
            del own.unread[0]
            raise
        del own.unread[0]
    return results


def _shortened(name: str) -> str:
    """As PostgreSQL cuts a name."""
    return name.encode()[:_LONGEST_NAME].decode(errors="ignore")


def _messaging(context: Context) -> Messaging:
    engine = context.engine
    if not isinstance(engine, Messaging):
        refuse("LISTEN with this engine")
    return engine


def require_language(context: Context) -> None:
    """Raise where sessions have no such statements."""
    if not context.local.dialect.has_own_statements:
        raise errors.make("sql.unsupported", statement="LISTEN")
