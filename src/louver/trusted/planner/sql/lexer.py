"""Tokens of a statement: splitting, placeholders made safe, and the shape that plans are cached by.

sqlglot reads ``$1,$2`` as a dollar quote, so placeholders become plain identifiers before it sees
the text; the text that runs locally keeps them as the user wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar, overload

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner.sql.dialect import Dialect, spoken
from louver.trusted.planner.sql.tokenizer import lexemes, tokenized

Done = TypeVar("Done")
PARAMETER_PREFIX = "louver_parameter_"
_LONGEST_KEPT, LONGEST_SPLIT = 4096, 262_144
"""Characters of a text with placeholders that is cut into tokens once, and into statements: INSERT
of a thousand rows is a long one.
"""

_WRITTEN_OUT = re.compile(r"'|(?<![\w$])\d")


@dataclass(frozen=True, slots=True)
class Text:
    """One statement.

    ``home`` is what the local DuckDB runs; ``plain`` is what sqlglot reads, in which every
    placeholder is an identifier and every comment is blank, for sqlglot does not know GROUP BY
    where one stands between the words; ``parameters`` are the keys of the placeholders in order:
    an integer (1-based) for ``?`` and ``$1``, a string for ``$name`` and ``:name``. A session runs
    texts of its own ``dialect`` only.
    """

    home: str
    plain: str
    parameters: tuple[int | str, ...]
    dialect: Dialect = field(default_factory=spoken)


def split(sql: str, names: frozenset[str] = frozenset()) -> list[Text]:
    """Cut a text into statements. ``names`` are the keys of the parameters given by name:
    only these make ``:name`` a placeholder, since ``:`` also stands in slices and structs.
    """
    if not ("?" in sql or "$" in sql or names) or not comes_again(sql, LONGEST_SPLIT):
        return _split(sql, names)
    return list(_split_again(sql, names))


def comes_again(text: str, longest: int = _LONGEST_KEPT) -> bool:
    """Whether what is found out about a text with placeholders is worth its memory."""
    return len(text) <= longest


def cached(function: Callable[..., Done]) -> Callable[..., Done]:
    """What a function finds out about a text, of many short ones and of few long ones. The text is
    its first argument, and the language that is spoken the second. Texts with constants may come
    once only, and push out no others.
    """
    short, long, written = lru_cache(256)(function), lru_cache(8)(function), lru_cache(16)(function)

    def known(text: str, *more: object) -> Done:
        if len(text) > _LONGEST_KEPT:
            return long(text, spoken(), *more)
        return (written if _WRITTEN_OUT.search(text) else short)(text, spoken(), *more)

    return known


@cached
def _split_again(sql: str, _: Dialect, names: frozenset[str]) -> tuple[Text, ...]:
    return tuple(_split(sql, names))


def _split(sql: str, names: frozenset[str]) -> list[Text]:
    statements: list[Text] = []
    home: list[str] = []
    plain: list[str] = []
    parameters: list[int | str] = []
    numbered, dialect = 0, spoken()
    nesting = dialect.nesting()

    def close() -> None:
        nonlocal numbered, nesting
        is_routine = nesting is not None and nesting.is_routine
        numbered, nesting = 0, dialect.nesting()
        text = "".join(home)
        if _has_words(text):
            # The placeholders of what is prepared get their values later, by EXECUTE; those of a
            # function are its arguments.
            keys = () if is_routine or _PREPARE.match(text) else tuple(parameters)
            blanks = dialect.blanks
            ends = text.strip(blanks), "".join(plain).strip(blanks)
            statements.append(Text(*ends, keys, dialect))
        home.clear()
        plain.clear()
        parameters.clear()

    for match, piece in lexemes(sql):
        if match is not None and match["semicolon"] and not (nesting and nesting.is_open):
            close()
            continue
        if nesting is not None and match is None and not _HIDES.match(piece):
            nesting.read(piece)
        key = None if match is None else _placeholder(match, numbered, names)
        if key is None:
            home.append(piece)
            plain.append(blanked(piece) if _is_comment(match, piece) else piece)
            continue
        home.append(piece if piece[0] != ":" else dialect.placeholder(piece[1:]))
        plain.append(f" {PARAMETER_PREFIX}{len(parameters)} ")
        parameters.append(key)
        numbered += isinstance(key, int)
    close()
    return statements


def _placeholder(match: re.Match[str], numbered: int, names: frozenset[str]) -> int | str | None:
    """The key of a placeholder, behind so many ``numbered`` ones."""
    if match["question"]:
        return numbered + 1
    if match["numbered"]:
        return int(match["numbered"][1:])
    if match["named"]:
        return match["named"][1:]
    if match["colon"] and match["colon_name"] in names:
        return match["colon_name"]
    return None


def filled(sql: str, texts: Mapping[str, str]) -> str:
    """A statement with texts in the place of some placeholders, by folded name or number."""
    pieces: list[str] = []
    numbered = 0
    for match, piece in lexemes(sql):
        key = None if match is None else _placeholder(match, numbered, frozenset())
        if key is None:
            pieces.append(piece)
            continue
        numbered += isinstance(key, int)
        pieces.append(texts.get(fold(str(key)), spoken().placeholder(key)))
    return "".join(pieces)


def renumbered(text: str, after: int) -> str:
    """The same text with placeholders that follow so many others: `$1` is `$3` after two."""
    return _renumbered(spoken(), text, after) if after else text


@lru_cache(maxsize=1024)
def _renumbered(dialect: Dialect, text: str, after: int) -> str:
    return "".join(
        dialect.placeholder(int(match["numbered"][1:]) + after)
        if match is not None and match["numbered"]
        else piece
        for match, piece in lexemes(text)
    )


_PREPARE = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*PREPARE\b", re.IGNORECASE | re.DOTALL)
#: A comment, or what stands between dollar quotes.
_HIDES = re.compile(r"/\*|\$.*\$\Z", re.DOTALL)


def _has_words(text: str) -> bool:
    """Whether a text holds more than comments and blanks."""
    blanks = spoken().blanks
    pieces = (piece for match, piece in lexemes(text) if not _is_comment(match, piece))
    return any(piece.strip(blanks) for piece in pieces)


def _is_comment(match: re.Match[str] | None, piece: str) -> bool:
    return piece.startswith("/*") if match is None else match["comment"] is not None


def without_comments(sql: str) -> str:
    """A text with blanks in the place of comments."""
    return "".join(
        blanked(piece) if _is_comment(match, piece) else piece for match, piece in lexemes(sql)
    )


def blanked(comment: str) -> str:
    """What stands for a comment where no one but a parser reads: as many blanks."""
    return " " * len(comment)


def tokens(text: str) -> list[Token]:
    """Sqlglot's tokens of a text; raises ``sql.syntax`` where it cannot be cut into tokens."""
    again = PARAMETER_PREFIX in text and comes_again(text)
    return list(_tokens_again(text)) if again else _tokens(text)


@cached
def _tokens_again(text: str, _: Dialect) -> tuple[Token, ...]:
    return tuple(_tokens(text))


def _tokens(text: str) -> list[Token]:
    try:
        return tokenized(text)
    except TokenError as error:
        raise errors.make("sql.syntax", detail=str(error)) from None


def every_token(text: str) -> tuple[Token, ...]:
    """The tokens of a statement, those behind the first from there on: sqlglot takes the rest of
    some statements for one text.
    """
    (first, *_) = tokens(text)
    return first, *tokens(text[first.end + 1 :])


def between(text: str, parts: Sequence[Token]) -> str:
    """What stands between the tokens of a text, blanks apart: nothing but comments can."""
    pieces, position = [], 0
    for token in parts:
        pieces.append(text[position : token.start])
        position = token.end + 1
    return "".join([*pieces, text[position:]]).strip()


def words(parts: Sequence[Token], count: int = 3) -> list[str]:
    """The first tokens in upper case, which tell the kind of a statement."""
    return [keyword(token.text) for token in parts[:count]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What two statements share that differ in their numbers only.

    ``key`` is the text with every number replaced by its class; ``literals`` are the numbers in
    the order of the text and ``starts`` their places in it.
    """

    key: str
    literals: tuple[str, ...]
    starts: tuple[int, ...]


def shape(text: str, parts: Sequence[Token]) -> Shape:
    """The shape of a statement, from its tokens."""
    pieces: list[str] = []
    literals: list[str] = []
    starts: list[int] = []
    position = 0
    for token in parts:
        if token.token_type != TokenType.NUMBER:
            continue
        pieces.append(text[position : token.start])
        pieces.append(literal_class(token.text))
        literals.append(token.text)
        starts.append(token.start)
        position = token.end + 1
    pieces.append(text[position:])
    return Shape("".join(pieces), tuple(literals), tuple(starts))


class Values(Sequence[object]):
    """The values of a statement's placeholders, which note whose value was looked at: a plan holds
    for any other text in the place of one that was not.
    """

    def __init__(self, values: Sequence[object]) -> None:
        """None was looked at."""
        self._values = values
        self.seen: set[int] = set()

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        """A value, which is seen by that."""
        self.seen.update(range(len(self))[index] if isinstance(index, slice) else (index,))
        return self._values[index]

    def is_text(self, index: int) -> bool:
        """Whether a value is a text of which `with_parameters` keeps no more in the shape."""
        return is_open_text(self._values[index])

    def typed(self, index: int) -> object:
        """A value of the type, and of no other likeness to the value of a text."""
        return "" if self.is_text(index) else self[index]


MARKS = frozenset("⟪⟫⟦⟧")
"""The planner's own marks in texts that it has not printed yet."""
#: No text of DuckDB's holds a NUL.
_UNOPENED = MARKS | {"\0"}


def is_open_text(value: object) -> bool:
    """Whether a bound value is a text that may stand open in a plan."""
    return type(value) is str and _UNOPENED.isdisjoint(value)


def with_parameters(of: Shape, values: Sequence[object]) -> Shape:
    """The shape with bound values as further numbers: whole numbers by class, texts as DuckDB's
    constants, others as they are, so that two calls share a plan where only whole numbers of one
    class differ, or texts that the plan holds for whatever they are.
    """
    pieces = [of.key]
    literals = list(of.literals)
    string = spoken().string
    for value in values:
        if is_open_text(value):
            literals.append(string(str(value)))
            pieces.append("\x02str")
            continue
        literals.append(str(value) if isinstance(value, int) else "")
        if isinstance(value, int) and not isinstance(value, bool):
            sign = "-" if value < 0 else "+"
            pieces.append(f"\x02{sign}{literal_class(str(abs(value)))}")
        else:
            pieces.append(f"\x02{type(value).__name__}={value!r}")
    return Shape("".join(pieces), tuple(literals), of.starts)


_LIMITS = frozenset(1 << bits for bits in (7, 15, 31, 63))


def literal_class(number: str) -> str:
    """Numbers of one class may stand for each other in a plan: same type, same width, both
    zero or both not, so that what was proved of one holds for the other.
    """
    if not number.isdigit():
        whole, _, fraction = number.partition(".")
        if whole.isdigit() and fraction.isdigit():
            nonzero = "d" if int(whole + fraction) else "z"
            return f"\x01{nonzero}{len(whole)}.{len(fraction)}\x01"
        return f"\x01={number}\x01"
    value = int(number)
    if value == 0:
        return "\x010\x01"
    if value in _LIMITS:
        # Behind a minus this is a smaller type's last number, by itself a larger type's first.
        return f"\x01={value}\x01"
    return f"\x01i{literal_bits(value)}\x01"


def literal_bits(value: int) -> int:
    """The width class of a whole number: the bits of the smallest SQL integer that holds it."""
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        if value < 1 << bits:
            return bits
    return 127
