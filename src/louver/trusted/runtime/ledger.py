"""The leakage ledger: everything a server has been shown, recorded before it is sent.

Each record is sealed under its sequence number and holds the hash of all records before it, so
a record that is forged, moved, dropped or repeated is noticed; the pin at home notices a
ledger that was cut short. Records are appended on a side connection and committed at once.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from louver import errors
from louver.trusted.vault.pin import Keys, Pin, PinState
from louver.untrusted.engines.engine import Engine, lost_race
from louver.wire import control
from louver.wire.messages import Statement

#: Lowest first: what a server may end up knowing of a column.
LEVELS: tuple[str, ...] = ("size", "access", "equality", "order", "plaintext")
_PURPOSE = "ledger"
_START = "0" * 64
_ATTEMPTS = 32

TABLE_SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        ("when", pa.timestamp("us", tz="UTC")),
        ("table_name", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("level", pa.string()),
        ("kind", pa.string()),
        ("reveals", pa.string()),
        ("statement", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a server knows: of which columns, how much, in a word and a sentence."""

    table: str
    columns: tuple[str, ...]
    level: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Entry:
    sequence: int
    when: datetime.datetime
    statement: str


class Ledger:
    """All facts revealed so far about the columns of one database."""

    def __init__(self, engine: Engine, keys: Keys, pin: Pin) -> None:
        """Read and verify the ledger over `engine`, a side connection of its own."""
        self._engine = engine
        self._keys = keys
        self._pin = pin
        self._facts: dict[Fact, _Entry] = {}
        self._levels: dict[tuple[str, str], int] = {}
        self._length = 0
        self._head = _START
        self._create()
        self.refresh()

    @property
    def length(self) -> int:
        """The number of records."""
        return self._length

    @property
    def head(self) -> str:
        """The hash over all records: two clients that see the same ledger see the same hash."""
        return self._head

    def facts(self) -> list[Fact]:
        """Every fact, in the order in which it was revealed."""
        return list(self._facts)

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        """Those of `facts` that the server does not know yet, each once."""
        return [fact for fact in dict.fromkeys(facts) if fact not in self._facts]

    def level(self, table: str, column: str) -> str:
        """The highest level that has been revealed of a column; "" for nothing at all."""
        found = self._levels.get((table.lower(), column.lower()))
        return "" if found is None else LEVELS[found]

    def record(self, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
        """Append the new ones durably and return them; known facts cost no input or output.

        This comes before the statement is sent. When it fails, nothing may be sent.
        `statement_shape` is the statement with its literals taken out.
        """
        wanted = list(facts)
        for fact in wanted:
            if fact.level not in LEVELS:
                raise errors.make("internal", detail=f"no leakage level {fact.level}")
        for _ in range(_ATTEMPTS):
            fresh = self.new(wanted)
            if not fresh or self._append(fresh, statement_shape):
                return fresh
            self.refresh()
        raise errors.make("ledger.write", detail="other clients write all the time")

    def refresh(self) -> None:
        """Take in, and verify, what other clients have recorded since."""
        pinned = self._pin.read()
        before = self._length
        reached = pinned.ledger_length < before or self._agrees(pinned)
        for row in self._engine.query(Statement(control.LEDGER_TAIL, (before,))).to_pylist():
            self._take(row["sequence"], row["body"])
            reached = reached or self._agrees(pinned)
        if not reached:
            raise errors.make(
                "ledger.rollback",
                place=self._place,
                seen=pinned.ledger_length,
                found=self._length,
            )
        if self._length > pinned.ledger_length:
            self._pin.advance_ledger(self._length, self._head)

    def _agrees(self, pinned: PinState) -> bool:
        """Whether the records so far are just those that were pinned."""
        seen = (pinned.ledger_length, pinned.ledger_hash or _START)
        return seen == (self._length, self._head)

    def table(self) -> pa.Table:
        """The ledger as a table, one row per fact."""
        rows = [
            {
                "sequence": entry.sequence,
                "when": entry.when,
                "table_name": fact.table,
                "columns": list(fact.columns),
                "level": fact.level,
                "kind": fact.kind,
                "reveals": fact.text,
                "statement": entry.statement,
            }
            for fact, entry in self._facts.items()
        ]
        return pa.Table.from_pylist(rows, schema=TABLE_SCHEMA)

    def _append(self, fresh: list[Fact], statement: str) -> bool:
        """Commit one record; False when another client appended first."""
        sequence = self._length + 1
        when = datetime.datetime.now(datetime.UTC)
        body = {
            "previous": self._head,
            "when": when.isoformat(),
            "statement": statement,
            "facts": [[f.table, list(f.columns), f.level, f.kind, f.text] for f in fresh],
        }
        plain = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        sealed = self._keys.seal_blob(_PURPOSE, self._context(sequence), plain)
        if not self._run(Statement(control.LEDGER_APPEND, (sequence, sealed), kind="write")):
            return False
        self._admit(sequence, sealed, when, statement, fresh)
        self._pin.advance_ledger(self._length, self._head)
        return True

    def _take(self, sequence: object, sealed: object) -> None:
        """Verify one record read from the server and take it in."""
        if sequence != self._length + 1 or not isinstance(sealed, bytes):
            raise self._tampered(f"entry {self._length + 1} is missing")
        number = self._length + 1
        try:
            plain = self._keys.open_blob(_PURPOSE, self._context(number), sealed)
        except errors.VerificationError as error:
            raise self._tampered(f"entry {number} does not bear this key's seal") from error
        try:
            body: dict[str, Any] = json.loads(plain)
            previous, statement = body["previous"], str(body["statement"])
            when = datetime.datetime.fromisoformat(body["when"])
            facts = [_fact(*item) for item in body["facts"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._tampered(f"entry {number} cannot be read") from error
        if previous != self._head:
            raise self._tampered(f"entry {number} does not follow entry {self._length}")
        self._admit(number, sealed, when, statement, facts)

    def _admit(
        self,
        sequence: int,
        sealed: bytes,
        when: datetime.datetime,
        statement: str,
        facts: list[Fact],
    ) -> None:
        link = bytes.fromhex(self._head) + sequence.to_bytes(8, "big") + sealed
        self._head = hashlib.sha256(link).hexdigest()
        self._length = sequence
        for fact in facts:
            self._facts.setdefault(fact, _Entry(sequence, when, statement))
            for column in fact.columns:
                key = (fact.table.lower(), column.lower())
                self._levels[key] = max(self._levels.get(key, 0), LEVELS.index(fact.level))

    def _context(self, sequence: int) -> bytes:
        return f"{self._pin.database_id}:{sequence}".encode()

    @property
    def _place(self) -> str:
        return self._engine.place or "this database"

    def _tampered(self, detail: str) -> errors.Error:
        return errors.make("ledger.tampered", place=self._place, detail=detail)

    def _create(self) -> None:
        for _ in range(_ATTEMPTS):
            # Two sessions that begin together may both try.
            if self._run(control.LEDGER_CREATE):
                return
        raise errors.make("ledger.write", detail="other clients write all the time")

    def _run(self, statement: Statement) -> bool:
        """Write to the server; False when another client was faster.

        A failure says that the user's statement was not sent.
        """
        try:
            self._engine.run(statement)
        except errors.Error as error:
            if lost_race(error):
                return False
            raise errors.make("ledger.write", detail=error.message) from error
        return True


def _fact(table: Any, columns: Any, level: Any, kind: Any, text: Any) -> Fact:
    """A fact as a record holds it; ValueError where it is of another form."""
    names = columns if isinstance(columns, list) else [columns]
    words = all(isinstance(word, str) for word in (*names, table, kind, text))
    if names is not columns or level not in LEVELS or not words:
        raise ValueError("not a fact")
    return Fact(table, tuple(columns), level, kind, text)
