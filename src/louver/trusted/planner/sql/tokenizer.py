"""Sqlglot's tokens of a text, with numbers as the local engine reads them."""

from __future__ import annotations

import re

from sqlglot.tokens import Token, TokenType

from louver.trusted.planner.sql.dialect import spoken

#: What sqlglot takes for a number, or for bits.
_NUMBERS = (TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING)
_HAS_BASE = re.compile("0[xXoObB]")


def tokenized(text: str) -> list[Token]:
    """Sqlglot's tokens, in which a number like 1_000, which it cuts into two, is one without bars,
    and 1e1+1, which it takes for one, are two and a sign.

    Raises:
        TokenError: where the text cannot be cut into tokens.
    """
    dialect = spoken()
    raw = list(dialect.sqlglot.tokenizer_class().tokenize(text))
    if dialect.words is not None:
        raw = dialect.words(text, raw)
    if dialect.split_number.search(text) is None:
        return raw
    results: list[Token] = []
    last = -1
    for token in raw:
        if token.start <= last <= token.end and token.end > last:
            # What follows a number without a blank is another word.
            rest = tokenized(text[last + 1 :])
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
            return [*results, *(_moved(word, end + 1) for word in tokenized(text[end + 1 :]))]
    return results


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
