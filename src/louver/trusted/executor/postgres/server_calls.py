"""`SELECT f(…)` of functions whose effect is the server's: advisory locks and pg_notify.

The arguments are evaluated on this machine; what the server gets are pseudonyms of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from louver.names import fold, quoted
from louver.trusted.executor import transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change.statement_parts import Words
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import admitted, control, given, notify, pseudonyms
from louver.trusted.executor.postgres.control import Characteristics
from louver.trusted.executor.postgres.lock_clause import Numbered
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.postgres_types import own_type
from louver.untrusted.engines.engine import Messaging, Nesting
from louver.wire.messages import Statement

_UNLOCK_ALL = "pg_advisory_unlock_all"
#: Functions of locks, and whether they wait.
_LOCKS = {
    "pg_advisory_lock": True, "pg_advisory_lock_shared": True,
    "pg_advisory_xact_lock": True, "pg_advisory_xact_lock_shared": True,
    "pg_try_advisory_lock": False, "pg_try_advisory_lock_shared": False,
    "pg_try_advisory_xact_lock": False, "pg_try_advisory_xact_lock_shared": False,
    "pg_advisory_unlock": False, "pg_advisory_unlock_shared": False, _UNLOCK_ALL: False,
}  # fmt: skip
_NOTIFY, _TEXT = "pg_notify", own_type("VARCHAR")
#: Types of arguments by their number.
_TYPES = {0: (), 1: ("bigint",), 2: ("integer", "integer")}


@dataclass(frozen=True, slots=True)
class Call:
    """A function and where its arguments are, as places of tokens."""

    name: str
    first: int
    last: int


def call_of(tokens: Sequence[Token]) -> Call | None:
    """The call that a query consists of, None of any other."""
    words = [fold(token.text) for token in tokens]
    at = 3 if words[1:3] == ["pg_catalog", "."] else 1
    if words[:1] != ["select"] or len(words) < at + 3 or words[at + 1] != "(":
        return None
    if words[at] not in _LOCKS and words[at] != _NOTIFY:
        return None
    depth = 0
    for position in range(at + 1, len(words)):
        depth += (words[position] == "(") - (words[position] == ")")
        if depth == 0:
            break
    rest = tokens[position + 1 :]
    named = not rest or (len(rest) <= 2 and rest[-1].token_type in _NAMES)
    if depth or not named or (len(rest) == 2 and fold(rest[0].text) != "as"):
        return None
    return Call(words[at], at + 2, position)


_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def call(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run such a query."""
    function = call_of(tokens)
    if function is None:
        refuse("A call of this form")
    words = Words(text.plain, tokens, parameters)
    whole = Numbered(words, text.parameters)
    context.local.statements.bind(whole.text(), whole.values)
    columns = context.local.describe(whole.text(), whole.values)
    values = _arguments(context, text, words, function)
    if function.name == _NOTIFY:
        channel, payload = values
        notify.send(context, str(channel or ""), str(payload or ""))
        result = "''::void"
    elif None in values:
        result = f"NULL::{columns[0][1]}"
    else:
        numbers = tuple(int(str(value)) for value in values)
        is_met = _locked(context, function.name, numbers)
        shown = "true" if is_met else "false"
        result = shown if columns[0][1] == "boolean" else "''::void"
    rows = context.local.ask_schema(f"SELECT {result} AS {quoted(columns[0][0])}")
    return Answer(rows, columns)


def _arguments(context: Context, text: lexer.Text, words: Words, function: Call) -> list[object]:
    pieces, depth, start = list[tuple[int, int]](), 0, function.first
    for position in range(function.first, function.last):
        symbol = words.tokens[position].text
        depth += (symbol in ("(", "[")) - (symbol in (")", "]"))
        if depth == 0 and symbol == ",":
            pieces.append((start, position))
            start = position + 1
    if start < function.last:
        pieces.append((start, function.last))
    types = (_TEXT, _TEXT) if function.name == _NOTIFY else _TYPES[len(pieces)]
    values = list[object]()
    for (first, last), type_ in zip(pieces, types, strict=True):
        part = words.plain[words.tokens[first].start : words.tokens[last - 1].end + 1]
        piece = Words(part, lexer.tokens(part), words.parameters)
        if any(fold(token.text) in ("select", "table", "values") for token in piece.tokens):
            refuse(f"{function.name}() of a query")
        sent = Numbered(piece, text.parameters)
        sql = f"({sent.text()})::{type_}"
        admitted.require_query(context, f"SELECT {sql}")
        rows = context.local.statements.values([sql], sent.values)
        values += context.local.python_rows(rows)[0]
    return values


def _locked(context: Context, name: str, numbers: tuple[int, ...]) -> bool:
    """Call a function of locks on the server."""
    if name == _UNLOCK_ALL:
        _ask(context, name, ())
        _keep(context, False)
        return True
    key = (pseudonyms.lock(context, numbers),)
    if "unlock" in name:
        return _ask(context, name, key)
    within = "_xact" in name
    if not context.state.anew:
        met = _ask(context, name, key)
        if met and not within:
            _keep(context, True)
        return met
    return _before_reading(context, name, key, within=within)


def _before_reading(context: Context, name: str, key: tuple[int], *, within: bool) -> bool:
    """A transaction that has changed nothing reads what there is once the lock is held, not what
    there was before others gave it back: it begins anew under a lock of the session.
    """
    own, settings = context.state.cache(Characteristics), given.copied(context)
    modes, shared = own.open, "_shared" if name.endswith("_shared") else ""
    transaction.rollback(context)
    outer = name.replace("_xact", "")
    try:
        met = _ask(context, outer, key)
    finally:
        control.begin(context, modes)
        given.restore(context, settings)
    if met and within:
        try:
            _ask(context, name, key)
        finally:
            _ask(context, f"pg_advisory_unlock{shared}", key)
    elif met:
        _keep(context, True)
    return met


def unlock_all(context: Context) -> None:
    """Give the locks of the session back, if it has any."""
    if isinstance(context.engine, Messaging) and context.engine.holds_session:
        _ask(context, _UNLOCK_ALL, ())
        _keep(context, False)


def _ask(context: Context, name: str, key: tuple[int, ...]) -> bool:
    sql = context.backend.session_call(name)
    met = context.engine.query(Statement(sql, key, "write")).column(0)[0].as_py()
    if isinstance(context.engine, Nesting):
        context.engine.forget()  # a lock of the session would be taken twice
    return bool(met)


def _keep(context: Context, held: bool) -> None:
    if isinstance(context.engine, Messaging):
        context.engine.keep_session(held)


def is_call(tokens: Sequence[Token]) -> bool:
    """Whether a statement is such a query."""
    return spoken().has_own_statements and call_of(tokens) is not None
