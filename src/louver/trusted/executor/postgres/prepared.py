"""PREPARE, EXECUTE and DEALLOCATE: named statements of a session, on the client only.

PostgreSQL gives the types of the placeholders, and of the values that EXECUTE gives for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import Described
from louver.trusted.executor.postgres import admitted, session_views
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.planner.sql import lexer

_PREPARED = ("SELECT", "WITH", "VALUES", "TABLE", "(", "INSERT", "UPDATE", "DELETE", "MERGE")
_QUERIES = ("SELECT", "VALUES", "TABLE")
#: Values of which PostgreSQL finds the type again; others go as their text.
_PLAIN = (bool, int, float, str, Decimal, date, datetime, time, UUID, bytes)


@dataclass(slots=True)
class Prepared:
    """A statement, the types of its placeholders, the numbers of those that it uses, the names of
    its columns, and the columns that the binder gives it as of one revision.
    """

    text: lexer.Text
    types: tuple[str, ...]
    used: tuple[int, ...]
    names: list[str]
    columns: Described
    revision: int
    #: what pg_prepared_statements says: the statement, and when it ran
    statement: str = ""
    prepared: str = ""


@dataclass(slots=True)
class Outside:
    """A statement that a client has prepared by messages of its protocol: its text, what gives the
    types of its placeholders, when that was, and what EXECUTE makes of it, once it does.
    """

    sql: str
    types: Callable[[], Sequence[str]]
    prepared: str
    known: Prepared | None = None


@dataclass(slots=True)
class _Named:
    by_name: dict[str, Prepared] = field(default_factory=dict)
    outside: dict[str, Outside] = field(default_factory=dict)


def prepare(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """PREPARE name [(types)] AS statement."""
    words, own = Words(context, text, tokens), context.state.cache(_Named).by_name
    name = words.name()
    if words.takes("TRANSACTION"):
        refuse("A transaction in two phases")
    declared = words.brackets()
    words.needs("AS")
    if words.peek() not in _PREPARED:
        words.wrong()
    (inner,) = lexer.split(words.rest())
    context.local.statements.require_syntax(text.home)
    require_new(context, name)
    own[name] = _made(context, inner, declared, text.home)
    context.state.cache(session_views.Listings).by_view["pg_prepared_statements"] = _listed
    return Answer()


def put(context: Context, name: str, sql: str, types: Callable[[], Sequence[str]]) -> None:
    """A client has prepared a statement by its protocol, under a name that is taken by none."""
    moment = datetime.now(UTC).isoformat()
    context.state.cache(_Named).outside[name] = Outside(sql, types, moment)
    context.state.cache(session_views.Listings).by_view["pg_prepared_statements"] = _listed


def drop(context: Context, name: str) -> None:
    """A client has closed a statement by its protocol, if there is one."""
    own = context.state.cache(_Named)
    own.by_name.pop(name, None)
    own.outside.pop(name, None)


def require_new(context: Context, name: str) -> None:
    """Raise for a name that a statement has."""
    own = context.state.cache(_Named)
    if name in own.by_name or name in own.outside:
        raise said("42P05", f'prepared statement "{name}" already exists')


def by_name(context: Context, name: str) -> Prepared | None:
    """What EXECUTE means by a name; None where nothing has it."""
    own = context.state.cache(_Named)
    outside = own.outside.get(name)
    if outside is None:
        return own.by_name.get(name)
    if outside.known is None:
        texts = lexer.split(outside.sql)
        first = keyword(lexer.tokens(texts[0].plain)[0].text) if texts else ""
        if first not in _PREPARED:
            refuse("EXECUTE of a statement of the protocol's that is neither a query nor a change")
        outside.known = _made(context, texts[0], outside.types(), outside.sql)
    return outside.known


def _typed(
    context: Context, text: lexer.Text, types: Sequence[str], used: Sequence[int]
) -> lexer.Text:
    """A statement whose placeholders have these types, and no gaps in their numbers: PostgreSQL
    finds the types by itself, or reads them.
    """
    inferred: tuple[str, ...] = ()
    with suppress(errors.Error):
        inferred, _ = context.local.statements.prepared(text.home, ())
    written = {
        str(number): f"(${position}::{types[number - 1]})"
        for position, number in enumerate(used, 1)
        if position != number or inferred[number - 1 : number] != (types[number - 1],)
    }
    if not written:
        return text
    (filled,) = lexer.split(lexer.filled(text.home, written))
    return filled


def _made(
    context: Context, inner: lexer.Text, declared: Sequence[str], statement: str
) -> Prepared:  # fmt: skip
    """Prepare a statement, some of whose placeholders' types are declared."""
    types, columns = context.local.statements.prepared(inner.home, declared)
    used = sorted({int(key) for key in inner.parameters})
    typed = _typed(context, inner, types, used)
    shown, cut = typed, lexer.tokens(typed.plain)
    if session_views.are_named(typed.home):
        # Each EXECUTE has what there is then.
        shown = session_views.written_out(context, typed, cut)
        cut = lexer.tokens(shown.plain)
    admitted.require(context, shown, cut, locking=True)
    names = [column for column, _ in columns]
    if typed is not inner:
        columns = context.local.statements.prepared(typed.home, ())[1]
    return Prepared(
        typed, types, tuple(used), names, columns, context.local.revision,
        statement=statement, prepared=datetime.now(UTC).isoformat(),
    )  # fmt: skip


def execute(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXECUTE name [(value, …)]."""
    known = named(context, text, tokens)
    executed = context.state.cache(session_views.Executed)
    executed.text = text.home
    try:
        answer = context.run(*resolved(context, text, tokens, parameters))
    finally:
        executed.text = ""
    if answer.rows is not None and len(answer.columns) == len(known.names):
        # A placeholder with its type written behind it would give its column another name.
        types = [type_ for _, type_ in answer.columns]
        answer.columns = list(zip(known.names, types, strict=True))
        answer.rows = answer.rows.rename_columns(known.names)
    return answer


def named(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> Prepared:
    """The statement that an EXECUTE names."""
    name = Words(context, text, tokens).name()
    known = by_name(context, name)
    if known is None:
        raise said("26000", f'prepared statement "{name}" does not exist')
    return known


def resolved(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> tuple[lexer.Text, list[object]]:
    """The statement that an EXECUTE means, and the values of its placeholders."""
    words = Words(context, text, tokens)
    name = words.name()
    given = words.brackets()
    words.ends()
    known = named(context, text, tokens)
    if text.parameters or parameters:
        refuse("EXECUTE with placeholders")
    if not known.types:
        given = []  # as PostgreSQL, which does not look at them then
    if len(given) != len(known.types):
        detail = f'wrong number of parameters for prepared statement "{name}"'
        raise said("42601", detail)
    values = _values(context, given, known.types)
    _require_columns(context, known)
    return known.text, [values[known.used[int(key) - 1] - 1] for key in known.text.parameters]


def query_of(context: Context, words: Words) -> str:
    """The query that EXECUTE means within a definition, whose name and values follow; "" where it
    takes values, or is none: their types would have to be written, and name columns.
    """
    name = words.name()
    known = by_name(context, name)
    if known is None or known.types or words.takes("("):
        return ""
    begins = keyword(lexer.tokens(known.text.plain)[0].text)
    if begins not in _QUERIES:
        return ""
    _require_columns(context, known)
    return known.text.home


def _require_columns(context: Context, known: Prepared) -> None:
    """Raise where the statement would have other columns than when it was prepared: a program that
    binds them once would read others.
    """
    if known.revision == context.local.revision:
        return
    try:
        _, columns = context.local.statements.prepared(known.text.home, ())
    except errors.Error:
        return  # which the statement raises itself
    if _unqualified(columns) != _unqualified(known.columns):
        raise said("0A000", "cached plan must not change result type")
    known.revision = context.local.revision


def _unqualified(columns: Described) -> Described:
    """The schema of a type is written or not, as the search path is at that time."""
    return [(name, type_.rpartition(".")[2]) for name, type_ in columns]


def _values(context: Context, given: Sequence[str], types: Sequence[str]) -> list[Any]:
    """What the expressions say, as values of these types."""
    if not given:
        return []
    for expression in given:
        if any(keyword(token.text) == "SELECT" for token in lexer.tokens(expression)):
            raise said("0A000", "cannot use subquery in EXECUTE parameter")
        admitted.require_query(context, f"SELECT {expression}")
    local = context.local
    ((*both,),) = local.python_rows(local.statements.coerced(given, types))
    plain, written = both[: len(given)], both[len(given) :]
    return [
        value if value is None or type(value) in _PLAIN else text
        for value, text in zip(plain, written, strict=True)
    ]


def deallocate(
    context: Context, text: lexer.Text, tokens: Sequence[Token], _parameters: list[object]
) -> Answer:
    """DEALLOCATE [PREPARE] name | ALL."""
    words = Words(context, text, tokens)
    words.takes("PREPARE")
    if words.takes("ALL"):
        words.ends()
        forget_all(context)
        return Answer()
    name = words.name()
    words.ends()
    own = context.state.cache(_Named)
    if not (name in own.by_name or name in own.outside):
        raise said("26000", f'prepared statement "{name}" does not exist')
    drop(context, name)
    return Answer()


def _listed(context: Context) -> list[dict[str, object]]:
    """The rows of pg_prepared_statements."""
    own = context.state.cache(_Named)
    return [
        {
            "name": name, "statement": known.statement, "prepare_time": known.prepared,
            "parameter_types": [*known.types], "from_sql": True,
        }
        for name, known in own.by_name.items()
    ] + [
        {
            "name": name, "statement": outside.sql, "prepare_time": outside.prepared,
            "parameter_types": [*outside.types()], "from_sql": False,
        }
        for name, outside in own.outside.items()
    ]  # fmt: skip


def names(context: Context) -> list[str]:
    """The names of all of them."""
    return list(context.state.cache(_Named).by_name)


def forget_all(context: Context) -> None:
    """Forget all prepared statements."""
    own = context.state.cache(_Named)
    own.by_name.clear()
    own.outside.clear()
