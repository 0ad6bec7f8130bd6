"""Street graphs: undirected, with whole weights of at least 1, as arrays.

Nodes are 0..n-1. Every street is held in both directions, sorted by where it begins.
"""

from __future__ import annotations

import heapq
import lzma
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: No way leads there. Sums of two such still fit.
FAR = np.int64(1) << 60


@dataclass(frozen=True)
class Graph:
    """A street graph.

    Attributes:
        first: shape (n + 1,): arcs of node v are first[v]..first[v + 1].
        heads: shape (arcs,): where each arc leads.
        weights: shape (arcs,): its length, in the map's unit.
    """

    first: Ints
    heads: Ints
    weights: Ints

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.first) - 1

    @property
    def tails(self) -> Ints:
        """Shape (arcs,): where each arc begins."""
        return np.repeat(np.arange(self.size), np.diff(self.first))

    @staticmethod
    def of(size: int, tails: Ints, heads: Ints, weights: Ints) -> Graph:
        """From streets, each given once or more often: the shortest of parallel ones is kept."""
        from_all = np.concatenate([tails, heads])
        to_all = np.concatenate([heads, tails])
        weight_all = np.concatenate([weights, weights])
        keep = from_all != to_all
        from_all, to_all, weight_all = from_all[keep], to_all[keep], weight_all[keep]
        order = np.lexsort((weight_all, to_all, from_all))
        from_all, to_all, weight_all = from_all[order], to_all[order], weight_all[order]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(from_all) != 0) | (np.diff(to_all) != 0)
        from_all, to_all, weight_all = from_all[new], to_all[new], weight_all[new]
        first = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(from_all, minlength=size), out=first[1:])
        return Graph(first, to_all, weight_all)

    def streets(self) -> tuple[Ints, Ints, Ints]:
        """Every street once: its ends, the smaller first, and its weight."""
        tails = self.tails
        once = tails < self.heads
        return tails[once], self.heads[once], self.weights[once]

    def renumbered(self, names: Ints) -> Graph:
        """The same graph with node v called names[v]; names are a permutation."""
        tails, heads, weights = self.streets()
        return Graph.of(self.size, names[tails], names[heads], weights)

    def without(self, arcs: Flags) -> Graph:
        """The same nodes without the arcs marked, which come in pairs of both directions."""
        first = np.concatenate([[0], np.cumsum(~arcs)])[self.first]
        return Graph(first, self.heads[~arcs], self.weights[~arcs])

    def part(self, nodes: Ints) -> Graph:
        """The streets between `nodes` alone, which are called 0.. in the order given."""
        local = np.full(self.size, -1, np.int64)
        local[nodes] = np.arange(len(nodes))
        arcs, counts = arcs_of(self.first, nodes)
        tails = np.repeat(np.arange(len(nodes)), counts)
        heads = local[self.heads[arcs]]
        inside = heads >= 0
        first = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(np.bincount(tails[inside], minlength=len(nodes)), out=first[1:])
        return Graph(first, heads[inside], self.weights[arcs][inside])


def arcs_of(first: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """Numbers of all arcs of `nodes`, in their order, and how many each has."""
    counts = first[nodes + 1] - first[nodes]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first[nodes] - (ends - counts), counts), counts


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
    return Graph.of(int(ends[:, :2].max()), tails - 1, heads - 1, made_weight(tails, heads))


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
    levels = hops(graph, np.array([0]))
    levels[levels < 0] = graph.size
    return graph.part(np.sort(np.argsort(levels, kind="stable")[:size]))


def hops(graph: Graph, starts: Ints) -> Ints:
    """Shape (n,): how many streets away each node is from the nearest start; -1: none leads."""
    level = np.full(graph.size, -1, np.int64)
    level[starts] = 0
    front, step = starts, 0
    while len(front):
        step += 1
        arcs, _ = arcs_of(graph.first, front)
        heads = graph.heads[arcs]
        heads = heads[level[heads] < 0]
        level[heads] = step
        front = np.unique(heads)
    return level


def components(graph: Graph) -> Ints:
    """Shape (n,): a number for each node, equal where a way leads from one to the other."""
    label = np.arange(graph.size)
    tails, heads, _ = graph.streets()
    while True:
        low = np.minimum(label[tails], label[heads])
        before = label.copy()
        np.minimum.at(label, label[tails], low)
        np.minimum.at(label, label[heads], low)
        label = label[label]
        if np.array_equal(before, label):
            return np.unique(label, return_inverse=True)[1].astype(np.int64)


def dijkstra(
    neighbours: list[list[tuple[int, int]]], start: int, limit: int | None = None
) -> tuple[dict[int, int], dict[int, int]]:
    """Distances from `start` (no farther than `limit`), and the node before each on its way."""
    distances: dict[int, int] = {}
    before: dict[int, int] = {}
    queue = [(0, start, start)]
    while queue:
        distance, node, last = heapq.heappop(queue)
        if node in distances:
            continue
        distances[node] = distance
        before[node] = last
        for head, weight in neighbours[node]:
            if head not in distances and (limit is None or distance + weight <= limit):
                heapq.heappush(queue, (distance + weight, head, node))
    return distances, before


def neighbours_of(graph: Graph) -> list[list[tuple[int, int]]]:
    """For every node its neighbours and how far they are."""
    pairs = list(zip(graph.heads.tolist(), graph.weights.tolist(), strict=True))
    first = graph.first.tolist()
    return [pairs[first[v] : first[v + 1]] for v in range(graph.size)]


def useful(graph: Graph) -> Graph:
    """Without streets longer than another way between their ends: no shortest way takes them."""
    neighbours = neighbours_of(graph)
    first = graph.first.tolist()
    useless = np.zeros(len(graph.heads), bool)
    for node, around in enumerate(neighbours):
        if len(around) < 2:
            continue
        widest = max(weight for _, weight in around)
        near = dijkstra(neighbours, node, widest)[0]
        for place, (head, weight) in enumerate(around, first[node]):
            useless[place] = near[head] < weight
    return graph.without(useless)
