"""The observer: it has the server's record and nothing else, and proposes what it may have learnt.

A proposal is a relation between rows: these are equal, these come in this order, these two columns
meet here. The observer cannot know whether it is right; the judge, who knows the truth, keeps what
is right beyond chance. What the observer does not try: timing, memory, and the sizes of messages.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from louver.wire.messages import Statement
from tests.observer.recorder import Snapshot, Step, Values

PSEUDONYM = re.compile(r"\b[a-z]_[0-9a-f]{12}\b")
_NUMBER_LEAST = 1 << 32
"""Smaller constants are row numbers, limits and the like."""
Ask = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]


@dataclass(slots=True)
class Proposal:
    """What the observer believes of one stored column, or of two.

    ``classes`` are sets of rows believed equal (pairs of column and row), ``ranks`` an order of
    rows, ``rows`` a set of rows that are somehow special.
    """

    kind: str
    columns: tuple[str, ...]
    classes: list[list[tuple[str, int]]] = field(default_factory=list)
    ranks: dict[int, Any] = field(default_factory=dict)
    rows: frozenset[int] = frozenset()
    detail: str = ""


class Observer:
    """Sees the steps of a session one by one. What it has seen it never forgets."""

    def __init__(self, ask: Ask | None = None) -> None:
        """`ask` runs a query on the server's own database, with the server's own functions."""
        self._ask = ask
        self._holders: dict[Any, set[tuple[str, int]]] = defaultdict(set)
        self._constants: dict[Any, set[str]] = defaultdict(set)
        self._before: Snapshot = {}
        self._layer_keys: set[bytes] = set()

    def see(self, step: Step) -> list[Proposal]:
        """What this step lets it believe, over all that it has seen before."""
        changed = {
            name: values
            for name, values in step.snapshot.items()
            if values != self._before.get(name)
        }
        self._before = step.snapshot
        fresh = _layer_keys(step) - self._layer_keys
        self._layer_keys |= fresh
        looked = dict(step.snapshot) if fresh else dict(changed)
        findings = []
        for name, values in looked.items():
            for row, value in values.items():
                if value is not None and not _trivial(value):
                    self._holders[_key(value)].add((name, row))
            for opened in self._opened(values):
                for row, value in opened.items():
                    if value is not None:
                        self._holders[_key(value)].add((name, row))
                findings += [*_nulls(name, opened), *_orders(name, opened)]
        changed = looked
        findings += [*self._equal(set(changed))] if changed else []
        for name, values in changed.items():
            findings += _nulls(name, values)
            findings += _orders(name, values)
            findings += _lengths(name, values)
        return [*findings, *self._statements(step), *self._tokens(step)]

    def _opened(self, values: Values) -> Iterator[Values]:
        """Codes under every key of a layer that was ever sent, whatever became of the statement."""
        codes = {row: _bytes(value) for row, value in values.items()}
        if not codes or not all(codes.values()):
            return
        for key in self._layer_keys:
            opened = {}
            for row, code in codes.items():
                pad = hashlib.sha256(key + row.to_bytes(8, "big", signed=True)).digest()
                bare = bytes(left ^ other for left, other in zip(code, pad, strict=False))
                opened[row] = _like(values[row], bare)
            yield opened

    def _equal(self, changed: set[str]) -> Iterator[Proposal]:
        """Values that occur more than once, in one column or in two."""
        alone: dict[str, list[list[tuple[str, int]]]] = defaultdict(list)
        both: dict[tuple[str, str], list[list[tuple[str, int]]]] = defaultdict(list)
        for holders in self._holders.values():
            if len(holders) < 2:
                continue
            columns = sorted({name for name, _ in holders})
            for name in columns:
                mine = [holder for holder in holders if holder[0] == name]
                if len(mine) > 1 and name in changed:
                    alone[name].append(mine)
            for pair in itertools.combinations(columns, 2):
                if changed.intersection(pair):
                    both[pair].append([holder for holder in holders if holder[0] in pair])
        for name, classes in alone.items():
            yield Proposal("equality", (name,), classes)
        for pair, classes in both.items():
            yield Proposal("join", pair, classes)

    def _statements(self, step: Step) -> Iterator[Proposal]:
        """Which columns a condition mentions, and constants that were seen before."""
        for message in step.messages:
            if not isinstance(message, Statement):
                continue
            reads = message.sql.lstrip().upper().startswith(("SELECT", "WITH"))
            if reads and message.tables:
                for table in {name.rsplit(".", 1)[0] for name in step.snapshot}:
                    if table in message.sql:
                        yield Proposal(
                            "chosen", (_first(step.snapshot, table),), detail=message.sql
                        )
            names = {name.rsplit(".", 1)[1]: name for name in step.snapshot}
            mentioned = {names[n] for n in PSEUDONYM.findall(message.sql) if n in names}
            if not mentioned:
                continue
            _, where, condition = message.sql.partition(" WHERE ")
            for stored in PSEUDONYM.findall(condition) if where else ():
                if stored in names and reads:
                    yield Proposal("condition", (names[stored],), detail=message.sql)
            for constant in message.constants:
                if _telling(constant) and not _numbers_rows(constant, step):
                    known = self._constants[_key(constant)]
                    if known:
                        columns = tuple(sorted(mentioned))
                        yield Proposal("constant", columns, detail=message.sql)
                    known.add(message.sql)

    def _tokens(self, step: Step) -> Iterator[Proposal]:
        """Every token that was ever sent, tried on every column that it could be meant for."""
        if self._ask is None:
            return
        for message in step.messages:
            if not isinstance(message, Statement):
                continue
            for function, arguments in (("ore_compare", "{0}, $1"),
                                        ("text_match", "{0}, row_id, $1")):  # fmt: skip
                if function not in message.sql:
                    continue
                tokens = [c for c in message.constants if isinstance(c, bytes)]
                for name, token in itertools.product(step.snapshot, tokens):
                    table, column = name.rsplit(".", 1)
                    if column not in message.sql:
                        continue
                    call = f"{function}({arguments.format(column)})"
                    try:
                        matches = self._ask(f"SELECT row_id, {call} FROM {table}", (token,))
                    except Exception:  # noqa: BLE001 - not a token of this function
                        continue
                    ranks = {row: rank for row, rank in matches if rank is not None}
                    if len(set(ranks.values())) > 1:
                        yield Proposal(function, (name,), ranks=ranks)


def _first(snapshot: Snapshot, table: str) -> str:
    """A pseudonymous column of a table, to name it by."""
    names = [name for name in snapshot if name.startswith(f"{table}.")]
    return next((name for name in names if PSEUDONYM.search(name)), names[0])


def _layer_keys(step: Step) -> set[bytes]:
    return {
        constant
        for message in step.messages
        if isinstance(message, Statement) and "onion_open" in message.sql
        for table in message.tables.values()
        for name in table.column_names
        if name != "epoch"
        for constant in table.column(name).to_pylist()
    }


def _bytes(value: Any) -> bytes:
    """A code as it was padded; nothing for what is no code."""
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63:
        return value.to_bytes(8, "big", signed=True)
    return b""


def _like(value: Any, bare: bytes) -> Any:
    """Bytes as a code of the other's kind; None for 0, which stands for NULL."""
    if not any(bare):
        return None
    if isinstance(value, uuid.UUID):
        return uuid.UUID(bytes=bare)
    return int.from_bytes(bare, "big", signed=True)


def _key(value: Any) -> Any:
    return (type(value).__name__, value)


def _trivial(value: Any) -> bool:
    """Values that say nothing by being equal: of plain columns, whose values are public."""
    return isinstance(value, bool)


def _telling(constant: Any) -> bool:
    if isinstance(constant, int) and not isinstance(constant, bool):
        return abs(constant) > _NUMBER_LEAST
    return isinstance(constant, bytes | str) and len(constant) >= 8


def _numbers_rows(constant: Any, step: Step) -> bool:
    """Whether a constant is a row's number, or near one: those say nothing of values."""
    if not isinstance(constant, int):
        return False
    rows = [
        end for values in step.snapshot.values() if values for end in (min(values), max(values))
    ]
    return any(abs(constant - row) < 1 << 20 for row in rows)


def _nulls(name: str, values: Values) -> Iterator[Proposal]:
    rows = frozenset(row for row, value in values.items() if value is None)
    if rows and len(rows) < len(values):
        yield Proposal("nulls", (name,), rows=rows)


def _orders(name: str, values: Values) -> Iterator[Proposal]:
    """The stored order, and of numbers also that of differences and running sums by row."""
    known = {row: value for row, value in values.items() if value is not None}
    if len(known) < 2:
        return
    yield Proposal("order", (name,), ranks=known)
    if not all(isinstance(value, int) for value in known.values()):
        return
    rows = sorted(known)
    steps = {b: (known[b] - known[a]) % 2**64 for a, b in itertools.pairwise(rows)}
    sums = itertools.accumulate(known[row] for row in rows)
    yield Proposal("order", (name,), ranks=steps, detail="differences")
    totals = {row: total % 2**64 for row, total in zip(rows, sums, strict=True)}
    yield Proposal("order", (name,), ranks=totals, detail="running sums")


def _lengths(name: str, values: Values) -> Iterator[Proposal]:
    lengths = {row: len(value) for row, value in values.items() if isinstance(value, bytes)}
    if len(set(lengths.values())) > 1:
        yield Proposal("lengths", (name,), ranks=lengths)
