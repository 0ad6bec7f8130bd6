"""Which nodes are transit nodes: those whose removal leaves regions of bounded size.

Every way between two regions passes transit nodes, which makes transit-node routing exact. They
are found by nested dissection: a smallest set of nodes between two far ends of a part (a largest
flow of disjoint paths, as in inertial flow, whose ends come from breadth-first searches instead
of coordinates) splits it, and the parts are split again until they are small.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from examples.maps.graph import Flags, Graph, Ints, arcs_of, components, hops

Floats = npt.NDArray[np.float64]

#: Shares of a part's nodes that are surely on either side of its cut.
FRACTIONS = (0.28, 0.4)
#: Bits that a node takes in a region's record, and half a street.
NODE_LOAD, STREET_LOAD = 6, 5
#: How many pairs of far ends are tried for each cut.
DIRECTIONS = 4
#: Of a part with so few crossings, half as many.
FEW = 400


@dataclass(frozen=True)
class Core:
    """A graph without dead ends and chains, which no smallest cut needs.

    Attributes:
        graph: its nodes are those with at least three ways on.
        nodes: shape (core nodes,): what they are called in the whole graph.
        load: shape (core nodes,): bits that the map near each takes, which cuts have to balance.
    """

    graph: Graph
    nodes: Ints
    load: Ints


def core_of(graph: Graph) -> Core:
    """Strip dead ends, then draw chains of nodes with two ways together."""
    degree = np.diff(graph.first).copy()
    load = NODE_LOAD + degree * STREET_LOAD
    gone = np.zeros(graph.size, bool)
    leaves = np.flatnonzero(degree == 1)
    while len(leaves):
        gone[leaves] = True
        arcs, counts = arcs_of(graph.first, leaves)
        heads, tails = graph.heads[arcs], np.repeat(leaves, counts)
        heads, tails = heads[~gone[heads]], tails[~gone[heads]]
        np.add.at(load, heads, load[tails])
        np.subtract.at(degree, heads, 1)
        leaves = np.unique(heads[degree[heads] == 1])
    near: dict[int, set[int]] = {}
    firsts = graph.first.tolist()
    heads_list, gone_list = graph.heads.tolist(), gone.tolist()
    for node in np.flatnonzero(~gone).tolist():
        around = heads_list[firsts[node] : firsts[node + 1]]
        near[node] = {head for head in around if not gone_list[head]}
    loads = load.tolist()
    queue = [node for node, around in near.items() if len(around) == 2]
    while queue:
        node = queue.pop()
        around = near.get(node, set())
        if len(around) != 2:
            continue
        one, other = around
        del near[node]
        loads[one] += loads[node] // 2
        loads[other] += loads[node] - loads[node] // 2
        for here, there in ((one, other), (other, one)):
            near[here].discard(node)
            near[here].add(there)
            if len(near[here]) == 2:
                queue.append(here)
    nodes = np.array(sorted(near), np.int64)
    local = np.zeros(graph.size, np.int64)
    local[nodes] = np.arange(len(nodes))
    tails = np.repeat(nodes, [len(near[v]) for v in nodes.tolist()])
    heads = np.array([h for v in nodes.tolist() for h in near[v]], np.int64)
    ones = np.ones(len(tails), np.int64)
    core = Graph.of(len(nodes), local[tails], local[heads], ones)
    return Core(core, nodes, np.array(loads, np.int64)[nodes])


class Flow:
    """Disjoint paths between two sets of nodes: Dinic's algorithm on nodes split in two.

    Node v becomes v (in) and v + n (out) with an arc of capacity 1 between them.
    """

    def __init__(self, graph: Graph, sources: Flags, sinks: Flags) -> None:
        n = self.n = graph.size
        nodes = np.arange(n)
        tails = np.concatenate([nodes, graph.tails + n])
        heads = np.concatenate([nodes + n, graph.heads])
        many = np.full(len(graph.heads), n)
        one = np.where(sources | sinks, n, 1)
        count = len(tails)
        order = np.argsort(np.concatenate([tails, heads]), kind="stable")
        place = np.empty(2 * count, np.int64)
        place[order] = np.arange(2 * count)
        self.heads = np.concatenate([heads, tails])[order]
        self.back = place[(order + count) % (2 * count)]
        self.first = np.zeros(2 * n + 1, np.int64)
        every = np.bincount(np.concatenate([tails, heads]), minlength=2 * n)
        np.cumsum(every, out=self.first[1:])
        self.sources, self.sinks = np.flatnonzero(sources), np.flatnonzero(sinks)
        self.rest = np.concatenate([one, many, np.zeros(count, np.int64)])[order]

    def levels(self, stop: Flags | None) -> Ints:
        """Steps to the sinks by arcs with capacity left, or -1; done where it meets `stop`."""
        level = np.full(2 * self.n, -1, np.int64)
        level[self.sinks + self.n] = 0
        front, step = self.sinks + self.n, 0
        usable = self.rest[self.back] > 0
        while len(front):
            step += 1
            arcs, _ = arcs_of(self.first, front)
            heads = self.heads[arcs]
            heads = heads[(level[heads] < 0) & usable[arcs]]
            level[heads] = step
            front = np.unique(heads)
            if stop is not None and stop[front].any():
                break
        return level

    def run(self, most: int) -> Ints | None:
        """The nodes of a smallest cut, or None where it has more than `most`."""
        stop = np.zeros(2 * self.n, bool)
        stop[self.sources] = True
        total = 0
        while True:
            level = self.levels(stop)
            reached = self.sources[level[self.sources] >= 0]
            if not len(reached):
                break
            total += self.block(level, reached.tolist(), most - total)
            if total > most:
                return None
        near = self.levels(None) >= 0
        return np.flatnonzero(near[self.n :] & ~near[: self.n])

    def block(self, level: Ints, starts: list[int], most: int) -> int:
        """Send what fits along arcs that lead one level nearer; how many paths that were."""
        sent = 0
        nexts: dict[int, int] = {}
        heads, rest, first, back = self.heads, self.rest, self.first, self.back
        for start in starts:
            trail: list[int] = []
            node = start
            while sent <= most:
                here = int(level[node])
                if here == 0:
                    rest[trail] -= 1
                    rest[back[trail]] += 1
                    sent += 1
                    trail, node = [], start
                    continue
                place, end = nexts.get(node, int(first[node])), int(first[node + 1])
                while place < end and not (rest[place] > 0 and level[heads[place]] == here - 1):
                    place += 1
                nexts[node] = place
                if place < end:
                    trail.append(place)
                    node = int(heads[place])
                elif trail:
                    node = int(heads[back[trail.pop()]])
                    nexts[node] += 1
                else:
                    break
        return sent


def split(graph: Graph, load: Ints, draw: np.random.Generator) -> Ints:
    """A small set of nodes whose removal leaves no part with much more than two thirds."""
    best, best_score = np.zeros(0, np.int64), float("inf")
    enough = DIRECTIONS if graph.size > FEW else DIRECTIONS // 2
    for attempt in range(4 * DIRECTIONS):
        if attempt >= enough and len(best):
            break
        start = hops(graph, draw.integers(graph.size, size=1))
        one = hops(graph, np.array([start.argmax()])) if attempt % 2 else start
        other = hops(graph, np.array([one.argmax()]))
        third = hops(graph, draw.integers(graph.size, size=1))
        order = np.lexsort((third, one - other))
        share = np.empty(graph.size)
        share[order] = np.cumsum(load[order]) / load.sum()
        for fraction in FRACTIONS:
            found = _cut_between(graph, share, fraction, min(best_score * 1.5, graph.size))
            if found is None or not len(found):
                continue
            score = _score(graph, load, found)
            if score < best_score:
                best, best_score = found, score
    return best


def _cut_between(graph: Graph, share: Floats, fraction: float, most: float) -> Ints | None:
    """The smallest cut between the first and the last `fraction` of the nodes."""
    side = np.where(share <= fraction, -1, np.where(share >= 1 - fraction, 1, 0))
    here, there = side[graph.tails], side[graph.heads]
    if ((here < 0) & (there > 0)).any() or not ((side < 0).any() and (side > 0).any()):
        return None
    kept = side == 0
    kept[graph.tails[here != there]] = True
    nodes = np.flatnonzero(kept)
    flow = Flow(graph.part(nodes), side[nodes] < 0, side[nodes] > 0)
    found = flow.run(int(most))
    return None if found is None else nodes[found]


def _score(graph: Graph, load: Ints, separator: Ints) -> float:
    """Nodes of a separator, dearer where it leaves one side much larger."""
    rest = np.ones(graph.size, bool)
    rest[separator] = False
    kept = np.flatnonzero(rest)
    label = components(graph.part(kept))
    sizes = np.bincount(label, weights=load[kept].astype(float))
    largest = sizes.max() / load.sum()
    return float(len(separator) / max(1e-9, min(0.5, 1 - largest)) ** 0.6 * 0.5**0.6)


@dataclass(frozen=True)
class Dissection:
    """Nodes of the whole graph that part it.

    Attributes:
        transit: between regions, rising.
        minor: between the cells of a region, rising.
    """

    transit: Ints
    minor: Ints


def dissect(core: Core, budget: int, cells: int = 6, floor: int = 16, seed: int = 1) -> Dissection:
    """Split the heaviest part until `budget` transit nodes are taken; then on, into cells.

    A cell has at most about 1 / `cells` of the largest region's load. Parts of less than `floor`
    crossings are left whole.
    """
    draw = np.random.default_rng(seed)
    heap: list[tuple[int, int, Ints]] = []
    count = 0

    def push(nodes: Ints) -> None:
        nonlocal count
        label = components(core.graph.part(nodes))
        for number in range(int(label.max()) + 1 if len(label) else 0):
            mine = nodes[label == number]
            heapq.heappush(heap, (-int(core.load[mine].sum()), count, mine))
            count += 1

    push(np.arange(core.graph.size))
    taken: tuple[list[int], list[int]] = ([], [])
    limit = 0
    while heap and -heap[0][0] > limit:
        load, _, nodes = heapq.heappop(heap)
        if len(nodes) < floor:
            continue
        found = split(core.graph.part(nodes), core.load[nodes], draw)
        if not limit and len(taken[0]) + len(found) > budget:
            limit = -load // cells
        taken[1 if limit else 0].extend(nodes[found].tolist())
        if len(found):
            rest = np.ones(len(nodes), bool)
            rest[found] = False
            push(nodes[rest])
    transit, minor = (core.nodes[np.array(sorted(some), np.int64)] for some in taken)
    return Dissection(transit, minor)
