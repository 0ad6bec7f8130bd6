"""Sqlglot's tokens of a text, with numbers as the local engine reads them."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from louver.trusted.planner.sql.dialect import LOCAL

_TOKENIZER = LOCAL.sqlglot.tokenizer_class
_SPLIT, _NUMBER = LOCAL.split_number, LOCAL.number


def tokenized(text: str) -> list[Token]:
    """Sqlglot's tokens, in which a number like 1_000, which it cuts into two, is one without bars.

    Raises:
        TokenError: where the text cannot be cut into tokens.
    """
    raw = list(_TOKENIZER().tokenize(text))
    if _SPLIT.search(text) is None:
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
        if token.token_type == TokenType.NUMBER:
            digits, end = _number(text, token)
        last = end
        results.append(token if end == token.end else _word(token, digits, token.start, end))
    return results


def _number(text: str, token: Token) -> tuple[str, int]:
    """The digits of the number that begins with a token, and where it ends."""
    number = _NUMBER.match(text, token.start)
    if number is None or "_" not in number[0]:
        return token.text, token.end
    return number[0].replace("_", ""), number.end() - 1


def _moved(token: Token, by: int) -> Token:
    return _word(token, token.text, token.start + by, token.end + by)


def _word(token: Token, text: str, start: int, end: int) -> Token:
    return Token(token.token_type, text, token.line, token.col, start, end, token.comments)
