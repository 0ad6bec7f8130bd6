"""DuckDB's errors in the words of the user's statement.

The local engine runs some statements in another form: a change as a dry run, a description as a
query of its answer. The position that DuckDB shows is then one in a text that the user never wrote.
It is moved to the user's own text, or left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from louver import errors
from louver.trusted.planner.sql import lexer

_EXCERPT = re.compile(r"\n\nLINE \d+: (?P<shown>[^\n]*)(?:\n(?P<blanks> *)\^)?")
_HEAD = re.compile(r"LINE \d+: ")
_TIME_TRAVEL = "does not support time travel"
#: A shorter piece may occur elsewhere in the statement.
_LEAST_CHARACTERS = 3
#: The errors of statements that may have a misspelled keyword: DuckDB's, and Louver's own.
_UNPARSED = ("duckdb.parser", "duckdb.syntax")
_UNREAD = ("sql.syntax", "sql.unsupported")


@contextmanager
def in_own_words(text: lexer.Text) -> Iterator[None]:
    """Run a statement; an error of DuckDB's shows a position in ``text`` or none, and a keyword
    that is misspelled is corrected.
    """
    try:
        yield
    except errors.Error as error:
        corrected = _corrected(text.plain) if error.code in _UNPARSED + _UNREAD else None
        if corrected is not None and error.code in _UNREAD:
            raise corrected from None
        if not error.code.startswith("duckdb."):
            raise
        if _TIME_TRAVEL in error.message:
            raise errors.make("sql.time_travel") from None
        error.message = moved(error.message, text.home)
        error.fix = corrected.fix if corrected is not None else error.fix
        error.args = (error.message,)
        raise


def _corrected(text: str) -> errors.Error | None:
    """The error of a statement with a misspelled keyword."""
    # Imported here: few statements cannot be parsed.
    from louver.trusted.executor.local import misspelled

    words = misspelled.meant(text)
    if words is None:
        return None
    return errors.make("sql.misspelled", word=words[0], close=words[1])


def moved(message: str, text: str) -> str:
    """The message with its excerpt taken from ``text``."""
    match = _EXCERPT.search(message)
    if match is None:
        return message
    shown = match["shown"]
    if shown.strip(". ") in text:
        return message
    head = _HEAD.search(message, match.start())
    column = len(match["blanks"] or "") - (head.end() - head.start() if head else 0)
    position = _position(text, shown[column:]) if match["blanks"] and column >= 0 else None
    excerpt = "" if position is None else _excerpt(text, position)
    return message[: match.start()] + excerpt + message[match.end() :]


def _position(text: str, rest: str) -> int | None:
    """Where the rest of a rewritten line begins in the user's text, if that is certain."""
    rest = rest.removesuffix("...").rstrip()
    while len(rest) >= _LEAST_CHARACTERS:
        if text.count(rest) == 1:
            return text.index(rest)
        if rest in text or not rest.endswith((")", ";", '"', "'")):
            return None
        # What was put around the statement ends here.
        rest = rest[:-1].rstrip()
    return None


def _excerpt(text: str, position: int) -> str:
    """The line of a position, with a mark below it."""
    start = text.rfind("\n", 0, position) + 1
    number = text.count("\n", 0, position) + 1
    line = text[start:].partition("\n")[0]
    head = f"LINE {number}: "
    return f"\n\n{head}{line}\n{' ' * (len(head) + position - start)}^"
