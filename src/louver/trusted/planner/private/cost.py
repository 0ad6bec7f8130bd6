"""The cost of a question for each protocol: rounds, bytes, work (Splinter, figure 6).

It is computed from public sizes only, so it is the same for every secret. Bytes count shares and
replies; framing adds some hundred per message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from louver.trusted.planner.private.question import Question
from louver.wire import reply_sizes
from louver.wire.questions import Dataset, Level, Prepared, Protocol, Shape

_ROW_BYTES = 10
_TEXT_BYTES = 24
SEARCH_STEP_BITS = 3
"""Bits of the index that one round of a search determines."""
_SLOTS_A_ROW, _SEEDS = 3, 8
"""Slots of a sample table for each requested row, and the number of tables: appendix A."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The public sizes of a prepared shape.

    Attributes:
        rows: rows of the source, the entries summed or searched.
        points: distinct keys.
        bits: of the domain of keys.
        levels: record tables: one for select and buckets, one per level for nodes and dyadic.
        sums: integers summed for each clause: groups times columns.
        index_bits: bits of the index of a row, for a search.
        clauses: number of alternatives.
        parties: number of providers.
        limit: requested rows; 0 for aggregates.
    """

    rows: int
    points: int
    bits: int
    levels: tuple[Level, ...] = ()
    sums: int = 0
    index_bits: int = 0
    clauses: int = 1
    parties: int = 2
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """Speeds of the network and of a provider (one core of common hardware)."""

    latency_s: float = 0.014
    bytes_per_s: float = 12.5e6
    blocks_per_s: float = 4e8
    scanned_per_s: float = 4e9
    powers_per_s: float = 600.0
    cores: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one question.

    Attributes:
        rounds: sequential messages to each provider.
        sent: bytes of shares to each provider, over all rounds.
        received: bytes of replies from each.
        blocks: AES calls at each provider.
        scanned: bytes of records that each scans.
        powers: simultaneous powers modulo N**2 at each (paillier).
    """

    rounds: int
    sent: int
    received: int
    blocks: int
    scanned: int = 0
    powers: int = 0

    def seconds(self, link: Link) -> float:
        """The estimated time until the answer."""
        work = self.blocks / link.blocks_per_s + self.scanned / link.scanned_per_s
        work += self.powers / link.powers_per_s
        moved = (self.sent + self.received) / link.bytes_per_s
        return self.rounds * link.latency_s + moved + work / link.cores


def sizes(shape: Shape, prepared: Prepared, clauses: int, parties: int, rows: int) -> Sizes:
    """The sizes of a prepared shape; ``rows`` are those of its source."""
    return Sizes(
        rows=rows,
        points=prepared.points,
        bits=prepared.codes.bits,
        levels=prepared.levels,
        sums=prepared.group_count * len(prepared.sums),
        index_bits=prepared.index_bits,
        clauses=clauses,
        parties=parties,
        limit=shape.limit,
    )


def assumed_sizes(shape: Shape, dataset: Dataset, clauses: int, parties: int) -> Sizes:
    """Sizes of a shape that no provider has prepared yet, as if every row had a distinct key: the
    worst case for everything but the width of records.
    """
    names = shape.source.replace('"', "").split()
    known = [table.rows for table in dataset.tables if table.name in names]
    rows = max(known, default=1)
    index_bits = max((rows - 1).bit_length(), 1)
    bits = min(24 if parties > 2 else 2 * index_bits + 4, 64)
    fields = len(shape.groups) + len(shape.partials) + len(shape.columns) + len(shape.orders)
    width = -(-(_ROW_BYTES + max(shape.limit, 1) * fields * _TEXT_BYTES) // 16) * 16
    depths = {Protocol.NODES: index_bits + 1, Protocol.DYADIC: bits + 1}.get(shape.protocol, 1)
    level = Level(rows, bits, max(shape.limit, 1), width)
    return Sizes(
        rows=rows,
        points=rows,
        bits=bits,
        levels=tuple(
            replace(level, count=max(rows >> depth, 1), bits=max(bits - depth, 1))
            for depth in range(depths)
        ),
        sums=max(len(shape.partials), 1),
        index_bits=index_bits,
        clauses=clauses,
        parties=parties,
        limit=shape.limit,
    )


def estimate(protocol: Protocol, of: Sizes) -> Cost:
    """The cost of a protocol."""
    return {
        Protocol.SELECT: _select,
        Protocol.BUCKETS: _select,
        Protocol.SUM: _sum,
        Protocol.NODES: _nodes,
        Protocol.DYADIC: _dyadic,
        Protocol.SEARCH: _search,
        Protocol.PAILLIER: _paillier,
    }[protocol](of)


def cheapest(costs: Sequence[Cost], link: Link) -> int:
    """The index of the cost with the shortest time; the first of equals."""
    return min(range(len(costs)), key=lambda index: costs[index].seconds(link))


def choose(question: Question, dataset: Dataset, parties: int, link: Link) -> int:
    """The cheapest shape: 0 is the question's own, 1 its first alternative, ...

    The choice depends only on the shapes and on the number of rows, never on a secret.
    """
    shapes = [question.shape, *(way.shape for way in question.alternatives)]
    clauses = len(question.clauses)
    costs = [
        estimate(shape.protocol, assumed_sizes(shape, dataset, clauses, parties))
        for shape in shapes
    ]
    return cheapest(costs, link)


def words(of: Cost, link: Link) -> str:
    """A cost as one line of EXPLAIN."""
    rounds = f"{of.rounds} round{'s' if of.rounds > 1 else ''}"
    work = f"{of.blocks / 1e6:,.1f} million AES calls"
    if of.powers:
        work += f" and {of.powers:,} powers"
    return (
        f"{rounds}, {of.sent:,} bytes to and {of.received:,} bytes from each provider, {work}, "
        f"about {of.seconds(link) * 1000:,.0f} ms"
    )


def point_bytes(bits: int, parties: int) -> int:
    """Bytes of a share of a point function (spec/fss.md, spec/fss-many.md)."""
    if parties == 2:
        return 48 + 16 * bits
    column_bits = min(bits, -(-(bits + parties - 2) // 2))
    rows = 1 << (bits - column_bits)
    return 8 + -(-rows // 8) + rows * (1 << (parties - 2)) * 16 + (16 << column_bits)


def below_bytes(bits: int) -> int:
    """Bytes of a share of a comparison."""
    return 32 + 32 * bits


def interval_bytes(bits: int) -> int:
    """Bytes of a share of an interval: two comparisons with one payload."""
    return 40 + 64 * bits


def walked(points: int, bits: int) -> int:
    """Nodes of a tree above this many sorted keys: shared prefixes are visited once."""
    return sum(min(points, 1 << depth) for depth in range(1, bits + 1))


def _selected(level: Level, parties: int) -> Cost:
    """One point function over one record table."""
    if parties == 2:
        blocks = walked(level.count, level.bits) + level.count
    else:
        blocks = (1 << level.bits) * (1 << (parties - 2)) + level.count
    sent, received = point_bytes(level.bits, parties), reply_sizes.record(level)
    return Cost(0, sent, received, blocks, level.count * level.width)


def _times(of: Cost, count: int, rounds: int) -> Cost:
    return Cost(
        rounds,
        of.sent * count,
        of.received * count,
        of.blocks * count,
        of.scanned * count,
        of.powers * count,
    )


def _added(parts: Sequence[Cost], rounds: int) -> Cost:
    return Cost(
        rounds,
        sum(part.sent for part in parts),
        sum(part.received for part in parts),
        sum(part.blocks for part in parts),
        sum(part.scanned for part in parts),
        sum(part.powers for part in parts),
    )


def _select(of: Sizes) -> Cost:
    return _times(_selected(of.levels[0], of.parties), of.clauses, 1)


def _sum(of: Sizes) -> Cost:
    blocks = 4 * walked(of.points, of.bits)
    clause = Cost(
        1, interval_bytes(of.bits), reply_sizes.BLOCK * of.sums, blocks, 8 * of.sums * of.points
    )
    return _times(clause, of.clauses, 1)


def _nodes(of: Sizes) -> Cost:
    count = Cost(0, below_bytes(of.bits), reply_sizes.BLOCK, 2 * walked(of.points, of.bits))
    fetched = [_selected(level, of.parties) for level in of.levels]
    clause = _added([count, count, *fetched, *fetched], 2)
    return _times(clause, of.clauses, 2)


def _dyadic(of: Sizes) -> Cost:
    fetched = [_selected(level, of.parties) for level in of.levels]
    return _times(_added([*fetched, *fetched], 1), of.clauses, 1)


def _search(of: Sizes) -> Cost:
    """Counts under prefixes of the index, a few bits per round, then the row; for several rows,
    the end of the range that contains them, then samples of it.
    """
    steps = -(-of.index_bits // SEARCH_STEP_BITS)
    counted = []
    for step in range(steps):
        known = step * SEARCH_STEP_BITS
        deeper = min(SEARCH_STEP_BITS, of.index_bits - known)
        # Rows are in search order: they share prefixes of the index, not of the code.
        work = of.rows * of.bits + (1 << known + deeper)
        count = Cost(0, point_bytes(known + deeper + of.bits, 2), reply_sizes.BLOCK, work)
        counted.append(_times(count, of.clauses << deeper, 0))
    level = of.levels[0] if of.levels else Level(of.rows, of.index_bits, 1, 64)
    level = replace(level, count=of.rows, bits=of.index_bits)
    if of.limit <= 1:
        return _added([*counted, _selected(level, 2)], steps + 1)
    width = level.width // max(level.rows, 1) + 1
    slots = _SLOTS_A_ROW * of.limit
    bits = of.bits + of.index_bits
    gathered = Cost(
        0,
        point_bytes(bits, 2) * of.clauses,
        reply_sizes.gathered(replace(level, width=width), slots, _SEEDS),
        of.rows * bits * of.clauses,
        of.rows * width * _SEEDS,
    )
    return _added([*counted, gathered], steps + 1)


def _paillier(of: Sizes) -> Cost:
    columns = 1 << max(of.bits - 4, 0) // 2
    rows = 1 << max(of.bits - max(of.bits - 4, 0) // 2, 0)
    share = 298 + 1024 * columns + 124 * rows
    received = reply_sizes.paillier_sums(of.sums) if of.sums else 0
    clause = Cost(1, share, received, 0, 8 * of.points * of.sums, 3 * columns)
    return _times(replace(clause, powers=3 * columns * max(of.sums, 1)), of.clauses, 1)
