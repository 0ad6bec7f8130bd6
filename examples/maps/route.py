"""The client: the shortest way between two nodes, in two rounds that look the same for all.

    router = Router(louver.connect("providers://a:7001,b:7001"), Atlas.load(path))
    route = router.route(source, target)

Round 1 asks `cells` for the cells of both ends and the distances between them (between their
regions if those differ); round 2 asks `transit` for the three ways that make up the middle.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csgraph

from examples.maps.atlas import Atlas, pair_number
from examples.maps.graph import Floats, Ints
from examples.maps.records import Cell, read_cell, read_distances, read_way

#: The SQL of both rounds: the same for every question.
SQL = (
    "SELECT cell, data FROM cells WHERE cell IN (?, ?, ?) ORDER BY cell LIMIT 3",
    "SELECT pair, distance, path FROM transit WHERE pair IN (?, ?, ?) ORDER BY pair LIMIT 3",
)
#: Longer than the client's search takes.
PAUSE_S = 0.05


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


@dataclass(frozen=True, slots=True)
class _Step:
    """A way between two points: the row of `transit` it is in, and its ends; -1: no row."""

    row: int
    first: int
    last: int
    falling: bool


class _End:
    """One end of a question: its cell, and how far all nodes in it are."""

    def __init__(self, cell: Cell, node: int, region: int) -> None:
        self.cell, self.region = cell, region
        start = self.local(node)
        self.near, self._before = csgraph.dijkstra(
            cell.streets, indices=start, return_predecessors=True
        )
        self.borders: Floats = self.near[: len(cell.points)]

    def local(self, node: int) -> int:
        """What the cell calls a node."""
        mask = np.flatnonzero(self.cell.nodes == node)
        if not len(mask):
            raise ValueError("the provider's map does not fit this atlas")
        return int(mask[0])

    def transit(self) -> tuple[Floats, Ints]:
        """How far the transit nodes around the region are, and over which border of the cell."""
        toward = self.borders[:, None] + self.cell.distances
        if not toward.size:
            return toward.min(axis=0, initial=np.inf), np.zeros(toward.shape[1], np.int64)
        return toward.min(axis=0), toward.argmin(axis=0)

    def trail(self, node: int) -> list[int]:
        """Nodes from one of the cell back to the end itself."""
        trail = [self.local(node)]
        while (last := int(self._before[trail[-1]])) >= 0:
            trail.append(last)
        nodes: list[int] = self.cell.nodes[trail].tolist()
        return nodes


class Router:
    """Answers questions about one map; holds nothing of them afterwards.

    The second round begins no earlier than `pause_s` seconds after the first one's answer: how
    long the client searches depends on its cells, and a provider sees when it asks again.
    """

    def __init__(self, connection: Connection, atlas: Atlas, *, pause_s: float = PAUSE_S) -> None:
        self._connection = connection
        self._atlas = atlas
        self._pause_s = pause_s

    def route(self, source: int, target: int) -> Route:
        """The shortest way, in the tables' numbers. IndexError for a node that is not there."""
        cells = self._home(source), self._home(target)
        data = self._first_round(cells)
        due = time.monotonic() + self._pause_s
        here, there, between = self._parts((source, target), cells, data)
        length, steps = self._best(here, there, between)
        if cells[0] == cells[1] and (inside := here.near[here.local(target)]) <= length:
            length, steps = inside, []
        # Asked in any case, so that nobody learns how far the way goes.
        time.sleep(max(0.0, due - time.monotonic()))
        middle = self._second_round(steps)
        if not np.isfinite(length):
            return Route(None, [])
        if not steps:
            return Route(int(length), here.trail(target)[::-1])
        first, last = here.trail(steps[0].first)[::-1], there.trail(steps[-1].last)
        return Route(int(length), first + middle[1:] + last[1:])

    def _home(self, node: int) -> int:
        if not 0 <= node < self._atlas.size:
            raise IndexError(f"the map has no node {node}")
        return int(self._atlas.homes[node])

    def _first_round(self, cells: tuple[int, int]) -> dict[int, bytes]:
        questions = [*cells, self._atlas.between(*cells)]
        rows = self._connection.execute(SQL[0], questions).fetchall()
        data = {int(cell): bytes(results) for cell, results in rows}
        if not data.keys() >= set(questions):
            raise ValueError("the provider's map does not fit this atlas")
        return data

    def _parts(
        self, nodes: tuple[int, int], cells: tuple[int, int], data: dict[int, bytes]
    ) -> tuple[_End, _End, Floats]:
        here, there = (
            _End(read_cell(data[cell]), node, int(self._atlas.region[cell]))
            for node, cell in zip(nodes, cells, strict=True)
        )
        table = read_distances(data[self._atlas.between(*cells)])
        return here, there, table.T if cells[0] > cells[1] else table

    def _best(self, here: _End, there: _End, between: Floats) -> tuple[float, list[_Step]]:
        """The shortest way that leaves the cell: its length and steps."""
        if here.region == there.region:
            item, other = here.borders, there.borders
        else:
            (item, here_over), (other, there_over) = here.transit(), there.transit()
        if between.shape != (len(item), len(other)):
            raise ValueError("the provider's map does not fit this atlas")
        lengths = item[:, None] + between + other[None, :]
        length = float(lengths.min(initial=np.inf))
        if not np.isfinite(length):
            return length, []
        first, last = divmod(int(lengths.argmin()), len(other))
        if here.region == there.region:
            return length, [self._points(here.region, _point(here, first), _point(there, last))]
        a, b = int(here.cell.transit[first]), int(there.cell.transit[last])
        return length, [
            self._to_transit(here, int(here_over[first]), first),
            _Step(pair_number(a, b) if a != b else -1, a, b, a > b),
            _turned(self._to_transit(there, int(there_over[last]), last)),
        ]

    def _to_transit(self, end: _End, border: int, transit: int) -> _Step:
        """From a border of the cell to a transit node of the region."""
        last = transit, int(end.cell.transit[transit])
        return self._points(end.region, _point(end, border), last)

    def _points(self, region: int, item: tuple[int, int], other: tuple[int, int]) -> _Step:
        """Between two points of a region, each by its place among them and its number."""
        (first, first_node), (last, last_node) = item, other
        row = -1
        if first != last:
            minor = max(first, last) >= self._atlas.borders[region]
            row = (
                self._atlas.way(region, first, last)
                if minor
                else pair_number(first_node, last_node)
            )
        return _Step(row, first_node, last_node, first > last)

    def _second_round(self, steps: list[_Step]) -> list[int]:
        """Nodes of all steps. Rows that are not needed are random ones."""
        wanted = {step.row for step in steps if step.row >= 0}
        questions = list(wanted)
        while len(questions) < min(3, self._atlas.ways):
            row = secrets.randbelow(self._atlas.ways)
            if row not in questions:
                questions.append(row)
        questions += [0] * (3 - len(questions))
        rows = self._connection.execute(SQL[1], questions).fetchall()
        data = {int(row): bytes(path) for row, _, path in rows}
        if not data.keys() >= wanted:
            raise ValueError("the provider's map does not fit this atlas")
        nodes = [steps[0].first] if steps else []
        starts = self._atlas.starts.tolist()
        for step in steps:
            if step.row < 0:
                continue
            begin, end = (step.first, step.last) if step.falling else (step.last, step.first)
            way = read_way(begin, data[step.row], starts)
            if way[-1] != end:
                raise ValueError("a way of the map that ends elsewhere")
            nodes += (way if step.falling else way[::-1])[1:]
        return nodes


def _turned(step: _Step) -> _Step:
    """The same way from its other end."""
    return _Step(step.row, step.last, step.first, not step.falling)


def _point(end: _End, border: int) -> tuple[int, int]:
    """A border of an end's cell: its place among the region's points, and its number."""
    return int(end.cell.points[border]), int(end.cell.nodes[border])
