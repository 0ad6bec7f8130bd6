"""Evaluation of shares on a prepared table: a pure function of a part of it, and a combination.

A part is one of `of` nearly equal ranges of the table's points, entries or rows; a table may be
distributed over many machines, each of which evaluates its part, and `combine` joins their replies.
The work depends on the number and the kinds of shares, never on their content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from louver import errors
from louver.untrusted.providers import native
from louver.untrusted.providers.tables import Table
from louver.wire import records, reply_sizes, search_params
from louver.wire.questions import Ask, Protocol

if TYPE_CHECKING:
    from louver._rust import server

MAX_SHARES = 8_192
MAX_REPLY_BYTES = 192 << 20
#: About a minute of one core.
MAX_STEPS = 2_000_000_000
#: Bytes of a record that are selected in the time of a step.
_STEP_BYTES = 512
#: Steps in the time of a column's powers for one sum, with Paillier's scheme.
_POWER_STEPS = 10_000
_BLOCK = native.BLOCK


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a table: number `number` of `of`."""

    number: int = 0
    of: int = 1

    def span(self, count: int) -> tuple[int, int]:
        """The first and the last + 1 of `count` items."""
        return count * self.number // self.of, count * (self.number + 1) // self.of


@dataclass(frozen=True, slots=True)
class _Select:
    """These shares select records of a level."""

    level: int
    shares: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Sum:
    """All shares sum: entries, or only count points; with Paillier's scheme or not."""

    counts: bool
    paillier: bool = False


@dataclass(frozen=True, slots=True)
class _Count:
    """These shares count rows by code and this many bits of their index."""

    prefix_bits: int
    shares: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Sample:
    """All shares together sample rows."""

    form: search_params.SearchForm
    sample: search_params.Sample


_Work = _Select | _Sum | _Count | _Sample


def part(
    table: Table, ask: Ask, which: Part = Part(), stop: server.Stop | None = None
) -> list[bytes]:
    """The answer of a part of a table, share by share (sampled rows are one answer for all).

    Raises:
        errors.Error: `provider.share`, if the shares do not fit the step or the table;
            `provider.large`; `interrupted`.
    """
    from louver._rust import server

    works = _works(table, ask)
    sums = [b""] * _parts(works, ask)
    try:
        for work in works:
            numbers, parts = _done(_Where(table, which, stop), work, ask.shares)
            for number, data in zip(numbers, parts, strict=True):
                sums[number] = data
    except server.Stopped as error:
        raise errors.make("interrupted") from error
    except ValueError as error:
        raise errors.make("provider.share", detail=str(error)[:200]) from error
    return sums


def combine(table: Table, ask: Ask, parts: Sequence[Sequence[bytes]]) -> list[bytes]:
    """The whole table's answer from those of all of its parts."""
    works = _works(table, ask)
    total = list(parts[0])
    for work in works:
        for number in _numbers(work, len(ask.shares)):
            joined = [part[number] for part in parts]
            if isinstance(work, _Sum) and work.paillier:
                total[number] = _multiplied(ask.shares[number], joined)
            else:
                total[number] = _joined(table, work, joined)
    return total


def _works(table: Table, ask: Ask) -> list[_Work]:
    """The work requested by a step."""
    count, levels, protocol = len(ask.shares), len(table.prepared.levels), table.protocol
    if not 1 <= count <= MAX_SHARES:
        raise _unfit("there are none, or too many")
    works: list[_Work]
    if protocol is Protocol.SEARCH and ask.form:
        works = _search(search_params.read_form(ask.form, count), table)
    elif ask.form:
        raise _unfit("the step has no form")
    elif protocol in (Protocol.SUM, Protocol.PAILLIER):
        works = [_Sum(False, protocol is Protocol.PAILLIER)]
    elif protocol is Protocol.NODES and ask.step == 0:
        works = [_Sum(True)]
    elif protocol in (Protocol.NODES, Protocol.DYADIC):
        if not levels or count % (2 * levels):
            raise _unfit("there must be two for each level")
        by_level = [range(count)[2 * n :: 2 * levels] for n in range(levels)]
        right = [range(count)[2 * n + 1 :: 2 * levels] for n in range(levels)]
        works = [_Select(n, (*by_level[n], *right[n])) for n in range(levels)]
    else:
        works = [_Select(0, tuple(range(count)))]
    if len(set(ask.shares)) != count:
        raise _unfit("one of them occurs twice")
    steps = sum(_steps(table, work, ask.shares) for work in works)
    if steps > MAX_STEPS:
        raise _unfit("they exceed the limit for one question")
    size = sum(_size(table, work) * len(_numbers(work, count)) for work in works)
    if size > MAX_REPLY_BYTES:
        raise errors.make("provider.large", bytes=size, most=MAX_REPLY_BYTES)
    return works


def _search(form: search_params.SearchForm, table: Table) -> list[_Work]:
    if any(bits > table.prepared.index_bits for bits in form.prefix_bits):
        raise _unfit("a prefix is longer than an index")
    if form.sample is not None:
        return [_Sample(form, form.sample)]
    numbered = sorted((bits, number) for number, bits in enumerate(form.prefix_bits))
    return [
        _Count(bits, tuple(number for _, number in group))
        for bits, group in groupby(numbered, key=lambda pair: pair[0])
    ]


def _unfit(detail: str) -> errors.Error:
    return errors.make("provider.share", detail=detail)


def _parts(works: Sequence[_Work], ask: Ask) -> int:
    return 1 if isinstance(works[0], _Sample) else len(ask.shares)


def _numbers(work: _Work, shares: int) -> tuple[int, ...]:
    """The parts of a reply that a work produces."""
    if isinstance(work, _Sample):
        return (0,)
    return tuple(range(shares)) if isinstance(work, _Sum) else work.shares


def _steps(table: Table, work: _Work, shares: Sequence[bytes]) -> int:
    """Evaluations of shares, weighted by the cost of using each value."""
    prepared = table.prepared
    match work:
        case _Select():
            level = prepared.levels[work.level]
            return level.count * len(work.shares) * max(1, level.width // _STEP_BYTES)
        case _Sum():
            columns = 1 if work.counts else max(1, len(prepared.sums) // 4)
            powers = _powers(table, shares) if work.paillier else 0
            return 2 * prepared.points * columns * len(shares) + powers
        case _Count():
            return prepared.points * len(work.shares)
        case _Sample():
            wide = max(1, prepared.levels[0].width // _STEP_BYTES)
            return prepared.points * (len(shares) + wide * len(work.sample.seeds))


def _powers(table: Table, shares: Sequence[bytes]) -> int:
    """The steps of powers: some for each sum and each column of a share's layout."""
    try:
        bits = [int(native.share_header(share)["bits"]) for share in shares]
    except ValueError as error:
        raise errors.make("provider.share", detail=str(error)[:200]) from error
    columns = sum(1 << max(0, (bit - 4) // 2) for bit in bits)
    return _POWER_STEPS * columns * table.prepared.group_count * len(table.prepared.sums)


def _size(table: Table, work: _Work) -> int:
    """Bytes of one part of a reply."""
    prepared = table.prepared
    match work:
        case _Select():
            return reply_sizes.record(prepared.levels[work.level])
        case _Sum(paillier=True):
            return reply_sizes.paillier(prepared)
        case _Sum():
            return _BLOCK if work.counts else reply_sizes.sums(prepared)
        case _Count():
            return _BLOCK
        case _Sample():
            return reply_sizes.gathered(
                prepared.levels[0], work.sample.slots, len(work.sample.seeds)
            )


@dataclass(frozen=True, slots=True)
class _Where:
    """What shares are evaluated on, and a handle with which another thread can end it."""

    table: Table
    part: Part
    stop: server.Stop | None

    def span(self, count: int) -> tuple[int, int]:
        return self.part.span(count)


def _done(
    where: _Where, work: _Work, shares: Sequence[bytes]
) -> tuple[tuple[int, ...], list[bytes]]:
    numbers = _numbers(work, len(shares))
    match work:
        case _Select():
            return numbers, _select(where, work.level, [shares[n] for n in numbers])
        case _Sum():
            return numbers, _sum(where, work, shares)
        case _Count():
            return numbers, _count(where, work, [shares[n] for n in numbers])
        case _Sample():
            return numbers, [_gather(where, work, shares)]


def _select(where: _Where, number: int, shares: list[bytes]) -> list[bytes]:
    table = where.table
    level = table.prepared.levels[number]
    first, last = where.span(level.count)
    points = table.sections.get(f"points.{number}")
    selected = native.select(
        shares,
        None if points is None else points[first:last],
        last - first,
        table.array(f"records.{number}")[first * level.stored : last * level.stored],
        level.stored,
        table.array(f"tags.{number}")[first * _BLOCK : last * _BLOCK],
        first,
        where.stop,
    )
    return [records.narrowed(record, level, _BLOCK) for record in selected]


def _sum(where: _Where, work: _Sum, shares: Sequence[bytes]) -> list[bytes]:
    table = where.table
    all_points = table.array("points")
    first, last = where.span(len(all_points))
    points = all_points[first:last]
    if work.counts:
        return native.sum_columns(shares, points, None, None, None, 1, 1, where.stop)
    prepared = table.prepared
    if not prepared.group_count or not prepared.sums:
        return [b""] * len(shares)
    starts = table.sections.get("starts")
    if starts is not None:
        begin, end = int(starts[first]), int(starts[last])
        starts = starts[first : last + 1] - np.uint32(begin)
    else:
        begin, end = first, last
    groups = table.sections.get("groups")
    columns = len(prepared.sums)
    summed = native.paillier_columns if work.paillier else native.sum_columns
    return summed(
        shares,
        points,
        starts,
        None if groups is None else groups[begin:end],
        table.array("values")[begin * columns : end * columns],
        columns,
        prepared.group_count,
        where.stop,
    )


def _count(where: _Where, work: _Count, shares: list[bytes]) -> list[bytes]:
    table, prepared = where.table, where.table.prepared
    first, last = where.span(prepared.points)
    codes = table.array("codes")[first:last]
    bits = prepared.codes.bits
    numbers = (bits, prepared.index_bits, work.prefix_bits, first)
    return native.search(shares, codes, *numbers, where.stop)


def _gather(where: _Where, work: _Sample, shares: Sequence[bytes]) -> bytes:
    table, prepared = where.table, where.table.prepared
    first, last = where.span(prepared.points)
    level = prepared.levels[0]
    sample = native.sample(
        shares,
        table.array("codes")[first:last],
        prepared.codes.bits,
        prepared.index_bits,
        work.form.prefix_bits,
        table.array("records.0")[first * level.stored : last * level.stored],
        level.stored,
        table.array("tags.0")[first * _BLOCK : last * _BLOCK],
        work.sample.slots,
        work.sample.seeds,
        first,
        where.stop,
    )
    return records.narrowed(sample, level, 2 * _BLOCK)


def _multiplied(share: bytes, parts: Sequence[bytes]) -> bytes:
    """Combine replies of Paillier's scheme; empty if there are no sums."""
    return native.paillier_join(share, parts) if parts[0] else b""


def _joined(table: Table, work: _Work, parts: Sequence[bytes]) -> bytes:
    arrays = [np.frombuffer(part, np.uint8) for part in parts]
    match work:
        case _Select():
            return _xor(arrays).tobytes()
        case _Sum() | _Count():
            return _added(arrays).tobytes()
        case _Sample():
            width = table.prepared.levels[0].width
            slots = [array.reshape(-1, width + 2 * _BLOCK) for array in arrays]
            joined = _xor([slot[:, :width] for slot in slots])
            sums = _added([np.ascontiguousarray(slot[:, width:]).reshape(-1) for slot in slots])
            return np.concatenate([joined, sums.reshape(len(joined), -1)], axis=1).tobytes()


def _xor(arrays: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    combined: npt.NDArray[np.uint8] = np.bitwise_xor.reduce(arrays)
    return combined


def _added(arrays: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """Numbers of 128 bits, little endian, added modulo 2**128."""
    total: npt.NDArray[Any] = np.zeros((len(arrays[0]) // _BLOCK, 2), np.uint64)
    for array in arrays:
        pairs = array.view("<u8").reshape(-1, 2)
        low = total[:, 0] + pairs[:, 0]
        total[:, 1] += pairs[:, 1] + (low < pairs[:, 0])
        total[:, 0] = low
    return total.astype("<u8").view(np.uint8).reshape(-1)
