"""Ways between transit nodes, and between the points of one region: the table `transit`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from examples.maps.graph import Floats, Graph, Ints, Ways, part_of
from examples.maps.records import write_step
from examples.maps.regions import Region


class MapWays:
    """Distances and ways in the whole map, made of steps: ways inside of one region.

    Attributes:
        between_transit: shape (transit nodes, transit nodes): distances.
        between_points: for each region, shape (points, points): distances.
    """

    def __init__(self, graph: Graph, transit: Ints, regions: list[Region]) -> None:
        self._regions = regions
        lengths = np.full((len(transit), len(transit)), np.inf)
        direct = part_of(graph, transit).tocoo()
        lengths[direct.row, direct.col] = direct.data
        self._via = np.full(lengths.shape, -1, np.int64)
        for number, region in enumerate(regions):
            position = np.ix_(region.borders, region.borders)
            inside = region.ways.lengths[: len(region.borders), : len(region.borders)]
            nearer = inside < lengths[position]
            lengths[position] = np.where(nearer, inside, lengths[position])
            self._via[position] = np.where(nearer, number, self._via[position])
        self._transit = _joined(lengths, np.zeros(0, np.int64))
        self.between_transit = self._transit.lengths
        self._points = [self._around(region) for region in regions]
        self.between_points = [ways.lengths for ways in self._points]
        self._steps: dict[tuple[int, int], bytes] = {}

    def table(self) -> pa.Table:
        """The table `transit`."""
        results = [way for high in range(len(self.between_transit)) for way in self._to_lower(high)]
        below = np.tril_indices(len(self.between_transit), -1)
        lengths = [self.between_transit[below]]
        for number, region in enumerate(self._regions):
            for high in range(len(region.borders), len(region.points)):
                results.extend(self._in_region(number, high, low) for low in range(high))
                lengths.append(self.between_points[number][high, :high])
        figures = np.concatenate(lengths)
        figures = np.where(np.isfinite(figures), figures, -1).astype(np.int64)
        return pa.table(
            {
                "pair": pa.array(np.arange(len(results)), pa.int32()),
                "distance": pa.array(figures, pa.int64()),
                "path": pa.array(results, pa.binary()),
            }
        )

    def _around(self, region: Region) -> Ways:
        """Between a region's points, inside of it or over two of its borders."""
        lengths = region.ways.lengths.copy()
        count = len(region.borders)
        lengths[:count, :count] = self.between_transit[np.ix_(region.borders, region.borders)]
        return _joined(lengths, np.arange(count, len(lengths)))

    def _to_lower(self, high: int) -> list[bytes]:
        """Ways from a transit node to all lower ones."""
        lengths, before = self.between_transit[high], self._transit.before[high].tolist()
        ways = {high: b""}
        for node in np.argsort(lengths, kind="stable")[: np.isfinite(lengths).sum()].tolist():
            if node != high:
                ways[node] = ways[before[node]] + self._step(before[node], node)
        return [ways.get(low, b"") for low in range(high)]

    def _in_region(self, number: int, high: int, low: int) -> bytes:
        """The way between two points of a region."""
        ways, borders = self._points[number], self._regions[number].borders
        if not np.isfinite(ways.lengths[high, low]):
            return b""
        results = b""
        item = high
        for other in [*ways.middle(high, low), low]:
            if max(item, other) < len(borders):
                results += self._over(int(borders[item]), int(borders[other]))
            else:
                results += self._inside(number, item, other)
            item = other
        return results

    def _over(self, item: int, other: int) -> bytes:
        """The way between two transit nodes."""
        results = b""
        for node in [*self._transit.middle(item, other), other]:
            results += self._step(item, node)
            item = node
        return results

    def _step(self, item: int, other: int) -> bytes:
        """Between two transit nodes with none between: through a region, or along one street."""
        if (item, other) not in self._steps:
            number = int(self._via[item, other])
            if number < 0:
                step = write_step(0, 0, [], other)
            else:
                ends = np.searchsorted(self._regions[number].borders, [item, other]).tolist()
                step = self._inside(number, *ends)
            self._steps[item, other] = step
        return self._steps[item, other]

    def _inside(self, number: int, item: int, other: int) -> bytes:
        """Between two points of a region, inside of it."""
        region = self._regions[number]
        more = region.start - len(region.borders)
        way = [node + more for node in region.ways.middle(item, other)]
        end = int(region.names(region.points[other]))
        return write_step(number, region.start, way, end)


def _joined(lengths: Floats, ends: Ints) -> Ways:
    """Ways over a few nodes by the lengths between any two of them."""
    lengths = lengths.copy()
    np.fill_diagonal(lengths, np.inf)
    known = np.isfinite(lengths)
    graph = csr_array((lengths[known], np.nonzero(known)), shape=lengths.shape)
    return Ways.between(graph, np.arange(len(lengths)), ends)
