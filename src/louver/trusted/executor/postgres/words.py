"""The words of a statement that Louver reads by itself, against PostgreSQL's grammar of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer

_COMMANDS = (TokenType.COMMAND, TokenType.EXECUTE, TokenType.FETCH, TokenType.SHOW)


class Words:
    """Tokens from the second on, read one after the other."""

    def __init__(self, context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
        """The parser of trees takes the rest of some statements for one text, so it is cut anew."""
        self._context, self._text = context, text
        self._start = tokens[0].end + 1
        self._tokens = _cut(text.plain[self._start :])
        self._at = 0

    @classmethod
    def copied(cls, other: Words) -> Words:
        """The same words, of which no more was read."""
        words = cls.__new__(cls)
        words.__dict__.update(other.__dict__)
        return words

    @property
    def done(self) -> bool:
        """Whether all were read."""
        return self._at >= len(self._tokens)

    def peek(self) -> str:
        """The next word in upper case; "" at the end, and for what is quoted."""
        if self.done:
            return ""
        token = self._tokens[self._at]
        quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        return "" if quoted else keyword(token.text)

    def takes(self, *words: str) -> bool:
        """Whether these words follow, which are read then."""
        before = self._at
        for word in words:
            if self.peek() != word:
                self._at = before
                return False
            self._at += 1
        return True

    def needs(self, *words: str) -> None:
        """Read these words."""
        if not self.takes(*words):
            self.wrong()

    def token(self) -> Token:
        """Read one token."""
        if self.done:
            self.wrong()
        self._at += 1
        return self._tokens[self._at - 1]

    def name(self) -> str:
        """Read a name, as PostgreSQL folds it."""
        token = self.token()
        if token.token_type == TokenType.IDENTIFIER:
            return token.text
        if token.token_type == TokenType.STRING or not _is_word(token.text):
            self.wrong()
        return fold(token.text)

    def number(self) -> int | None:
        """Read a whole number with its sign, if one follows."""
        before = self._at
        sign = -1 if self.takes("-") else 1
        if sign > 0:
            self.takes("+")
        if not self.done and self._tokens[self._at].text.isdecimal():
            return sign * int(self.token().text)
        self._at = before
        return None

    def rest(self) -> str:
        """The text of what was not read, as the user wrote it; no placeholder precedes it."""
        if self.done:
            return ""
        at = self._start + self._tokens[self._at].start
        self._at = len(self._tokens)
        return self._text.home[at:]

    def brackets(self) -> list[str]:
        """Read what stands between brackets, if they follow: the texts between commas."""
        if not self.takes("("):
            return []
        results, depth, first = list[str](), 0, self._at
        while True:
            token = self.token()
            if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
                continue
            depth += (token.text in "([") - (token.text in ")]")
            if depth < 0 or (depth == 0 and token.text == ","):
                results.append(self._between(first, self._at - 1))
                first = self._at
            if depth < 0:
                return results

    def _between(self, first: int, last: int) -> str:
        if first >= last:
            self.wrong()
        start, end = self._tokens[first].start, self._tokens[last - 1].end + 1
        return self._text.home[self._start + start : self._start + end]

    def ends(self) -> None:
        """Nothing follows."""
        if not self.done:
            self.wrong()

    def wrong(self) -> NoReturn:
        """PostgreSQL's own error for what it cannot read; what it can is refused."""
        self._context.local.statements.require_syntax(self._text.home)
        refuse(" ".join(self._text.plain.split()[:3]))


def _cut(text: str) -> list[Token]:
    """The tokens of a text; one that may begin a statement has hidden the words behind it."""
    tokens = lexer.tokens(text)
    if not tokens or tokens[0].token_type not in _COMMANDS:
        return tokens
    first, start = tokens[0], tokens[0].end + 1
    moved = [
        Token(t.token_type, t.text, t.line, t.col, t.start + start, t.end + start, t.comments)
        for t in _cut(text[start:])
    ]
    return [first, *moved]


def refuse(statement: str) -> NoReturn:
    """Raise for what is not to be had in PostgreSQL's language."""
    raise errors.make("postgres.refused", statement=statement)


def _is_word(text: str) -> bool:
    return bool(text) and (text[0].isalpha() or text[0] == "_" or ord(text[0]) > 127)
