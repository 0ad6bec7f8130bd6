"""Words for the time, such as CURRENT_TIMESTAMP, in the place of a column's new value: a statement
runs with one more parameter for each, so that what runs it without Python can give it its value.

Only where such a word is all that a column is set to, by VALUES or SET, and the column is of a type
for which PostgreSQL's own cast gives the same: there a parameter has the column's type.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from louver.names import keyword
from louver.trusted.apps.pgproxy import given_values
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.wire import Wire
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.tokenizer import lexemes

DATE, TIMESTAMP, TIMESTAMPTZ = 1082, 1114, 1184
#: The types that a word may be cast to without another value.
_BARE = {
    "CURRENT_TIMESTAMP": (TIMESTAMPTZ, TIMESTAMP, DATE), "LOCALTIMESTAMP": (TIMESTAMP, DATE),
    "CURRENT_DATE": (DATE,),
}  # fmt: skip
_CALLED = dict.fromkeys(("NOW", "TRANSACTION_TIMESTAMP"), _BARE["CURRENT_TIMESTAMP"])
_WORD = re.compile(
    r"(?<![\w.\"$])(?:(?:now|transaction_timestamp)\s*\(\s*\)"
    r"|current_timestamp|localtimestamp|current_date)(?![\w\"$])",
    re.IGNORECASE,
)
_NOW = (
    "SELECT (extract(epoch FROM now()) * 1000000)::bigint - 946684800000000,"
    " (extract(epoch FROM localtimestamp) * 1000000)::bigint - 946684800000000,"
    " current_date - date '2000-01-01'"
)
_MOST = 8


@dataclass(frozen=True, slots=True)
class Timed:
    """A statement whose parameters, in the order of its text, are those of the client and of its
    words of time: ``places`` are those of their values among the client's and the moments behind
    them; ``types`` those that each word may have.
    """

    text: lexer.Text
    places: Sequence[int]
    types: Sequence[tuple[int, ...]]

    def of_places(self, given: Sequence[int]) -> list[int]:
        """The types that the client has given, by the order of the text; 0 is unknown."""
        return [given[position] if position < len(given) else 0 for position in self.places]

    def split(self, numbers: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Of the types of all parameters those of the client's, in its order, and of the words;
        None where a word has one that it may not have.
        """
        by_place = dict(zip(self.places, numbers, strict=True))
        own = len(self.places) - len(self.types)
        known = [by_place[position] for position in range(len(self.places))]
        if not all(n in types for n, types in zip(known[own:], self.types, strict=True)):
            return None
        return tuple(known[:own]), tuple(known[own:])


def timed(text: lexer.Text, tokens: Sequence[Token]) -> Timed | None:
    """A statement with parameters for its words of time; None where it has none, or has one where
    it is not a column's value.
    """
    words, count = _words(tokens), len(text.parameters)
    if not words or len(words) > _MOST:
        return None
    if sorted(map(str, text.parameters)) != sorted(map(str, range(1, count + 1))):
        return None
    pieces, places, moments = list[str](), list[int](), iter(range(count, count + len(words)))

    def placed(position: int) -> str:
        places.append(position)
        return f"${len(places)}"

    for match, piece in lexemes(text.home):
        if match is not None:
            number = match["numbered"]
            pieces.append(placed(int(number[1:]) - 1) if number else piece)
        elif piece.startswith(("/*", "$")):
            pieces.append(piece)
        else:
            pieces.append(_WORD.sub(lambda _: placed(next(moments, -1)), piece))
    (other,) = lexer.split("".join(pieces))
    every = range(count + len(words))
    if sorted(places) != [*every] or other.parameters != tuple(position + 1 for position in every):
        return None
    return Timed(other, places, [types for _, types in words])


def _words(tokens: Sequence[Token]) -> list[tuple[int, tuple[int, ...]]]:
    """The places of words of time, with the types that they may have; none where one of them is
    anything but a column's value.
    """
    is_value = {"INSERT": _in_values, "UPDATE": _in_set}.get(keyword(tokens[0].text))
    results = []
    for at, token in enumerate(tokens):
        if token.token_type == TokenType.STRING:
            continue
        word, is_called = keyword(token.text), _text(tokens, at + 1) == "("
        if token.token_type == TokenType.IDENTIFIER:
            if is_called and word in _CALLED:
                return []
            continue
        types = (_CALLED if is_called else _BARE).get(word)
        if types is None and not (is_called and word in _BARE):
            continue
        end = at + 3 if is_called else at + 1
        is_whole = not is_called or _text(tokens, at + 2) == ")"
        if types is None or is_value is None or not is_whole or not is_value(tokens, at, end):
            return []
        results.append((at, types))
    return results


def _in_values(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Whether tokens are an item of a row behind VALUES."""
    depth, is_behind = 0, False
    for token in tokens[:at]:
        depth += (token.text == "(") - (token.text == ")")
        word = keyword(token.text) if depth == 0 else ""
        if word in ("RETURNING", "ON", "SELECT"):
            return False
        is_behind |= word == "VALUES"
    framed = _text(tokens, at - 1) in "(," and _text(tokens, end) in (",", ")")
    return is_behind and depth == 1 and framed


def _in_set(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Whether tokens are all that SET gives a column."""
    depth, is_behind = 0, False
    for token in tokens[:at]:
        depth += (token.text == "(") - (token.text == ")")
        word = keyword(token.text) if depth == 0 else ""
        if word in ("WHERE", "FROM", "RETURNING"):
            return False
        is_behind |= word == "SET"
    follows = keyword(_text(tokens, end)) in ("", ",", "WHERE", "FROM", "RETURNING")
    begins = keyword(_text(tokens, at - 3)) in ("SET", ",") and _text(tokens, at - 1) == "="
    return is_behind and depth == 0 and follows and begins


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def values(
    context: Context, wire: Wire, types: Sequence[int], tokens: Sequence[Token]
) -> list[object]:
    """The values of these parameters: the time of the statement, or of the open transaction."""
    if not types:
        return []
    if context.in_transaction:
        context.fix_time(tokens)
    instant, local, day = _now(wire)
    forms = {
        TIMESTAMPTZ: struct.pack(">q", instant), TIMESTAMP: struct.pack(">q", local),
        DATE: struct.pack(">i", day),
    }  # fmt: skip
    return [given_values.value(forms[type_], 1, type_, wire.printed) for type_ in types]


def are_utc(wire: Wire, types: Sequence[int]) -> bool:
    """Whether values of these types are known without the zone of the session."""
    return all(type_ == TIMESTAMPTZ for type_ in types) or wire.is_printed(TIMESTAMPTZ)


def _now(wire: Wire) -> tuple[int, int, int]:
    instant, local, day = wire.row(_NOW)
    return int(instant), int(local), int(day)
