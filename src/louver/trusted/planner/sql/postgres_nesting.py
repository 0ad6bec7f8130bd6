"""Which semicolons end a statement, in a language whose statements hold others.

As PostgreSQL's own psql decides: not one between brackets, nor one in the body of a function or
procedure that begins with BEGIN ATOMIC, in which CASE has an END too.
"""

from __future__ import annotations

import re

from louver.names import keyword

_PART = re.compile(r"[()\[\]]|[^\W\d][\w$]*")
_ROUTINES = ("FUNCTION", "PROCEDURE")


class PostgresNesting:
    """How deep a place of a text is, read piece by piece."""

    def __init__(self) -> None:
        """At the beginning of a statement."""
        self._brackets = self._bodies = self._words = 0
        #: whether the statement makes a function or a procedure, whose placeholders are arguments
        self.is_routine = False
        self._first: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a semicolon here ends no statement."""
        return self._brackets > 0 or self._bodies > 0

    def read(self, piece: str) -> None:
        """Go on behind a piece without strings, comments, placeholders and quoted names."""
        for part in _PART.findall(piece):
            if part in "([":
                self._brackets += 1
            elif part in ")]":
                self._brackets = max(self._brackets - 1, 0)
            else:
                self._word(keyword(part))

    def _word(self, word: str) -> None:
        if len(self._first) < 4:
            self._first.append(word)
            words = self._first[1:] if self._first[1:3] != ["OR", "REPLACE"] else self._first[3:]
            self.is_routine = self._first[0] == "CREATE" and words[:1] in ([k] for k in _ROUTINES)
        if not self.is_routine or self._brackets:
            return
        if word == "BEGIN" or (word == "CASE" and self._bodies):
            self._bodies += 1
        elif word == "END" and self._bodies:
            self._bodies -= 1
