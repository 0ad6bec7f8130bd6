"""Parameters that a text has in several places, in a language that gives each one type.

PostgreSQL finds the type of a parameter where it meets it first, and converts its value wherever
it stands again. Here every place is evaluated by itself, so each says the type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count

from louver import errors
from louver.names import keyword
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.postgres_types import own_type
from louver.trusted.planner.sql.tokenizer import lexemes

_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES")
#: What the engine says where it finds no type.
_UNTYPED = own_type("VARCHAR")
_MOST_TEXTS = 256


class _Texts(dict[tuple[str, int, tuple[str, ...]], lexer.Text]):
    """Texts that say the types, by those that do not, and what names mean there."""


def said_once(context: Context, text: lexer.Text) -> lexer.Text:
    """The same text, in which each place of a parameter that has several says its type.

    Raises:
        errors.Error: the engine's own, where it finds no type that fits all places.
    """
    places = Counter(text.parameters)
    if len(places) == len(text.parameters) or not text.parameters:
        return text
    first = lexer.tokens(text.plain)[:1]
    if not first or keyword(first[0].text) not in _VERBS:
        return text
    known = context.state.cache(_Texts)
    key = (text.home, context.local.revision, context.catalog.path)
    if key not in known:
        if len(known) >= _MOST_TEXTS:
            known.pop(next(iter(known)))
        known[key] = _typed(context, text, places)
    return known[key]


def _are_alike(context: Context, text: lexer.Text, types: Sequence[str]) -> bool:
    """Whether each place would have its parameter's type also by itself."""
    numbers = count(1)
    apart = "".join(
        f"${next(numbers)}" if match is not None and match["numbered"] else piece
        for match, piece in lexemes(text.home)
    )
    try:
        alone, _ = context.local.statements.prepared(apart, ())
    except errors.Error:
        return False
    return list(alone) == [types[int(number) - 1] for number in text.parameters]


def _typed(context: Context, text: lexer.Text, places: Counter[int | str]) -> lexer.Text:
    types, columns = context.local.statements.prepared(text.home, ())
    if _are_alike(context, text, types):
        return text
    # Where the engine finds none, a value has the type that it brings along.
    casts = {
        str(number): f"CAST(${number} AS {types[int(number) - 1]})"
        for number, places_of_it in places.items()
        if places_of_it > 1 and types[int(number) - 1] != _UNTYPED
    }
    if not casts:
        return text
    (typed,) = lexer.split(lexer.filled(text.home, casts), frozenset())
    if typed.parameters != text.parameters:
        raise errors.make("internal", detail="a text with types has other parameters")
    # A column that is a parameter would be called by the type.
    return typed if context.local.statements.prepared(typed.home, ())[1] == columns else text
