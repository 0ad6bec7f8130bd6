"""UPDATE … SET a[1] = value: what the column depends on then.

The statement has no tree, so it is judged, and its rows are chosen, by one that has: the column is
set to something of itself, the subscripts and the value. What runs is the user's own text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from louver import errors
from louver.trusted.executor.change.statement_parts import Words
from louver.trusted.planner.sql import lexer

_ENDS = ("FROM", "WHERE", "RETURNING")


def judged(words: Words, verb: int) -> Words:
    """The statement that stands for one with subscripts on the left; the same of any other. Its
    literals and placeholders are the same, in the same order.
    """
    start = words.find("SET", verb) + 1
    if words.keyword(verb) != "UPDATE" or not start:
        return words
    plain, copied = "", words.tokens[start].start
    for name, items in groupby(_items(words, start), key=lambda item: _name(words, *item[:2])):
        parts = [*items]
        if not name:
            continue
        if f"{name} = CASE WHEN (" in plain:
            statement = "UPDATE that sets parts of a column, and others between them,"
            raise errors.make("sql.unsupported", statement=statement)
        pieces = [piece for item in parts for piece in _pieces(words, *item)]
        conditions = " OR ".join(f"{piece} IS NULL" for piece in pieces)
        plain += words.plain[copied : words.tokens[parts[0][0]].start]
        plain += f"{name} = CASE WHEN {conditions} THEN {name} END"
        copied = words.tokens[parts[-1][2] - 1].end + 1
    if not plain:
        return words
    plain = f"{words.plain[: words.tokens[start].start]}{plain}{words.plain[copied:]}"
    return Words(plain, lexer.tokens(plain), words.parameters)


def _opened(words: Words, first: int, equals: int) -> int:
    return next((p for p in range(first, equals) if words.tokens[p].text == "["), -1)


def _name(words: Words, first: int, equals: int) -> str:
    """The column that an assignment sets a part of; "" where it sets all of one."""
    opened = _opened(words, first, equals)
    return words.plain[words.tokens[first].start : words.tokens[opened].start] if opened > 0 else ""


def _pieces(words: Words, first: int, equals: int, last: int) -> list[str]:
    """The subscripts of an assignment, and its value."""
    opened = _opened(words, first, equals)
    return [*_subscripts(words, opened, equals), f"({_text(words, equals + 1, last)})"]


def _text(words: Words, first: int, last: int) -> str:
    return words.plain[words.tokens[first].start : words.tokens[last - 1].end + 1]


def _items(words: Words, start: int) -> Iterator[tuple[int, int, int]]:
    """The assignments of SET: where each begins, where its sign is, and where it ends."""
    depth, first, equals = 0, start, -1
    for position in range(start, len(words.tokens) + 1):
        symbol = words.tokens[position].text if position < len(words.tokens) else ""
        ends = position == len(words.tokens) or (depth == 0 and words.keyword(position) in _ENDS)
        if ends or (depth == 0 and symbol == ","):
            if equals > 0:
                yield first, equals, position
            first, equals = position + 1, -1
        if ends:
            return
        depth += (symbol in ("(", "[")) - (symbol in (")", "]"))
        if depth == 0 and symbol == "=" and equals < 0:
            equals = position


def _subscripts(words: Words, opened: int, equals: int) -> Iterator[str]:
    """What is between brackets, and the parts of slices."""
    depth, first = 0, opened + 1
    for position in range(opened, equals):
        symbol = words.tokens[position].text
        if depth == 1 and symbol in ("]", ":"):
            if first < position:
                yield f"({_text(words, first, position)})"
            first = position + 1
        depth += (symbol in ("(", "[")) - (symbol in (")", "]"))
        if symbol == "[" and depth == 1:
            first = position + 1
