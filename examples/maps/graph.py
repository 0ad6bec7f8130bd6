"""Street graphs: SciPy's sparse matrices of street lengths, undirected, with whole weights >= 1.

Nodes are 0..n-1; row and column of a street are its ends, in both directions. Lengths are held
as 64-bit floats, exact below 2**53; where no way leads, they are infinite.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csgraph, csr_array, triu

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Graph: TypeAlias = csr_array


def graph_of(size: int, tails: Ints, heads: Ints, weights: Ints | Floats) -> Graph:
    """From streets, each given once or more often: the shortest of parallel ones is kept."""
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    order = np.lexsort((weights, high, low))
    order = order[low[order] != high[order]]
    mask = order[np.unique(np.stack([low, high])[:, order], axis=1, return_index=True)[1]]
    ends = np.concatenate([low[mask], high[mask]]), np.concatenate([high[mask], low[mask]])
    lengths = np.tile(np.asarray(weights, np.float64)[mask], 2)
    return csr_array((lengths, ends), shape=(size, size))


def streets_of(graph: Graph) -> tuple[Ints, Ints, Ints]:
    """Every street once: its ends, the smaller first, and its weight."""
    once = triu(graph).tocoo()
    return once.row.astype(np.int64), once.col.astype(np.int64), once.data.astype(np.int64)


def part_of(graph: Graph, nodes: Ints) -> Graph:
    """The streets between `nodes` alone, which are called 0.. in the order given."""
    return graph[nodes][:, nodes]


def renumbered(graph: Graph, names: Ints) -> Graph:
    """The same graph with node v called names[v]; names are a permutation."""
    return part_of(graph, np.argsort(names))


def read_dimacs(path: Path) -> Graph:
    """The graph of a DIMACS file of streets, `.xz` or plain, with weights made from its ids.

    A line "tail head" is a street between nodes counted from 1; lines of letters are comments
    or the head of the file ("p tw nodes streets"). See `made_weight` for the weights.
    """
    raw = path.read_bytes()
    text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode("ascii")
    lines = [line for line in text.split("\n") if line and line[0].isdigit()]
    ends = np.array(" ".join(lines).split(), np.int64).reshape(len(lines), -1)
    tails, heads = ends[:, 0], ends[:, 1]
    return graph_of(int(ends[:, :2].max()), tails - 1, heads - 1, made_weight(tails, heads))


def made_weight(tails: Ints, heads: Ints) -> Ints:
    """1..1000 from the ids of a street's ends: a multiplicative hash of the pair, smaller first.

    With a < b as counted in the file from 1: x = (a * 2^32 + b) * 0x9E3779B97F4A7C15 mod 2^64,
    x = x xor x >> 32, x = x * 0xD6E8FEB86659FD93 mod 2^64; the weight is 1 + (x >> 32) mod 1000.
    """
    low = np.minimum(tails, heads).astype(np.uint64)
    high = np.maximum(tails, heads).astype(np.uint64)
    mixed = (low << np.uint64(32) | high) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return (1 + (mixed >> np.uint64(32)) % np.uint64(1000)).astype(np.int64)


def cut(graph: Graph, size: int) -> Graph:
    """The first `size` nodes that a breadth-first search from node 0 meets, and their streets."""
    met = csgraph.breadth_first_order(graph, 0, return_predecessors=False)
    return part_of(graph, np.sort(met[:size]))


def useful(graph: Graph) -> Graph:
    """Without streets longer than another way between their ends: no shortest way takes them."""
    longest = graph.data.max(initial=0)
    lengths = csgraph.dijkstra(graph, limit=longest) if graph.nnz else np.zeros((0, 0))
    arcs = graph.tocoo()
    mask = lengths[arcs.row, arcs.col] >= arcs.data
    return csr_array((arcs.data[mask], (arcs.row[mask], arcs.col[mask])), shape=graph.shape)


@dataclass(frozen=True)
class Ways:
    """Shortest ways between some points of a graph, of those that no *end* is in the middle of.

    Attributes:
        lengths: shape (points, points).
        before: shape (points, nodes and copies): the node before each on the way from a point.
        points: shape (points,): the nodes that ways begin at.
        goals: shape (points,): where they end: at a copy of the node, if the node is an end.
    """

    lengths: Floats
    before: npt.NDArray[np.int32]
    points: Ints
    goals: Ints

    @staticmethod
    def between(graph: Graph, points: Ints, ends: Ints) -> Ways:
        """Arcs to an end lead to a copy of it, which no arc leaves."""
        size = graph.shape[0]
        goals = np.arange(size)
        goals[ends] = size + np.arange(len(ends))
        arcs = graph.tocoo()
        shape = (size + len(ends),) * 2
        split = csr_array((arcs.data, (arcs.row, goals[arcs.col])), shape=shape)
        if not len(points):
            return Ways(np.zeros((0, 0)), np.zeros((0, shape[0]), np.int32), points, points)
        lengths, before = csgraph.dijkstra(split, indices=points, return_predecessors=True)
        lengths = lengths[:, goals[points]]
        np.fill_diagonal(lengths, 0)
        return Ways(lengths, before, points, goals[points])

    def middle(self, item: int, other: int) -> list[int]:
        """The nodes between two points that a way joins."""
        row, way = self.before[item], []
        node = int(row[self.goals[other]])
        while node != self.points[item]:
            way.append(node)
            node = int(row[node])
        return way[::-1]
