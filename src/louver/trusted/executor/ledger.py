"""The leakage ledger: everything a server has been shown, recorded before it is sent.

Each record is sealed under its sequence number and holds the hash of all records before it, so
a record that is forged, moved, dropped or repeated is noticed; the pin on the client notices a
ledger that was cut short. Records are appended on a side connection and committed at once.

A fact is of columns by their ids (`vault.facts`). One that every further condition adds to is
counted: the first conditions one by one, later ones in blocks that are recorded ahead, so that the
count is never too low and the ledger does not grow with every statement.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from louver import errors
from louver._rust.proxy import Reserve
from louver.names import fold
from louver.trusted.executor.ledger_chain import PURPOSE, START, context_of, linked, written
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.facts import Fact, News, decoded, renamer
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.pin import Keys, Pin, PinState
from louver.trusted.vault.writers import turn
from louver.untrusted.engines.engine import Engine
from louver.wire import control
from louver.wire.messages import Statement

__all__ = ["LEVELS", "TABLE_SCHEMA", "Fact", "Ledger"]

_ATTEMPTS = 32

TABLE_SCHEMA = pa.schema([
    ("sequence", pa.int64()), ("when", pa.timestamp("us", tz="UTC")), ("table_name", pa.string()),
    ("columns", pa.list_(pa.string())), ("level", pa.string()), ("kind", pa.string()),
    ("reveals", pa.string()), ("statement", pa.string()), ("conditions", pa.int64()),
])  # fmt: skip


#: How many conditions of a fact are known again one by one; a session records more in blocks that
#: double up to the largest, of an eighth of those known so far at least: else many wait in line.
MOST_CONDITIONS = 32
_SHARE = 8
_LARGEST_BLOCK = 1 << 20
#: What records look like: 1 has facts by names alone.
_FORMAT = 2


class _Entry(NamedTuple):
    sequence: int
    when: datetime.datetime
    statement: str


@dataclass(slots=True)
class _Count:
    """How many conditions a counted fact was recorded for, and those that are known again."""

    position: int
    total: int = 0
    known: set[str] = field(default_factory=set)
    #: conditions of this session that are in no record of their own, and how many more may be
    reserve: Reserve = field(default_factory=Reserve)
    block: int = 1


class Ledger:
    """All facts revealed so far about the columns of one database."""

    def __init__(
        self, engine: Engine, keys: Keys, pin: Pin, catalog: Callable[[], Catalog] | None = None,
        *, writable: bool = True,
    ) -> None:  # fmt: skip
        """Read and verify the ledger over `engine`, a side connection of its own; `catalog` knows
        the names that columns have today. One that is not ``writable`` refuses what is new.
        """
        self._writable = writable
        self._catalog = catalog
        self._engine = engine
        self._keys = keys
        self._pin = pin
        self._facts: dict[Fact, _Entry] = {}
        self._counts: dict[Fact, _Count] = {}
        self._counted: list[Fact] = []
        self._levels: dict[tuple[int, int] | tuple[str, str], int] = {}
        self._kinds: dict[tuple[int, int], set[str]] = {}
        self.news = News(catalog)
        self._length = 0
        self._head = START
        if writable:
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

    def facts(self, kinds: Collection[str] = ()) -> list[Fact]:
        """Every fact, or those of some kinds, in the order in which it was revealed, under the
        names of today.
        """
        facts = [fact for fact in self._facts if not kinds or fact.kind in kinds]
        return list(map(renamer(self._catalog()), facts)) if facts and self._catalog else facts

    def kinds(self, table: int, column: int) -> Collection[str]:
        """The kinds of facts that were revealed of the column of these ids."""
        return self._kinds.get((table, column), ())

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        """Those of `facts` that the server does not know yet, each once. Of one that is counted,
        every condition that was not met yet is new.
        """
        return [fact for fact in dict.fromkeys(facts) if not self._knows(fact)]

    def conditions(self, fact: Fact) -> int:
        """How many different conditions a counted fact was shown for, at most; 0 for others."""
        cached = self._counts.get(fact)
        return cached.total if cached else 0

    def gone(self, fact: Fact) -> bool:
        """Whether a fact is of a table that was dropped; another one may have its name by now."""
        if self._catalog is None or not fact.ids:
            return False
        return all(table.id != fact.ids[0][0] for table in self._catalog().tables.values())

    def _knows(self, fact: Fact) -> bool:
        if fact not in self._facts:
            return False
        count = self._counts.get(fact)
        if count is None:
            return True
        # Without a condition no one can say that it was met before.
        known = fact.condition in count.known or count.reserve.has(fact.condition)
        return known and bool(fact.condition)

    def level(self, table: str, column: str) -> str:
        """The highest level that has been revealed of a column; "" for nothing at all."""
        cached = [self._levels.get((fold(table), fold(column)), -1)]
        if self._catalog is not None:
            for other in self._catalog().tables.values():
                own = other.column(column) if fold(other.label) == fold(table) else None
                if own is not None:
                    cached.append(self._levels.get((other.id, own.id), -1))
        return LEVELS[max(cached)] if max(cached) >= 0 else ""

    def record(self, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
        """Append what is new durably; returns the facts that the server did not know at all. Known
        ones cost no input or output.

        This comes before the statement is sent. When it fails, nothing may be sent.
        `statement_shape` is the statement with its literals taken out.
        """
        wanted = list(facts)
        for fact in wanted:
            if fact.level not in LEVELS:
                raise errors.make("internal", detail=f"unknown leakage level {fact.level}")
        fresh = self._fresh(wanted)
        if not fresh:
            return []
        with turn(self._engine.address, "ledger"):
            for _ in range(_ATTEMPTS):
                unknown = [fact for fact in fresh if fact not in self._facts]
                more = [fact for fact in fresh if fact in self._facts]
                blocks = [self._block(fact) for fact in more]
                if not fresh or self._append(unknown, blocks, statement_shape):
                    for fact in more:
                        self._began(fact)
                    self.news.note(fresh)
                    return unknown
                self.refresh()
                fresh = self._fresh(wanted)
        raise errors.make("ledger.write", detail="other clients write to it continuously")

    def _fresh(self, wanted: Iterable[Fact]) -> list[Fact]:
        """What is new and within no block that this session has recorded."""
        return [fact for fact in self.new(wanted) if not self._reserved(fact)]

    def carry(self, moved: Mapping[Fact, Fact], statement_shape: str) -> None:
        """Append facts as they are reported from now on, each with the count that it has: rows that
        were stored anew are not news, and are not forgotten.
        """
        for _ in range(_ATTEMPTS):
            totals: dict[Fact, int] = {}
            for old, new in moved.items():
                # Of several generations of a column one is reported.
                totals[new] = totals.get(new, 0) + self.conditions(old)
            # What was rolled back was carried before.
            known = {new: self._counts[new] for new in totals if new in self._counts}
            fresh = [new for new in totals if new not in self._facts]
            counted = [new for new in fresh if new.counted]
            blocks: list[list[Any]] = [
                [len(self._counted) + position, totals[new] - 1, ""]
                for position, new in enumerate(counted)
            ]
            blocks += [
                [count.position, totals[new] - count.total, ""]
                for new, count in known.items()
                if totals[new] > count.total
            ]
            if not (fresh or blocks) or self._append(fresh, blocks, statement_shape):
                return
            self.refresh()
        raise errors.make("ledger.write", detail="other clients write to it continuously")

    def _reserved(self, fact: Fact) -> bool:
        """Whether a condition is within a block that this session has recorded already."""
        count = self._counts.get(fact)
        taken = None if count is None else count.reserve.take(fact.condition)
        self.news.note([fact] if taken else [])
        return taken is not None

    def reserves(self, facts: Sequence[Fact]) -> list[tuple[Reserve, Fact]] | None:
        """What further conditions of those that are counted come from; None where one is new."""
        known = all(fact in self._facts for fact in facts)
        counted = [fact for fact in facts if fact.counted]
        return [(self._counts[fact].reserve, fact) for fact in counted] if known else None

    def extend(self, reserve: Reserve) -> bool:
        """Record a block of further conditions of what one is of; whether that is known here."""
        fact = next((f for f, count in self._counts.items() if count.reserve is reserve), None)
        if fact is None:
            return False
        count = self._counts[fact]
        with turn(self._engine.address, "ledger"):
            for _ in range(_ATTEMPTS):
                _, size, _ = self._block(replace(fact, condition=""))
                if self._append([], [[count.position, size, ""]], ""):
                    count.reserve.extend(size)
                    count.block = min(2 * count.block, _LARGEST_BLOCK)
                    return True
                self.refresh()
        raise errors.make("ledger.write", detail="other clients write to it continuously")

    def refresh(self) -> None:
        """Take in, and verify, what other clients have recorded since."""
        pinned = self._pin.read()
        before = self._length
        reached = pinned.ledger_length < before or self._agrees(pinned)
        for row in self._engine.query(Statement(control.LEDGER_TAIL, (before,))).to_pylist():
            self._take(row["sequence"], row["body"])
            reached = reached or self._agrees(pinned)
        if not reached:
            seen, length = pinned.ledger_length, self._length
            raise errors.make("ledger.rollback", place=self._place, seen=seen, found=length)
        if self._length > pinned.ledger_length:
            self._pin.advance_ledger(self._length, self._head)

    def _agrees(self, pinned: PinState) -> bool:
        """Whether the records so far are just those that were pinned."""
        seen = (pinned.ledger_length, pinned.ledger_hash or START)
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
                "conditions": self.conditions(fact) or None,
            }
            for fact, entry in zip(self.facts(), self._facts.values(), strict=True)
        ]
        return pa.Table.from_pylist(rows, schema=TABLE_SCHEMA)

    def _append(self, unknown: list[Fact], blocks: list[list[Any]], statement: str) -> bool:
        """Commit one record; False when another client appended first."""
        if not self._writable:
            facts = (*unknown, *(self._counted[block[0]] for block in blocks))
            raise errors.make("ledger.read_only", reveals="; ".join({f.text: 0 for f in facts}))
        sequence = self._length + 1
        when = datetime.datetime.now(datetime.UTC)
        places = len(self._counted) + sum(fact.counted for fact in set(unknown))
        if any(block[0] >= places for block in blocks):
            raise errors.make("internal", detail="a ledger record that cannot be read back")
        body = {
            "format": _FORMAT,
            "previous": self._head,
            "when": when.isoformat(),
            "statement": statement,
            "facts": [list(astuple(fact)) for fact in unknown],
            "more": blocks,
        }
        plain = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        sealed = self._keys.seal_blob(PURPOSE, self._context(sequence), plain)
        append = Statement(control.LEDGER_APPEND, (sequence, sealed), kind="write")
        if not written(self._engine, append):
            return False
        self._link(sequence, sealed)
        self._admit(body, when, unknown)
        self._pin.advance_ledger(self._length, self._head)
        return True

    def _block(self, fact: Fact) -> list[Any]:
        """A counted fact by its place among them: how many conditions more, and which, if that is
        to be known again.
        """
        count = self._counts[fact]
        known = bool(fact.condition) and len(count.known) < MOST_CONDITIONS
        count.block = max(count.block, min(count.total // _SHARE, _LARGEST_BLOCK))
        return [count.position, 1, fact.condition] if known else [count.position, count.block, ""]

    def _began(self, fact: Fact) -> None:
        """The first condition of a block that was recorded; the session's next one is larger."""
        count = self._counts[fact]
        if fact.condition not in count.known:
            count.reserve.begin(fact.condition, count.block - 1)
            count.block = min(2 * count.block, _LARGEST_BLOCK)

    def _take(self, sequence: object, sealed: object) -> None:
        """Verify one record read from the server and take it in."""
        if sequence != self._length + 1 or not isinstance(sealed, bytes):
            raise self._tampered(f"entry {self._length + 1} is missing")
        number = self._length + 1
        try:
            plain = self._keys.open_blob(PURPOSE, self._context(number), sealed)
        except errors.VerificationError as error:
            raise self._tampered(
                f"entry {number} does not have this key's authentication tag"
            ) from error
        try:
            body: dict[str, Any] = json.loads(plain)
            previous = body["previous"]
            when = datetime.datetime.fromisoformat(body["when"])
            known = body.get("format", 1) <= _FORMAT
            facts = [decoded(item) for item in body["facts"]] if known else []
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._tampered(f"entry {number} cannot be read") from error
        if not known:
            raise self._tampered(f"entry {number} is of a newer release, or no entry")
        if previous != self._head:
            raise self._tampered(f"entry {number} does not follow entry {self._length}")
        self._link(number, sealed)
        try:
            self._admit(body, when, facts)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise self._tampered(f"entry {number} cannot be read") from error

    def _link(self, sequence: int, sealed: bytes) -> None:
        self._head = linked(self._head, sequence, sealed)
        self._length = sequence

    def _admit(self, body: dict[str, Any], when: datetime.datetime, facts: list[Fact]) -> None:
        """Take in what a record says, the record having been verified."""
        for fact in facts:
            self._facts.setdefault(fact, _Entry(self._length, when, str(body["statement"])))
            if fact.counted and fact not in self._counts:
                self._counts[fact] = _Count(len(self._counted))
                self._counted.append(fact)
            if fact.counted:
                self._more(fact, 1, fact.condition)
            level = LEVELS.index(fact.level)
            # Facts of an older release know the names of their time alone.
            named = [(fold(fact.table), fold(column)) for column in fact.columns]
            for key in [position[:2] for position in fact.ids] or named:
                self._levels[key] = max(self._levels.get(key, 0), level)
            for table, column, _ in fact.ids:
                self._kinds.setdefault((table, column), set()).add(fact.kind)
        for position, by, condition in body.get("more", ()):
            self._more(self._counted[position], int(by), str(condition))

    def _more(self, fact: Fact, by: int, condition: str) -> None:
        count = self._counts[fact]
        count.total += by
        if condition:
            count.known.add(condition)

    def _context(self, sequence: int) -> bytes:
        return context_of(self._pin.database_id, sequence)

    @property
    def _place(self) -> str:
        return self._engine.address or "this database"

    def _tampered(self, detail: str) -> errors.Error:
        return errors.make("ledger.tampered", place=self._place, detail=detail)

    def _create(self) -> None:
        for _ in range(_ATTEMPTS):
            # Two sessions that begin together may both try.
            if written(self._engine, control.LEDGER_CREATE):
                return
        raise errors.make("ledger.write", detail="other clients write to it continuously")
