"""The rows of both tables: cells, distances between two parts of the map, and ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.maps.codec import pack, put_varint, unpack, varints
from examples.maps.graph import Floats, Graph, Ints, graph_of, streets_of

#: No cell has more nodes.
MOST_NODES = 1 << 16


@dataclass(frozen=True)
class Cell:
    """A cell as its row tells it.

    Attributes:
        transit: transit nodes around its region, rising: the first points of the region.
        points: which points of the region are the cell's borders.
        nodes: numbers of the cell's borders, then of its inner nodes, which rise.
        streets: between `nodes`, called 0.. here; none between two borders.
        distances: shape (borders of the cell, transit nodes): in the whole map.
    """

    transit: Ints
    points: Ints
    nodes: Ints
    streets: Graph
    distances: Floats


def write_cell(cell: Cell) -> bytes:
    """A cell's row."""
    count = len(cell.points)
    inner = cell.nodes[count:]
    starts = np.flatnonzero(np.diff(inner, prepend=-1) != 1)
    base = inner[:1]
    minor = cell.nodes[:count][cell.points >= len(cell.transit)]
    lows, highs, weights = streets_of(cell.streets)
    order = np.lexsort((lows, highs))
    lows, highs = lows[order], highs[order]
    return pack(
        [
            base,
            np.diff(cell.transit, prepend=0),
            np.diff(cell.points, prepend=0),
            _folded(minor - base),
            np.diff(inner[starts], prepend=base),
            np.diff(np.append(starts, len(inner))),
            np.bincount(highs - count, minlength=len(inner)),
            highs - lows - 1,
            weights[order] - 1,
            *_table(cell.distances),
        ]
    )


def read_cell(data: bytes) -> Cell:
    """The reverse; ValueError where the bytes are no cell."""
    base, transit, points, minor, steps, runs, below, back, weights, *table = unpack(data, 14)
    transit, points = np.cumsum(transit), np.cumsum(points)
    count, inside = len(points), points >= len(transit)
    size = count + len(below)
    if (
        len(base) != 1
        or inside.sum() != len(minor)
        or len(steps) != len(runs)
        or max(runs.max(initial=0), size) > MOST_NODES
        or runs.sum() != len(below)
        or not below.sum() == len(back) == len(weights)
    ):
        raise ValueError("a cell whose nodes do not fit each other")
    borders = np.empty(count, np.int64)
    borders[~inside] = transit[points[~inside]]
    borders[inside] = base + _unfolded(minor)
    first = np.repeat(base + np.cumsum(steps) - (np.cumsum(runs) - runs), runs)
    highs = np.repeat(count + np.arange(len(below)), below)
    lows = highs - back - 1
    if (lows < 0).any():
        raise ValueError("a street of a cell leads nowhere")
    distances = _lengths(table)
    if distances.shape != (count, len(transit)):
        raise ValueError("a cell whose distances do not fit its borders")
    nodes = np.concatenate([borders, first + np.arange(len(below))])
    return Cell(transit, points, nodes, graph_of(size, lows, highs, weights + 1), distances)


def _folded(steps: Ints) -> Ints:
    return np.where(steps < 0, -2 * steps - 1, 2 * steps)


def _unfolded(values: Ints) -> Ints:
    return np.where(values & 1, -(values + 1) // 2, values // 2)


def write_distances(table: Floats) -> bytes:
    """Distances from the borders of one part (rows) to those of another; infinite ones too."""
    return pack(_table(table))


def read_distances(data: bytes) -> Floats:
    """The reverse: shape (borders of one, borders of the other)."""
    return _lengths(unpack(data, 5))


def _table(table: Floats) -> list[Floats]:
    """Lists: the least, rows less it, columns less theirs, what is known, and the rest."""
    known = np.isfinite(table)
    low = table.min(initial=np.inf)
    low = low if np.isfinite(low) else 0.0
    rows = table.min(axis=1, initial=np.inf)
    rows = np.where(np.isfinite(rows), rows, low)
    rest = table - rows[:, None]
    columns = rest.min(axis=0, initial=np.inf)
    columns = np.where(np.isfinite(columns), columns, 0)
    return [np.array([low]), rows - low, columns, known.ravel(), (rest - columns)[known]]


def _lengths(lists: list[Ints]) -> Floats:
    """The reverse."""
    low, rows, columns, known, rest = lists
    if len(low) != 1 or len(known) != len(rows) * len(columns) or (known > 0).sum() != len(rest):
        raise ValueError("distances that do not fit the borders")
    table = np.full((len(rows), len(columns)), np.inf)
    table[(known > 0).reshape(table.shape)] = rest
    return np.asarray(table + low + rows[:, None] + columns, np.float64)


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
    for number in (len(runs), region)[: 2 if runs else 1]:
        put_varint(out, number)
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
