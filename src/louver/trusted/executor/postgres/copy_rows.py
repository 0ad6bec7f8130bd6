"""Where rows end in the data of COPY … FROM STDIN, in text, csv and binary format.

What the values are only PostgreSQL's own COPY reads; a stream is cut between rows so that no more
of it is held than a batch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from louver.trusted.executor.postgres.messages import said

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_FIXED_BYTES = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"
_LONGEST_BYTES = 1 << 30
_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Format:
    """How data is written: csv, binary, or "" for text; whether a line with names goes first, and
    what quotes and escapes in csv.
    """

    name: str = ""
    header: bool = False
    quote: int = ord('"')
    escape: int = ord('"')


class Splitter:
    """Cuts data into batches of whole rows, each of which is data of its own."""

    def __init__(self, form: Format, batch_bytes: int) -> None:
        """Batches have so many bytes at least, and a row more at most."""
        self._form, self._batch_bytes = form, batch_bytes
        self._held = bytearray()
        #: how far it was looked at, and the end of the last whole row
        self._at = self._end = 0
        self._head = b""
        self._in_quotes = self._escaped = self._done = False

    def add(self, data: bytes) -> list[bytes]:
        """Take data in; the batches that are whole now."""
        if self._done:
            return []
        self._held += data
        if self._form.name == "binary":
            self._look_at_fields()
        elif self._form.name == "csv":
            self._look_at_quotes()
        else:
            self._look_at_lines()
        return [self._cut()] if self._end >= self._batch_bytes else []

    def rest(self) -> bytes:
        """The last batch, with whatever does not end a row."""
        if not self._done:
            self._end = len(self._held)
        return self._cut(last=True) if self._end else b""

    def _cut(self, *, last: bool = False) -> bytes:
        batch = self._head + bytes(self._held[: self._end])
        del self._held[: self._end]
        self._at -= self._end
        self._end = 0
        if self._form.name == "binary":
            ended = self._done or (last and batch.endswith(_TRAILER))
            return batch if ended or last else batch + _TRAILER
        return batch

    def _take_head(self, end: int) -> None:
        """What goes before every batch is not a row."""
        self._head = bytes(self._held[:end])
        del self._held[:end]

    def _row(self, end: int) -> int:
        """A line ends here; where the next one begins."""
        if self._form.header and not self._head:
            self._take_head(end)
            self._end = 0
            return 0
        self._end = end
        return end

    def _look_at_lines(self) -> None:
        while (at := self._held.find(b"\n", self._at)) >= 0:
            if self._held[self._end : at].rstrip(b"\r") == b"\\.":
                self._done, self._end = True, at + 1
                return
            self._at = self._row(at + 1)
        self._at = len(self._held)

    def _look_at_quotes(self) -> None:
        """As PostgreSQL's reader of lines does, which knows no values either."""
        form = self._form
        escape = -1 if form.escape == form.quote else form.escape
        special = re.compile(b"[\n%s]" % re.escape(bytes((form.quote, form.escape))))
        while match := special.search(self._held, self._at):
            byte, position = match[0][0], match.start()
            if position != self._at:
                self._escaped = False
            self._at = position + 1
            if self._in_quotes and byte == escape:
                self._escaped = not self._escaped
            if byte == form.quote and not self._escaped:
                self._in_quotes = not self._in_quotes
            if byte != escape:
                self._escaped = False
            if byte == _NEWLINE and not self._in_quotes:
                self._at = self._row(self._at)
        if self._at != len(self._held):
            self._escaped, self._at = False, len(self._held)

    def _look_at_fields(self) -> None:
        held = self._held
        if not self._head:
            if len(held) < _FIXED_BYTES:
                return
            more = int.from_bytes(held[_FIXED_BYTES - 4 : _FIXED_BYTES], "big")
            if not held.startswith(_SIGNATURE) or more > _LONGEST_BYTES:
                raise said("22P04", "COPY file signature not recognized")
            if len(held) < _FIXED_BYTES + more:
                return
            self._take_head(_FIXED_BYTES + more)
        while (end := self._row_end()) > 0:
            self._at = self._end = end

    def _row_end(self) -> int:
        """The end of the binary row that begins here, 0 where it is not whole."""
        held, at = self._held, self._at
        if len(held) < at + 2:
            return 0
        fields = int.from_bytes(held[at : at + 2], "big", signed=True)
        at += 2
        if fields < 0:
            self._done, self._end = True, at
            return 0
        for _ in range(fields):
            if len(held) < at + 4:
                return 0
            at += 4 + max(int.from_bytes(held[at : at + 4], "big", signed=True), 0)
        return at if at <= len(held) else 0
