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
            place = np.ix_(region.borders, region.borders)
            inside = region.ways.lengths[: len(region.borders), : len(region.borders)]
            nearer = inside < lengths[place]
            lengths[place] = np.where(nearer, inside, lengths[place])
            self._via[place] = np.where(nearer, number, self._via[place])
        self._transit = _joined(lengths, np.zeros(0, np.int64))
        self.between_transit = self._transit.lengths
        self._points = [self._around(region) for region in regions]
        self.between_points = [ways.lengths for ways in self._points]
        self._steps: dict[tuple[int, int], bytes] = {}

    def table(self) -> pa.Table:
        """The table `transit`."""
        found = [way for high in range(len(self.between_transit)) for way in self._to_lower(high)]
        below = np.tril_indices(len(self.between_transit), -1)
        lengths = [self.between_transit[below]]
        for number, region in enumerate(self._regions):
            for high in range(len(region.borders), len(region.points)):
                found.extend(self._in_region(number, high, low) for low in range(high))
                lengths.append(self.between_points[number][high, :high])
        told = np.concatenate(lengths)
        told = np.where(np.isfinite(told), told, -1).astype(np.int64)
        return pa.table(
            {
                "pair": pa.array(np.arange(len(found)), pa.int32()),
                "distance": pa.array(told, pa.int64()),
                "path": pa.array(found, pa.binary()),
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
        found = b""
        one = high
        for other in [*ways.middle(high, low), low]:
            if max(one, other) < len(borders):
                found += self._over(int(borders[one]), int(borders[other]))
            else:
                found += self._inside(number, one, other)
            one = other
        return found

    def _over(self, one: int, other: int) -> bytes:
        """The way between two transit nodes."""
        found = b""
        for node in [*self._transit.middle(one, other), other]:
            found += self._step(one, node)
            one = node
        return found

    def _step(self, one: int, other: int) -> bytes:
        """Between two transit nodes with none between: through a region, or along one street."""
        if (one, other) not in self._steps:
            number = int(self._via[one, other])
            if number < 0:
                step = write_step(0, 0, [], other)
            else:
                ends = np.searchsorted(self._regions[number].borders, [one, other]).tolist()
                step = self._inside(number, *ends)
            self._steps[one, other] = step
        return self._steps[one, other]

    def _inside(self, number: int, one: int, other: int) -> bytes:
        """Between two points of a region, inside of it."""
        region = self._regions[number]
        more = region.start - len(region.borders)
        way = [node + more for node in region.ways.middle(one, other)]
        end = int(region.names(region.points[other]))
        return write_step(number, region.start, way, end)


def _joined(lengths: Floats, ends: Ints) -> Ways:
    """Ways over a few nodes by the lengths between any two of them."""
    lengths = lengths.copy()
    np.fill_diagonal(lengths, np.inf)
    known = np.isfinite(lengths)
    graph = csr_array((lengths[known], np.nonzero(known)), shape=lengths.shape)
    return Ways.between(graph, np.arange(len(lengths)), ends)
