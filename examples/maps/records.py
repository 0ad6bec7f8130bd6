"""The rows of both tables: cells, distances between two parts of the map, and ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.maps.codec import Reader, Writer, put_varint, varints
from examples.maps.entropy import Decoder, Encoder
from examples.maps.graph import FAR, Graph, Ints

#: Of the first byte of every record: how it is written.
VERSION = 1
#: Bits of a node's number.
NODE_BITS = 32
#: No cell has more nodes.
MOST_NODES = 1 << 16


@dataclass(frozen=True)
class Cell:
    """A cell as its row tells it.

    Attributes:
        transit: transit nodes around its region, rising: the first points of the region.
        points: which points of the region are the cell's borders.
        nodes: numbers of the cell's borders, then of its inner nodes.
        neighbours: for each of `nodes`, which ones it has streets to, and how far they are.
        distances: shape (borders of the cell, transit nodes): in the whole map, FAR for none.
    """

    transit: list[int]
    points: list[int]
    nodes: list[int]
    neighbours: list[list[tuple[int, int]]]
    distances: Ints


def write_cell(cell: Cell, graph: Graph) -> bytes:
    """A cell's row; `graph` has its borders first, then its nodes in order of number."""
    tails, heads, weights = graph.streets()
    order = np.lexsort((tails, heads))
    tails, heads, weights = tails[order], heads[order], weights[order]
    count = len(cell.points)
    first = np.searchsorted(heads, np.arange(graph.size + 1)).tolist()
    coder, shape = Encoder(), _Shape(count)
    below = tails.tolist()
    for node in range(count, graph.size):
        shape.put(coder, node, below[first[node] : first[node + 1]])
    inner = np.array(cell.nodes[count:], np.int64)
    breaks = np.flatnonzero(np.diff(inner) != 1) + 1
    starts = np.concatenate([[0], breaks]).astype(np.int64)
    lengths = np.diff(np.concatenate([starts, [len(inner)]]))
    base = int(inner[0])
    out = Writer()
    out.number(VERSION, 8)
    out.number(base, NODE_BITS)
    out.numbers(cell.transit)
    out.numbers(cell.points)
    known = [node for node in cell.nodes[:count] if node not in cell.transit]
    out.numbers([_folded(node - base) for node in known])
    out.numbers(np.diff(inner[starts], prepend=base))
    out.numbers(lengths - 1)
    out.numbers(weights - 1)
    put_table(out, cell.distances)
    return out.bytes() + coder.bytes()


def read_cell(data: bytes) -> Cell:
    """The reverse; ValueError where the bytes are no cell."""
    reader = Reader(data)
    if reader.number(8) != VERSION:
        raise ValueError("a cell in a form that this program does not know")
    base = reader.number(NODE_BITS)
    transit, points = reader.numbers(), reader.numbers()
    minor = [base + _unfolded(value) for value in reader.numbers()]
    steps, lengths, weights = reader.numbers(), reader.numbers(), reader.numbers()
    size = sum(lengths) + len(lengths)
    inside = sum(point >= len(transit) for point in points)
    if len(minor) != inside or len(steps) != len(lengths) or size > MOST_NODES:
        raise ValueError("a cell whose nodes do not fit each other")
    distances = take_table(reader)
    if distances.shape != (len(points), len(transit)):
        raise ValueError("a cell whose distances do not fit its borders")
    rest = iter(minor)
    nodes = [transit[p] if p < len(transit) else next(rest) for p in points]
    start = base
    for step, length in zip(steps, lengths, strict=True):
        start += step
        nodes.extend(range(start, start + length + 1))
    neighbours = _neighbours(Decoder(data[reader.whole() :]), len(points), len(nodes), weights)
    return Cell(transit, points, nodes, neighbours, distances)


def _neighbours(
    coder: Decoder, borders: int, size: int, weights: list[int]
) -> list[list[tuple[int, int]]]:
    shape, at = _Shape(borders), 0
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for node in range(borders, size):
        for other in shape.take(coder, node):
            if not 0 <= other < node or at == len(weights):
                raise ValueError("a street of a cell leads nowhere")
            neighbours[node].append((other, weights[at] + 1))
            neighbours[other].append((node, weights[at] + 1))
            at += 1
    return neighbours


class _Shape:
    """Which lower nodes each node has a street to, in the situations that the coder learns.

    A node mostly has a street to the number before. Where others lead is told from where the
    last one led, because neighbouring strings run beside each other.
    """

    def __init__(self, borders: int) -> None:
        self.borders = borders
        self.linked, self.far = 1, 0
        self.last = borders
        self.border = 0

    def _situations(self, linked: int) -> tuple[int, int]:
        more = 10_000 + self.linked * 1000 + linked * 100 + min(self.far, 2) * 10
        return self.linked * 10 + min(self.far, 2), more

    def put(self, coder: Encoder, node: int, below: list[int]) -> None:
        """Streets of a node to lower ones, rising."""
        linked = int(node > self.borders and node - 1 in below)
        far = [other for other in below if not (linked and other == node - 1)]
        link, more = self._situations(linked)
        coder.bit(link, linked)
        for number, other in enumerate(far):
            coder.bit(more + min(number, 5), 1)
            inner = int(other >= self.borders)
            coder.bit(20_000, inner)
            step = other - (self.last if inner else self.border)
            if inner and number and far[number - 1] >= self.borders:
                coder.number(40_000 + 1000 * linked, step - 1)
            else:
                coder.number(30_000 + 1000 * (linked + 2 * (1 - inner)), _folded(step))
            self._went(inner, other)
        coder.bit(more + min(len(far), 5), 0)
        self.linked, self.far = linked, len(far)

    def take(self, coder: Decoder, node: int) -> list[int]:
        """The reverse."""
        link = self._situations(0)[0]
        linked = coder.bit(link)
        more = self._situations(linked)[1]
        far: list[int] = []
        while coder.bit(more + min(len(far), 5)):
            inner = coder.bit(20_000)
            if inner and far and far[-1] >= self.borders:
                step = coder.number(40_000 + 1000 * linked) + 1
            else:
                step = _unfolded(coder.number(30_000 + 1000 * (linked + 2 * (1 - inner))))
            far.append((self.last if inner else self.border) + step)
            self._went(inner, far[-1])
            if len(far) > node:
                raise ValueError("a node of a region with too many streets")
        self.linked, self.far = linked, len(far)
        return sorted([*far, node - 1] if linked else far)

    def _went(self, inner: int, other: int) -> None:
        if inner:
            self.last = other
        else:
            self.border = other


def _folded(step: int) -> int:
    return 2 * step if step >= 0 else -2 * step - 1


def _unfolded(value: int) -> int:
    return -(value + 1) // 2 if value & 1 else value // 2


def write_distances(table: Ints) -> bytes:
    """Distances from the borders of one part (rows) to those of another; FAR is left out."""
    out = Writer()
    out.number(VERSION, 8)
    put_table(out, table)
    return out.bytes()


def read_distances(data: bytes) -> Ints:
    """The reverse: shape (borders of one, borders of the other)."""
    reader = Reader(data)
    if reader.number(8) != VERSION:
        raise ValueError("distances in a form that this program does not know")
    return take_table(reader)


def put_table(out: Writer, table: Ints) -> None:
    """Rows less their least, then columns less theirs; FAR is one bit."""
    known = table < FAR
    low = int(table[known].min()) if known.any() else 0
    rows = table.min(axis=1, initial=FAR)
    rows = np.where(rows < FAR, rows, low)
    rest = np.where(known, table - rows[:, None], FAR)
    columns = rest.min(axis=0, initial=FAR)
    columns = np.where(columns < FAR, columns, 0)
    out.number(low, 48)
    out.numbers(rows - low)
    out.numbers(columns)
    out.numbers(known.ravel().astype(np.int64))
    out.numbers((rest - columns)[known])


def take_table(reader: Reader) -> Ints:
    """The reverse."""
    low = reader.number(48)
    rows, columns = np.array(reader.numbers(), np.int64), np.array(reader.numbers(), np.int64)
    known, rest = np.array(reader.numbers(), bool), np.array(reader.numbers(), np.int64)
    if len(known) != len(rows) * len(columns) or int(known.sum()) != len(rest):
        raise ValueError("distances that do not fit the borders")
    flat = np.full(len(known), FAR)
    flat[known] = rest
    table: Ints = flat.reshape(len(rows), len(columns))
    return np.where(table < FAR, table + low + rows[:, None] + columns, FAR)


def write_step(region: int, start: int, inner: list[int], end: int) -> bytes:
    """A step of a way: inner nodes of a region in runs, then the point behind them.

    How many runs; the region, where there are runs; for each run its first node less `start`,
    the region's first, and how many nodes follow, times two, odd where numbers fall; `end`.
    """
    runs: list[tuple[int, int]] = []
    for node in inner:
        if runs:
            first, more = runs[-1]
            turn = node - first - more
            if abs(turn) == 1 and (more == 0 or (more > 0) == (turn > 0)):
                runs[-1] = (first, more + turn)
                continue
        runs.append((node, 0))
    out = bytearray()
    put_varint(out, len(runs))
    if runs:
        put_varint(out, region)
    for first, more in runs:
        put_varint(out, first - start)
        put_varint(out, 2 * abs(more) + (more < 0))
    put_varint(out, end)
    return bytes(out)


def read_way(first: int, data: bytes, starts: list[int]) -> list[int]:
    """All nodes of a way from point `first`, made of what `write_step` wrote.

    ``starts`` are the first nodes of all regions, and how many nodes there are.
    """
    numbers = iter(varints(data))
    way = [first]
    try:
        for count in numbers:
            region = next(numbers) if count else 0
            if region >= len(starts) - 1:
                raise ValueError("a way through a region that is not there")
            for _ in range(count):
                node, more = starts[region] + next(numbers), next(numbers)
                last = node - (more >> 1) if more & 1 else node + (more >> 1)
                if not (starts[0] <= node < starts[-1] and starts[0] <= last < starts[-1]):
                    raise ValueError("a way through nodes that are not there")
                way.extend(range(node, last - 1, -1) if more & 1 else range(node, last + 1))
            way.append(next(numbers))
            if way[-1] >= starts[-1]:
                raise ValueError("a way through nodes that are not there")
    except StopIteration:
        raise ValueError("a way that ends early") from None
    return way
