"""Regions, which transit nodes leave apart, and cells, which minor nodes leave apart in them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from examples.maps.graph import FAR, Flags, Graph, Ints, components, neighbours_of
from examples.maps.partition import Dissection

#: Parts smaller than this share of the largest join a neighbour.
SMALL = 0.3


@dataclass(frozen=True)
class Part:
    """Nodes that only `borders` join to the others.

    Attributes:
        borders: nodes of the whole graph around it, rising.
        nodes: nodes of the whole graph inside, rising.
        graph: streets among borders (called 0..) and nodes (called len(borders)..), none of
            them between two borders.
    """

    borders: Ints
    nodes: Ints
    graph: Graph


@dataclass(frozen=True)
class Region:
    """A part between transit nodes, and ways inside of it.

    Its points are its borders, then the minor nodes inside.

    Attributes:
        part: its nodes; its borders are transit nodes.
        borders: their numbers among transit nodes, rising.
        points: the points as `part.graph` calls them.
        distances: shape (points, points): the shortest way inside that no border is in the
            middle of, or FAR.
        ways: the nodes in the middle of that way between two points, as `part.graph` calls them.
        cells: the parts that borders and minor nodes leave apart.
    """

    part: Part
    borders: Ints
    points: Ints
    distances: Ints
    ways: dict[tuple[int, int], list[int]]
    cells: list[Part]

    @property
    def nodes(self) -> Ints:
        """Nodes inside."""
        return self.part.nodes

    def between_borders(self) -> Ints:
        """Shape (borders, borders): distances inside."""
        count = len(self.borders)
        return self.distances[:count, :count]

    def point_nodes(self) -> Ints:
        """The points as the whole graph calls them."""
        return np.concatenate([self.part.borders, self.part.nodes])[self.points]


def regions_of(graph: Graph, found: Dissection) -> list[Region]:
    """All regions; every node that is no transit node lies inside of exactly one."""
    everywhere = np.zeros(graph.size, np.int64)
    parts = _parts(graph, found.transit, everywhere)
    label = np.full(graph.size, -1, np.int64)
    for number, part in enumerate(parts):
        label[part.nodes] = number
    minor = np.zeros(graph.size, bool)
    minor[found.minor] = True
    cells: list[list[Part]] = [[] for _ in parts]
    for cell in _parts(graph, np.sort(np.concatenate([found.transit, found.minor])), label):
        cells[int(label[cell.nodes[0]])].append(cell)
    return [
        _region(part, np.searchsorted(found.transit, part.borders), minor[part.nodes], mine)
        for part, mine in zip(parts, cells, strict=True)
    ]


def _parts(graph: Graph, cut: Ints, within: Ints) -> list[Part]:
    """What `cut` leaves apart; small ones joined to others of the same `within`."""
    inside = np.ones(graph.size, bool)
    inside[cut] = False
    nodes = np.flatnonzero(inside)
    label = np.full(graph.size, -1, np.int64)
    label[nodes] = components(graph.part(nodes))
    tails, heads = graph.tails, graph.heads
    outward = (label[tails] >= 0) & (label[heads] < 0)
    tails, heads = tails[outward], heads[outward]
    touching = np.unique(np.stack([label[tails], heads], axis=1), axis=0)
    _, some = np.unique(label[nodes], return_index=True)
    label = _joined(label, touching, within[nodes][some])
    borders: list[set[int]] = [set() for _ in range(int(label.max()) + 1)]
    for part, border in zip(label[tails].tolist(), heads.tolist(), strict=True):
        borders[part].add(border)
    for lonely in sorted(set(cut.tolist()).difference(*borders)):
        of = label[nodes[within[nodes] == within[lonely]][0]] if within[lonely] >= 0 else 0
        borders[int(of)].add(lonely)
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(len(borders) + 1))
    return [
        _part(graph, np.array(sorted(around), np.int64), order[low:high])
        for around, (low, high) in zip(borders, pairwise(bounds.tolist()), strict=True)
    ]


def _part(graph: Graph, borders: Ints, nodes: Ints) -> Part:
    part = graph.part(np.concatenate([borders, nodes]))
    # A street between two borders belongs to no part: ways over it are ways between transit
    # nodes, or points.
    count = len(borders)
    return Part(borders, nodes, part.without((part.tails < count) & (part.heads < count)))


def _joined(label: Ints, touching: Ints, within: Ints) -> Ints:
    """Labels after small parts have joined the neighbour with most borders in common."""
    sizes = np.bincount(label[label >= 0]).tolist()
    around: list[set[int]] = [set() for _ in sizes]
    at: dict[int, set[int]] = {}
    for part, border in touching.tolist():
        around[part].add(border)
        at.setdefault(border, set()).add(part)
    limit = max(sizes)
    into = list(range(len(sizes)))
    # Islands without a border are put together: they need rows for nothing but themselves.
    last = -1
    for part in (one for one in range(len(sizes)) if not around[one]):
        if last >= 0 and sizes[last] + sizes[part] <= limit and within[last] == within[part]:
            into[part] = last
            sizes[last] += sizes[part]
        else:
            last = part
    for part in sorted(range(len(sizes)), key=lambda p: sizes[p]):
        if sizes[part] >= SMALL * limit:
            break
        others = {other for border in around[part] for other in at[border]} - {part}
        fitting = [
            other
            for other in others
            if sizes[other] + sizes[part] <= limit and within[other] == within[part]
        ]
        if not fitting:
            continue
        best = max(fitting, key=lambda o: (len(around[o] & around[part]), -sizes[o], -o))
        into[part] = best
        sizes[best] += sizes[part]
        for border in around[part]:
            at[border].discard(part)
            at[border].add(best)
        around[best] |= around[part]
    for part in range(len(into)):
        while into[part] != into[into[part]]:
            into[part] = into[into[part]]
    table = np.unique(np.array(into), return_inverse=True)[1].astype(np.int64)
    return np.where(label >= 0, table[label], -1)


def _region(part: Part, borders: Ints, minor: Flags, cells: list[Part]) -> Region:
    neighbours = neighbours_of(part.graph)
    count = len(borders)
    points = np.concatenate([np.arange(count), count + np.flatnonzero(minor)])
    distances = np.full((len(points), len(points)), FAR)
    np.fill_diagonal(distances, 0)
    ways: dict[tuple[int, int], list[int]] = {}
    places = points.tolist()
    for one, start in enumerate(places):
        found, before = _within(neighbours, start, count)
        for other in range(one + 1, len(places)):
            node = places[other]
            if node not in found:
                continue
            distances[one, other] = distances[other, one] = found[node]
            way = []
            while (node := before[node]) != start:
                way.append(node)
            ways[other, one] = way
            ways[one, other] = way[::-1]
    return Region(part, borders, points, distances, ways, cells)


def within_borders(part: Part) -> Ints:
    """Shape (borders, borders): the shortest way inside that no border is in the middle of."""
    neighbours = neighbours_of(part.graph)
    count = len(part.borders)
    out = np.full((count, count), FAR)
    for border in range(count):
        found = _within(neighbours, border, count)[0]
        out[border] = [found.get(other, int(FAR)) for other in range(count)]
    return out


def _within(
    neighbours: list[list[tuple[int, int]]], start: int, count: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Dijkstra's search that goes on from no node below `count` but its start."""
    distances: dict[int, int] = {}
    before: dict[int, int] = {}
    queue = [(0, start, start)]
    while queue:
        distance, node, last = heapq.heappop(queue)
        if node in distances:
            continue
        distances[node] = distance
        before[node] = last
        if node < count and node != start:
            continue
        for head, weight in neighbours[node]:
            if head not in distances:
                heapq.heappush(queue, (distance + weight, head, node))
    return distances, before


def all_distances(graph: Graph, transit: Ints, regions: list[Region]) -> tuple[Ints, Ints, Ints]:
    """Between all transit nodes: distances, the transit node before the last, and its region.

    Each of shape (transit nodes, transit nodes). The region is -1 where the last step is a
    street between two transit nodes. By Floyd and Warshall, a row of all at once.
    """
    count = len(transit)
    steps = np.full((count, count), FAR)
    via = np.full((count, count), -1, np.int64)
    direct = graph.part(transit)
    steps[direct.tails, direct.heads] = direct.weights
    for number, region in enumerate(regions):
        place = np.ix_(region.borders, region.borders)
        inside = region.between_borders()
        nearer = inside < steps[place]
        steps[place] = np.where(nearer, inside, steps[place])
        via[place] = np.where(nearer, number, via[place])
    np.fill_diagonal(steps, 0)
    distances = steps.copy()
    before = np.where(steps < FAR, np.arange(count)[:, None], -1)
    for middle in range(count):
        other = distances[:, middle, None] + distances[middle]
        nearer = other < distances
        np.copyto(distances, other, where=nearer)
        np.copyto(before, before[middle], where=nearer)
    return distances, before, via
