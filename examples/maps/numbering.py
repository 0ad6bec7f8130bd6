"""What nodes are called in the tables: numbers that make ways short to write down.

Transit nodes come first, then region after region. Inside of a region nodes are strung together
along the streets that most shortest ways take, so that a way is a few runs of numbers that
follow each other, and most streets lead from a number to the next.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from examples.maps.graph import Ints
from examples.maps.regions import Region


def names_of(size: int, transit: Ints, regions: list[Region], before: Ints, via: Ints) -> Ints:
    """Shape (n,): the new number of each node of the whole graph; a permutation."""
    names = np.full(size, -1, np.int64)
    names[transit] = np.arange(len(transit))
    used = _used(before)
    at = len(transit)
    for number, region in enumerate(regions):
        mine = used[np.ix_(region.borders, region.borders)]
        mine = np.where(via[np.ix_(region.borders, region.borders)] == number, mine, 0)
        for node in _order(region, mine + mine.T):
            names[region.nodes[node]] = at
            at += 1
    return names


def _used(before: Ints) -> Ints:
    """Shape (transit, transit): in how many trees of shortest ways a step from a to b is."""
    count = len(before)
    used = np.zeros((count, count), np.int64)
    ends = np.broadcast_to(np.arange(count), before.shape)
    known = (before >= 0) & (before != ends)
    np.add.at(used, (before[known], ends[known]), 1)
    return used


def _order(region: Region, used: Ints) -> list[int]:
    """Nodes of a region, counted from 0, string after string."""
    borders, size = len(region.borders), len(region.nodes)
    taken: dict[tuple[int, int], int] = {}
    for (one, other), way in region.ways.items():
        weight = int(used[one, other]) if one < other < borders else 0
        if weight:
            for pair in pairwise(way):
                key = (min(pair) - borders, max(pair) - borders)
                taken[key] = taken.get(key, 0) + weight
    tails, heads, _ = region.part.graph.streets()
    inside = tails >= borders
    pairs = zip((tails[inside] - borders).tolist(), (heads[inside] - borders).tolist(), strict=True)
    around: list[list[int]] = [[] for _ in range(size)]
    strings: list[list[int]] = [[] for _ in range(size)]
    root = list(range(size))
    for one, other in sorted(pairs, key=lambda pair: -taken.get(pair, 0)):
        around[one].append(other)
        around[other].append(one)
        if len(strings[one]) == 2 or len(strings[other]) == 2:
            continue
        first, second = _root(root, one), _root(root, other)
        if first != second:
            root[first] = second
            strings[one].append(other)
            strings[other].append(one)
    return _walk(around, strings)


def _root(root: list[int], node: int) -> int:
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def _walk(around: list[list[int]], strings: list[list[int]]) -> list[int]:
    """Every string whole, those that touch each other near each other."""
    out: list[int] = []
    done = [False] * len(around)
    for start in range(len(around)):
        queue = [start]
        while queue:
            node = queue.pop()
            if done[node]:
                continue
            string = _string(strings, node)
            if 2 * string.index(node) > len(string):
                string.reverse()
            for member in string:
                done[member] = True
            out.extend(string)
            queue.extend(head for member in string for head in around[member] if not done[head])
    return out


def _string(strings: list[list[int]], node: int) -> list[int]:
    """The string that holds a node, from one of its ends to the other."""
    last, here = -1, node
    while onward := [v for v in strings[here] if v != last]:
        last, here = here, onward[0]
    string, last = [here], -1
    while True:
        onward = [v for v in strings[string[-1]] if v != last]
        if not onward:
            return string
        last = string[-1]
        string.append(onward[0])
