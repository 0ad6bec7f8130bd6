"""Regions: what transit nodes leave apart, with all that a question inside of one needs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from examples.maps.graph import FAR, Graph, Ints, components, neighbours_of

#: Parts smaller than this share of the largest join a neighbour.
SMALL = 0.3


@dataclass
class Region:
    """A part of the map between transit nodes.

    Attributes:
        borders: numbers of the transit nodes around it, rising.
        nodes: the nodes inside, as the whole graph calls them.
        graph: streets among borders (called 0..) and nodes (called len(borders)..).
        distances: shape (borders, borders): the shortest way inside that passes no third
            transit node, or FAR.
        ways: nodes between two borders on that way, as `graph` calls them.
    """

    borders: Ints
    nodes: Ints
    graph: Graph
    distances: Ints
    ways: dict[tuple[int, int], list[int]]


def regions_of(graph: Graph, transit: Ints) -> list[Region]:
    """All regions; every node that is no transit node lies inside of exactly one."""
    inside = np.ones(graph.size, bool)
    inside[transit] = False
    nodes = np.flatnonzero(inside)
    label = np.full(graph.size, -1, np.int64)
    label[nodes] = components(graph.part(nodes))
    tails, heads, _ = graph.streets()
    number = np.full(graph.size, -1, np.int64)
    number[transit] = np.arange(len(transit))
    touching = np.concatenate(
        [
            np.stack([label[tails], number[heads]], axis=1),
            np.stack([label[heads], number[tails]], axis=1),
        ]
    )
    touching = np.unique(touching[(touching >= 0).all(axis=1)], axis=0)
    label = _joined(label, touching, len(transit))
    borders: dict[int, set[int]] = {region: set() for region in range(int(label.max()) + 1)}
    for one, other in ((tails, heads), (heads, tails)):
        touch = (label[one] >= 0) & (number[other] >= 0)
        for region, border in zip(label[one][touch], number[other][touch], strict=True):
            borders[int(region)].add(int(border))
    for lonely in set(range(len(transit))).difference(*borders.values()):
        borders[0].add(lonely)
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(len(borders) + 1))
    return [
        _region(graph, transit, np.array(sorted(borders[r]), np.int64), order[low:high])
        for r, (low, high) in enumerate(pairwise(bounds))
    ]


def _joined(label: Ints, touching: Ints, transit_count: int) -> Ints:
    """Labels after small parts have joined the neighbour with most transit nodes in common."""
    sizes = np.bincount(label[label >= 0]).tolist()
    around: list[set[int]] = [set() for _ in sizes]
    at: list[set[int]] = [set() for _ in range(transit_count)]
    for part, border in touching.tolist():
        around[part].add(border)
        at[border].add(part)
    limit = max(sizes)
    into = list(range(len(sizes)))
    for part in sorted(range(len(sizes)), key=lambda p: sizes[p]):
        if sizes[part] >= SMALL * limit:
            break
        others = {other for border in around[part] for other in at[border]} - {part}
        fitting = [other for other in others if sizes[other] + sizes[part] <= limit]
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


def _region(graph: Graph, transit: Ints, borders: Ints, nodes: Ints) -> Region:
    part = graph.part(np.concatenate([transit[borders], nodes]))
    count = len(borders)
    # A street between two transit nodes belongs to no region: all ways over it are in `transit`.
    part = part.without((part.tails < count) & (part.heads < count))
    neighbours = neighbours_of(part)
    distances = np.full((count, count), FAR)
    ways: dict[tuple[int, int], list[int]] = {}
    for border in range(count):
        found, before = _within(neighbours, border, count)
        distances[border, border] = 0
        for other in range(border + 1, count):
            if other not in found:
                continue
            distances[border, other] = distances[other, border] = found[other]
            way = []
            node = before[other]
            while node != border:
                way.append(node)
                node = before[node]
            ways[other, border] = way
            ways[border, other] = way[::-1]
    return Region(borders, nodes, part, distances, ways)


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
        nearer = region.distances < steps[place]
        steps[place] = np.where(nearer, region.distances, steps[place])
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
