"""Regions, which transit nodes leave apart, and cells, which minor nodes leave apart in them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csgraph, csr_array

from examples.maps.graph import Graph, Ints, Ways, part_of, useful
from examples.maps.partition import divide

#: A region is divided into so many cells, none with less than so many nodes on average; into
#: more where a cell has to tell its distances to many borders.
CELLS, CELL_NODES, CELL_BORDERS = 8, 12, 5


@dataclass(frozen=True)
class Part:
    """Nodes that only `borders` join to the others; both as the graph around calls them.

    Attributes:
        borders: nodes around it, rising.
        nodes: nodes inside.
        graph: streets among borders (called 0..) and nodes (called len(borders)..), none of
            them between two borders.
    """

    borders: Ints
    nodes: Ints
    graph: Graph

    @staticmethod
    def of(graph: Graph, borders: Ints, nodes: Ints) -> Part:
        """Streets between two borders belong to no part: they are ways between points."""
        arcs = part_of(graph, np.concatenate([borders, nodes])).tocoo()
        mask = np.maximum(arcs.row, arcs.col) >= len(borders)
        ends = arcs.row[mask], arcs.col[mask]
        return Part(borders, nodes, csr_array((arcs.data[mask], ends), shape=arcs.shape))

    def border_ways(self) -> Ways:
        """Ways inside between borders."""
        ends = np.arange(len(self.borders))
        return Ways.between(self.graph, ends, ends)


@dataclass(frozen=True)
class Region:
    """A part between transit nodes. Its points are its borders, then the minor nodes inside.

    Attributes:
        borders: transit nodes around it, rising.
        nodes: nodes inside as the map calls them, in the order of their new numbers.
        start: the new number of the first of them.
        points: the points as `ways` and `cells` call them: borders first, then nodes inside.
        ways: the shortest ways inside between points that no border is in the middle of.
        cells: the parts that borders and minor nodes leave apart.
    """

    borders: Ints
    nodes: Ints
    start: int
    points: Ints
    ways: Ways
    cells: list[Part]

    def names(self, nodes: Ints) -> Ints:
        """New numbers of what the region's graph calls `nodes`."""
        count = len(self.borders)
        inner = self.start + nodes - count
        return np.where(nodes < count, np.append(self.borders, 0)[np.minimum(nodes, count)], inner)


def regions_of(graph: Graph, label: Ints) -> list[Region]:
    """Regions of a map by the part each node is in; nodes without one are transit nodes.

    Transit nodes get the numbers 0.., in their order; other nodes those after, region by region.
    """
    transit = np.flatnonzero(label < 0)
    start, regions = len(transit), []
    for part in _parts(graph, label):
        ordered = Part.of(graph, part.borders, part.nodes[_strung(part)])
        regions.append(_region(ordered, np.searchsorted(transit, part.borders), start))
        start += len(part.nodes)
    return regions


def _parts(graph: Graph, label: Ints) -> list[Part]:
    """Each part and the nodes of the cut around it; those around none go to the first part."""
    arcs = graph.tocoo()
    outward = (label[arcs.row] >= 0) & (label[arcs.col] < 0)
    lonely = label < 0
    lonely[arcs.col[outward]] = False
    tails = np.concatenate([label[arcs.row[outward]], np.zeros(lonely.sum(), np.int64)])
    touching = np.concatenate([arcs.col[outward], np.flatnonzero(lonely)])
    return [
        Part.of(graph, np.unique(touching[tails == part]), np.flatnonzero(label == part))
        for part in range(label.max() + 1)
    ]


def _strung(part: Part) -> Ints:
    """The nodes inside, strung together along the streets that most ways through take.

    A way is then a few runs of numbers, and most streets lead from a number to the next.
    """
    ways, count, size = part.border_ways(), len(part.borders), len(part.nodes)
    lengths = ways.lengths.copy()
    np.fill_diagonal(lengths, np.inf)
    # Nobody who goes farther takes a way that is longer than over a third border.
    over = (lengths[:, :, None] + lengths).min(axis=1, initial=np.inf)
    pairs = np.argwhere(np.triu(np.isfinite(lengths) & (lengths <= over))).tolist()
    middles = [ways.middle(item, other) for item, other in pairs]
    steps = [step for middle in middles for step in pairwise(middle)]
    tips = np.array([middle[0] for middle in middles], np.int64) - count
    inner = part_of(part.graph, count + np.arange(size)).tocoo()
    ends = np.array(steps, np.int64).reshape(-1, 2).T - count
    ends = np.concatenate([[inner.row, inner.col], ends, ends[::-1]], axis=1)
    used = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(size, size)).tocoo()
    order = np.lexsort((-used.data, used.row))
    first = np.searchsorted(used.row[order], np.arange(size + 1))
    liked = csr_array((used.data[order], used.col[order], first), shape=used.shape)
    results: list[Ints] = []
    met = np.zeros(size, bool)
    for start in np.argsort(-np.bincount(tips, minlength=size), kind="stable").tolist():
        if not met[start]:
            results.append(csgraph.depth_first_order(liked, start, return_predecessors=False))
            met[results[-1]] = True
    return np.concatenate(results)


def _region(part: Part, borders: Ints, start: int) -> Region:
    count, size = len(borders), len(part.nodes)
    inner = part_of(part.graph, count + np.arange(size))
    label = np.full(count + size, -1, np.int64)
    label[count:] = divide(inner, min(max(CELLS, count // CELL_BORDERS), size // CELL_NODES))
    minor = count + np.flatnonzero(label[count:] < 0)
    points = np.concatenate([np.arange(count), minor])
    ways = Ways.between(part.graph, points, np.arange(count))
    cells = [
        Part(item.borders, item.nodes, useful(item.graph)) for item in _parts(part.graph, label)
    ]
    return Region(borders, part.nodes, start, points, ways, cells)
