"""The rounds of each protocol: send shares, open and verify replies, as rows of partial results.

Source: Splinter, section 5 (protocols by condition class) and 5.2 (their rounds); spec/splinter.md.
Every round is one message to each provider, with a number of shares that depends on the shape only:
a clause without a point, or without an interval, sends a dummy.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from louver import errors
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.private.constants import Keys
from louver.trusted.executor.private.fleet import Fleet
from louver.trusted.vault.schemes import fss
from louver.wire import records, reply_sizes
from louver.wire.questions import Ask, Level, Prepared, Shape

_QUERY_ID_BYTES = 16
#: The most that a provider accepts in one message, with room for the rest of it.
_MOST_SHARE_BYTES = 30 << 20
Fetched = tuple[bytes | None, int, int | None]
"""A record (None: absent, or of a dummy), the number of its level, and its key's fingerprint."""


class Shared(Protocol):
    """A function that is split into shares, one for each provider."""

    def shares(self) -> list[bytes]:
        """The shares, in the order of the parties."""


class Additive(Shared, Protocol):
    """A function whose values were summed."""

    def open(self, replies: list[bytes]) -> list[int]:
        """The sums, verified."""


@dataclass(frozen=True, slots=True)
class Run:
    """One question in execution."""

    fleet: Fleet
    shape: Shape
    prepared: Prepared
    clock: Clock

    def ask(
        self, step: int, functions: Sequence[Shared], parts: Sequence[int],
        form: Sequence[int] = (),
    ) -> list[list[bytes]]:  # fmt: skip
        """One round; each part, of the given size, in the order of the parties."""
        with self.clock.step("share"):
            by_party = list(zip(*(function.shares() for function in functions), strict=True))
        asks = [
            Ask(
                secrets.token_bytes(_QUERY_ID_BYTES), self.prepared.version,
                self.prepared.shape_id, step, tuple(shares), tuple(form),
            )
            for shares in by_party
        ]  # fmt: skip
        with self.clock.step(f"round {step + 1}"):
            return self.fleet.ask(asks, parts)

    def point(self, level: Level, at: int | None) -> fss.Point:
        """A point function over a level's domain; a dummy if there is no point."""
        with self.clock.step("share"):
            return fss.Point(level.bits, at, self.fleet.parties)

    def opened(
        self, points: Sequence[fss.Point], wanted: Sequence[bool], replies: Sequence[list[bytes]],
        number: int,
    ) -> list[bytes | None]:  # fmt: skip
        """The records of one level selected by points, verified; also those of dummies, so that a
        manipulation of any of them is detected.
        """
        form = self.prepared.levels[number]
        opened = []
        with self.clock.step("open"):
            for point, parts, real in zip(points, replies, wanted, strict=True):
                widened = [records.widened(part, form, reply_sizes.BLOCK) for part in parts]
                record = point.open(widened, number)
                opened.append(record[: form.width] if real and record is not None else None)
        return opened


def select(run: Run, keys: Keys) -> pa.Table:
    """Single-value conditions: one record per clause, in one round (section 5.2, single-value)."""
    level = run.prepared.levels[0]
    points = [run.point(level, at) for at in keys.points]
    replies = run.ask(0, points, [reply_sizes.record(level)] * len(points))
    opened = run.opened(points, [at is not None for at in keys.points], replies, 0)
    return rows_of(run, ((r, 0, mark) for r, mark in zip(opened, keys.fingerprints, strict=True)))


def sums(run: Run, keys: Keys) -> pa.Table:
    """Intervals and additive aggregates: comparisons of two ends, summed by the providers."""
    bits = run.prepared.codes.bits
    with run.clock.step("share"):
        functions = [_interval(bits, span) for span in keys.spans]
    parts = [reply_sizes.sums(run.prepared)] * len(functions)
    return summed(run, functions, run.ask(0, functions, parts))


def nodes(run: Run, keys: Keys) -> pa.Table:
    """Intervals and any associative aggregate, in two rounds (section 5.2.2, figure 5).

    The first counts the keys below the interval and within it, which gives the ranks [i, j) of its
    keys; the second fetches at most two nodes of each level that cover them.
    """
    bits = run.prepared.codes.bits
    with run.clock.step("share"):
        counts = [part for span in keys.spans for part in _counted(bits, span)]
    replies = run.ask(0, counts, [reply_sizes.BLOCK] * len(counts))
    with run.clock.step("open"):
        ranks = [f.open(r)[0] for f, r in zip(counts, replies, strict=True)]
    wanted: list[tuple[int, int | None]] = []
    for first, last in zip(ranks[::2], ranks[1::2], strict=True):
        if not 0 <= first <= last <= run.prepared.points:
            raise errors.make("provider.lied")
        wanted += cover(first, last, len(run.prepared.levels))
    return _fetched(run, keys, wanted, 1, there=True)


def dyadic(run: Run, keys: Keys) -> pa.Table:
    """Intervals at three or more providers: at most two prefixes of each length, in one round."""
    levels = len(run.prepared.levels)
    wanted: list[tuple[int, int | None]] = []
    for span in keys.spans:
        first, last = (0, 0) if span is None else (span[0], span[1] + 1)
        wanted += cover(first, last, levels)
    return _fetched(run, keys, wanted, 0)


def _fetched(
    run: Run, keys: Keys, wanted: Sequence[tuple[int, int | None]], step: int, *,
    there: bool = False,
) -> pa.Table:  # fmt: skip
    """The rows of some records, two of each level per clause; those without a position are dummies.

    With ``there`` every requested position contains a record, so none may be absent.
    """
    levels = run.prepared.levels
    points = [run.point(levels[number], at) for number, at in wanted]
    replies = run.ask(step, points, [reply_sizes.record(levels[number]) for number, _ in wanted])
    fetched: list[Fetched] = []
    for index, ((number, at), point, reply) in enumerate(zip(wanted, points, replies, strict=True)):
        (record,) = run.opened([point], [at is not None], [reply], number)
        if there and at is not None and record is None:
            raise errors.make("provider.lied")
        fetched.append((record, number, keys.fingerprints[index // (2 * len(levels))]))
    return rows_of(run, fetched)


def paillier(run: Run, keys: Keys) -> pa.Table:
    """Additive aggregates at three or more providers, added up with Paillier's scheme."""
    bits, parties = run.prepared.codes.bits, run.fleet.parties
    spans = keys.spans or [None if at is None else (at, at) for at in keys.points]
    with run.clock.step("share"):
        functions = [
            fss.PaillierSum(bits, None, None, parties)
            if span is None
            else fss.PaillierSum(bits, span[0], span[1], parties)
            for span in spans
        ]
    by_party = zip(*(function.shares() for function in functions), strict=True)
    longest = max(sum(map(len, shares)) for shares in by_party)
    if longest > _MOST_SHARE_BYTES:
        raise errors.make(
            "provider.language", detail=f"so many alternatives ({len(functions)}) over so many "
            f"values: the shares would take {longest:,} bytes",
            instead="Ask for fewer alternatives at a time, or without ?scheme=paillier",
        )  # fmt: skip
    parts = [reply_sizes.paillier(run.prepared)] * len(functions)
    return summed(run, functions, run.ask(0, functions, parts))


def cover(first: int, last: int, levels: int) -> list[tuple[int, int | None]]:
    """The nodes that cover the ranks [first, last) exactly: two positions per level, None if
    unused.

    Level l contains nodes of 2^l ranks. At most two nodes of each level are needed (figure 5).
    """
    positions: list[tuple[int, int | None]] = []
    for level in range(levels):
        left = right = None
        if first < last and (first & 1 or level == levels - 1):
            left, first = first, first + 1
        if first < last and (last & 1 or level == levels - 1):
            last -= 1
            right = last
        positions += [(level, left), (level, right)]
        first, last = first >> 1, last >> 1
    return positions


def rows_of(run: Run, fetched: Iterable[Fetched]) -> pa.Table:
    """The rows of all records, for entries with the requested key."""
    with run.clock.step("open"):
        tables = [
            records.decode(record, run.prepared, level, mark)
            for record, level, mark in fetched
            if record is not None
        ]
        return pa.concat_tables(tables) if tables else records.no_rows(run.prepared.fields)


def summed(run: Run, functions: Sequence[Additive], replies: Sequence[list[bytes]]) -> pa.Table:
    """The sums of every clause, by group; of all groups, since the matching ones are not known."""
    prepared = run.prepared
    width = prepared.group_count * len(prepared.sums)
    with run.clock.step("open"):
        tables = []
        for function, parts in zip(functions, replies, strict=True):
            numbers = function.open(parts)
            if len(numbers) != width:
                raise errors.make(
                    "provider.reply", place=run.fleet.channels[0].address, detail="too few sums"
                )
            tables.append(records.decode_sums(prepared, numbers))
        return pa.concat_tables(tables)


def _interval(bits: int, span: tuple[int, int] | None) -> fss.Sum:
    return fss.Sum(bits, None, None) if span is None else fss.Sum(bits, *span)


def _counted(bits: int, span: tuple[int, int] | None) -> tuple[fss.Below, fss.Below]:
    """The keys below a span, and those up to its end."""
    first, last = (0, -1) if span is None else span
    return fss.Below(bits, first), fss.Below(bits, last + 1)
