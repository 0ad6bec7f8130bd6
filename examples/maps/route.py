"""The client: the shortest way between two nodes, in two rounds that look the same for all.

    router = Router(louver.connect("providers://a:7001,b:7001"), Atlas.load(path))
    route = router.route(source, target)

Round 1 asks `cells` for the rows of both regions and the distances between their transit nodes;
round 2 asks `transit` for the one way that turned out to be part of the shortest.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from examples.maps.build import Atlas, pair_number, regions_number
from examples.maps.graph import FAR, dijkstra
from examples.maps.records import Streets, read_distances, read_streets, read_way


class Connection(Protocol):
    """What asks SQL: Louver's, or DuckDB's where nothing has to stay private."""

    def execute(self, sql: str, parameters: Any = ...) -> Any:
        """Run SQL with ``?`` for each parameter; the result has fetchall."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """A shortest way: its length in the map's unit and all its nodes, ends included.

    Where no way leads from one to the other, `length` is None and there are no nodes.
    """

    length: int | None
    nodes: list[int]


class Router:
    """Answers questions about one map; holds nothing of them afterwards."""

    def __init__(self, connection: Connection, atlas: Atlas) -> None:
        self._connection = connection
        self._atlas = atlas
        marks = ", ".join("?" * (2 * atlas.pieces + 1))
        #: The SQL of both rounds: the same for every question.
        self.sql = (
            f"SELECT cell, data FROM cells WHERE cell IN ({marks}) "
            f"ORDER BY cell LIMIT {2 * atlas.pieces + 1}",
            "SELECT pair, distance, path FROM transit WHERE pair = ? ORDER BY pair LIMIT 1",
        )

    def route(self, source: int, target: int) -> Route:
        """The shortest way, in the tables' numbers. IndexError for a node that is not there."""
        homes = self._home(source), self._home(target)
        here, there, between = self._regions(*homes)
        near, near_before = dijkstra(here.neighbours, here.local(source))
        far, far_before = dijkstra(there.neighbours, there.local(target))
        inside = near.get(here.local(target)) if homes[0] == homes[1] else None
        outside = (
            _lengths(near, len(here.borders))[:, None]
            + between
            + _lengths(far, len(there.borders))[None, :]
        )
        place = int(outside.argmin()) if outside.size else -1
        best = int(outside.flat[place]) if outside.size else int(FAR)
        if inside is not None and inside <= best:
            best, place = inside, -1
        ends = divmod(place, len(there.borders)) if best < FAR and place >= 0 else None
        pair = (here.borders[ends[0]], there.borders[ends[1]]) if ends else None
        # Asked in any case, so that nobody learns whether the way leaves the region.
        middle = self._way(pair)
        if best >= FAR:
            return Route(None, [])
        if ends is None:
            back = _trail(near_before, here.local(target))
            return Route(best, [here.name(node) for node in reversed(back)])
        first = _trail(near_before, ends[0])[::-1]
        last = _trail(far_before, ends[1])
        nodes = [here.name(node) for node in first]
        nodes += middle[1:]
        nodes += [there.name(node) for node in last[1:]]
        return Route(best, nodes)

    def _home(self, node: int) -> int:
        if 0 <= node < self._atlas.transit:
            return self._atlas.homes[node]
        if not 0 <= node < self._atlas.starts[-1]:
            raise IndexError(f"the map has no node {node}")
        return int(np.searchsorted(self._atlas.starts, node, side="right")) - 1

    def _regions(self, one: int, other: int) -> tuple[Streets, Streets, Any]:
        """Round 1: both regions, and distances from the borders of one to those of the other."""
        pieces = self._atlas.pieces
        keys = [region * pieces + at for region in (one, other) for at in range(pieces)]
        between = regions_number(self._atlas.regions, pieces, one, other)
        rows = self._connection.execute(self.sql[0], [*keys, between]).fetchall()
        data = {int(cell): bytes(piece) for cell, piece in rows}
        if not data.keys() >= {*keys, between}:
            raise ValueError("the provider's map does not fit this atlas")
        here, there = (
            read_streets(b"".join(data[region * pieces + at] for at in range(pieces)))
            for region in (one, other)
        )
        table = read_distances(data[between])
        return here, there, table if one <= other else table.T

    def _way(self, pair: tuple[int, int] | None) -> list[int]:
        """Round 2: nodes between two transit nodes. For none a random row is asked for."""
        count = self._atlas.transit
        rows = count * (count - 1) // 2
        asked = pair is not None and pair[0] != pair[1]
        key = pair_number(*pair) if pair and asked else secrets.randbelow(max(1, rows))
        found = self._connection.execute(self.sql[1], [key]).fetchall()
        if pair is None:
            return []
        if not asked:
            return [pair[0]]
        if len(found) != 1 or int(found[0][0]) != key:
            raise ValueError("the provider's map does not fit this atlas")
        way = read_way(max(pair), bytes(found[0][2]), self._atlas.starts)
        return way if pair[0] == max(pair) else way[::-1]


def _lengths(found: dict[int, int], borders: int) -> Any:
    return np.array([found.get(border, int(FAR)) for border in range(borders)], np.int64)


def _trail(before: dict[int, int], node: int) -> list[int]:
    """From a node back to where the search began."""
    trail = [node]
    while before[trail[-1]] != trail[-1]:
        trail.append(before[trail[-1]])
    return trail
