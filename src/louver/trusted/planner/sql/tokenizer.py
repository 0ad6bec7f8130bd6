"""Sqlglot's tokens of a text, with numbers as the local engine reads them."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Iterator

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from louver.trusted.planner.sql.dialect import Dialect, spoken

# What it warns of quotes the statement, with the values in it.
logging.getLogger("sqlglot").disabled = True

#: What sqlglot takes for a number, or for bits.
_NUMBERS = (TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING)
#: What may look like the beginning of a dollar quote.
_TAG = re.compile(r"\$\d+[^\s$]+\$")
_FENCE = re.compile(r"/\*|\*/")
#: Controls of ASCII that are blanks to Python.
_CONTROL = re.compile(r"[\x1c-\x1f]")
#: Where letters that no text has begin, which stand for blanks that are letters.
_LETTERS = 0xF0000
_HAS_BASE = re.compile("0[xXoObB]")


def tokenized(text: str) -> list[Token]:
    """Sqlglot's tokens, in which a number like 1_000, which it cuts into two, is one without bars,
    and 1e1+1, which it takes for one, are two and a sign; of ``($1,$2)``, in which it sees the tag
    of a dollar quote, each placeholder is one.

    Raises:
        TokenError: where the text cannot be cut into tokens.
    """
    if _TAG.search(text) is None:
        return _tokenized(text)
    parts, blanks, length = [], list[int](), 0
    for match, part in lexemes(text):
        is_placeholder = match is not None and match["numbered"] is not None
        parts.append(f"{part} " if is_placeholder else part)
        length += len(parts[-1])
        if is_placeholder:
            blanks.append(length)
    tokens = _tokenized("".join(parts))
    return [_moved(token, -bisect_right(blanks, token.start)) for token in tokens]


def _tokenized(text: str) -> list[Token]:
    dialect = spoken()
    raw = _raw(dialect, text)
    if dialect.words is not None:
        raw = dialect.words(text, raw)
    if dialect.split_number.search(text) is None:
        return raw
    results: list[Token] = []
    last = -1
    for token in raw:
        if token.start <= last <= token.end and token.end > last:
            # What follows a number without a blank is another word.
            rest = _tokenized(text[last + 1 :])
            return [*results, *(_moved(word, last + 1) for word in rest)]
        if token.start <= last:
            continue
        digits, end = token.text, token.end
        if token.token_type in _NUMBERS and text[token.start].isdigit():
            digits, end = _number(text, token)
        last = end
        same = end == token.end and digits == token.text
        results.append(token if same else _word(token, digits, token.start, end))
        if end < token.end:
            return [*results, *(_moved(word, end + 1) for word in _tokenized(text[end + 1 :]))]
    return results


def _raw(dialect: Dialect, text: str) -> list[Token]:
    """Sqlglot's own tokens; what it takes for a blank and the engine for a letter is one."""
    tokenizer = dialect.sqlglot.tokenizer_class()
    if text.endswith("'") and "$" in text:
        # Once it has looked for the end of a dollar quote in vain, it sees no other end behind ''.
        text += " "
    if dialect.blanks is None or (text.isascii() and _CONTROL.search(text) is None):
        return list(tokenizer.tokenize(text))
    letters = {
        ord(sign): chr(_LETTERS + ord(sign))
        for sign in set(text)
        if sign.isspace() and sign not in dialect.blanks
    }
    if not letters:
        return list(tokenizer.tokenize(text))
    if not set(letters.values()).isdisjoint(text):
        raise TokenError("a blank beside the letter that stands for it")
    back = {ord(letter): chr(sign) for sign, letter in letters.items()}
    tokens = tokenizer.tokenize(text.translate(letters))
    return [
        _word(token, token.text.translate(back), token.start, token.end, token.token_type)
        for token in tokens
    ]


def _number(text: str, token: Token) -> tuple[str, int]:
    """The digits of the number that begins with a token, and where it ends."""
    number = spoken().number.match(text, token.start)
    if number is None:
        return token.text, token.end
    digits = number[0].replace("_", "")
    return str(int(digits, 0)) if _HAS_BASE.match(digits) else digits, number.end() - 1


def _moved(token: Token, by: int) -> Token:
    return _word(token, token.text, token.start + by, token.end + by, token.token_type)


def _word(
    token: Token, text: str, start: int, end: int, kind: TokenType = TokenType.NUMBER
) -> Token:
    return Token(kind, text, token.line, token.col, start, end, token.comments)


def lexemes(sql: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """A text from its beginning to its end: what hides nothing, or stands between dollar quotes, as
    it is, and each other lexeme with its match.
    """
    position, lexeme = 0, spoken().lexeme
    while (match := lexeme.search(sql, position)) is not None:
        if position < match.start():
            yield None, sql[position : match.start()]
        position = match.end()
        if match["block"]:
            position = _end_of_comment(sql, position)
            yield None, sql[match.start() : position]
        elif match["dollar"]:
            end = sql.find(match["dollar"], position)
            position = len(sql) if end < 0 else end + len(match["dollar"])
            yield None, sql[match.start() : position]
        else:
            yield match, match[0]
    if position < len(sql):
        yield None, sql[position:]


def _end_of_comment(sql: str, position: int) -> int:
    """The end of a comment that is open at a position; comments may stand within comments."""
    depth, deeper = 1, int(spoken().nests_comments)
    while depth and (fence := _FENCE.search(sql, position)) is not None:
        depth += deeper if fence[0] == "/*" else -1
        position = fence.end()
    return len(sql) if depth else position
