"""Where rows end in the data of COPY … FROM STDIN, in text, csv and binary format.

What the values are only PostgreSQL's own COPY reads; a stream is cut between rows so that no more
of it is held than a batch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from louver._rust import postgres
from louver.trusted.executor.postgres.messages import said

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_FIXED_BYTES = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"
_LONGEST_BYTES = 1 << 30
_NEWLINE, _BACKSLASH = 10, 92
#: A line that ends the data, and the end of a line that is part of a value.
_END = re.compile(rb"(?:\A|\n)\\\.\r?\n")
_ESCAPED = re.compile(rb"(?<!\\)(?:\\\\)*\\\n")


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
        """Data is cut when there are so many bytes."""
        self._form, self._batch_bytes = form, batch_bytes
        self._held = bytearray()
        #: how far it was looked at, and the end of the last whole row
        self._at = self._end = 0
        #: what goes before every batch
        self.head = b""
        self._in_quotes = self._escaped = self._done = False

    def add(self, data: bytes) -> list[bytes]:
        """Take data in; the batches that are whole now."""
        if self._done:
            return []
        self._held += data
        if len(self._held) < self._batch_bytes:
            return []
        self._look()
        return [self._cut()] if self._end else []

    def rest(self) -> bytes:
        """The last batch, with whatever does not end a row."""
        if not self._done:
            self._look()
        if not self._done:
            self._end = len(self._held)
        return self._cut(last=True) if self._end else b""

    def _look(self) -> None:
        """Find the end of the last row, and that of the first line if that is a header."""
        form = self._form
        if form.name == "binary":
            self._look_at_fields()
            return
        is_csv = form.name == "csv"
        if form.header and not self.head:
            self._look_at_quotes() if is_csv else self._look_at_first()
            if not self.head:
                return
        if not is_csv:
            self._look_at_lines()
        elif form.escape == form.quote:
            self._look_at_pairs()
        else:
            self._look_at_quotes()

    def _cut(self, *, last: bool = False) -> bytes:
        batch = self.head + bytes(self._held[: self._end])
        del self._held[: self._end]
        self._at = max(self._at - self._end, 0)
        self._end = 0
        if self._form.name == "binary":
            ended = self._done or (last and batch.endswith(_TRAILER))
            return batch if ended or last else batch + _TRAILER
        return batch

    def _take_head(self, end: int) -> None:
        """What goes before every batch is not a row."""
        self.head = bytes(self._held[:end])
        del self._held[:end]
        self._at = self._end = 0

    def _look_at_first(self) -> None:
        at = self._held.find(b"\n", self._at)
        while at >= 0 and self._is_escaped(at):
            at = self._held.find(b"\n", at + 1)
        if at >= 0:
            self._take_head(at + 1)

    def _is_escaped(self, at: int) -> bool:
        """Whether a line feed is part of a value, being behind a backslash that is not."""
        held, start = self._held, at
        while start and held[start - 1] == _BACKSLASH:
            start -= 1
        return (at - start) % 2 == 1

    def _look_at_lines(self) -> None:
        held, at = self._held, len(self._held)
        while (at := held.rfind(b"\n", self._at, at)) >= 0 and self._is_escaped(at):
            pass
        self._at = len(held)
        if at < 0:
            return
        self._end = at + 1
        match = _END.search(held, 0, self._end) if b"\\." in held else None
        if match is not None:
            self._done, self._end = True, match.end()

    def _look_at_pairs(self) -> None:
        """Where quotes are escaped by quotes, a row ends behind an even number of them."""
        held, quote, at = self._held, self._form.quote, len(self._held)
        ends_within = self._in_quotes != (held.count(quote, self._at) % 2 == 1)
        is_within, last = ends_within, at
        while (at := held.rfind(b"\n", self._at, at)) >= 0:
            is_within ^= held.count(quote, at, last) % 2 == 1
            last = at
            if not is_within:
                self._end = at + 1
                break
        self._at, self._in_quotes = len(held), ends_within

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
                if form.header and not self.head:
                    self._take_head(self._at)
                    return
                self._end = self._at
        if self._at != len(self._held):
            self._escaped, self._at = False, len(self._held)

    def _look_at_fields(self) -> None:
        held = self._held
        if not self.head:
            if len(held) < _FIXED_BYTES:
                return
            more = int.from_bytes(held[_FIXED_BYTES - 4 : _FIXED_BYTES], "big")
            if not held.startswith(_SIGNATURE) or more > _LONGEST_BYTES:
                raise said("22P04", "COPY file signature not recognized")
            if len(held) < _FIXED_BYTES + more:
                return
            self._take_head(_FIXED_BYTES + more)
        self._end, self._done = postgres.rows_end(bytes(held))


def uncounted_lines(form: Format, batch: bytes) -> int:
    """The line feeds within the first row of data without a header, which PostgreSQL does not count
    as lines: it does not know yet what ends one.
    """
    if form.name != "csv" or form.header:
        return 0
    lines, within, last = 0, False, 0
    while (at := batch.find(b"\n", last)) >= 0:
        within ^= batch.count(form.quote, last, at) % 2 == 1
        if not within:
            break
        lines, last = lines + 1, at + 1
    return lines


def lines_of(form: Format, batch: bytes, head_bytes: int, rows: int) -> int:
    """How many lines a batch has behind its head, as PostgreSQL counts them; binary rows are."""
    if form.name == "binary":
        return rows
    lines = batch.count(b"\n", head_bytes)
    if form.name != "csv" and b"\\\n" in batch:
        lines -= len(_ESCAPED.findall(batch, head_bytes))
    return lines
