"""Ways between transit nodes, and between the points of one region: the table `transit`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from examples.maps.graph import FAR, Ints
from examples.maps.records import write_step
from examples.maps.regions import Region


class Ways:
    """Distances and ways in the whole map.

    Attributes:
        starts: shape (regions + 1,): the first node inside of each region; how many there are.
        between: for each region, shape (points, points): distances in the whole map.
    """

    def __init__(
        self, regions: list[Region], names: Ints, distances: Ints, before: Ints, via: Ints
    ) -> None:
        self._regions, self._names = regions, names
        self._distances = distances
        self._last = before.tolist()
        inside = np.cumsum([0] + [len(region.nodes) for region in regions])
        self.starts = np.asarray(len(distances) + inside, np.int64)
        self._steps = self._all_steps(before, via)
        found = [_through(region, distances) for region in regions]
        self.between = [np.minimum(r.distances, f[0]) for r, f in zip(regions, found, strict=True)]
        self._turns = [turns for _, turns in found]

    def table(self) -> pa.Table:
        """The table `transit`."""
        found, lengths = self._transit()
        for number in range(len(self._regions)):
            more, far = self._points(number)
            found += more
            lengths += far
        return pa.table(
            {
                "pair": pa.array(np.arange(len(found)), pa.int32()),
                "distance": pa.array(lengths, pa.int64()),
                "path": pa.array(found, pa.binary()),
            }
        )

    def _transit(self) -> tuple[list[bytes], list[int]]:
        """Of every pair of transit nodes, written from the higher one."""
        found: list[bytes] = []
        order = np.argsort(self._distances, axis=1, kind="stable").tolist()
        for high, last in enumerate(self._last):
            ways = {high: b""}
            for node in order[high]:
                if node != high and last[node] >= 0:
                    ways[node] = ways[last[node]] + self._steps[last[node], node]
            found.extend(ways.get(low, b"") for low in range(high))
        below = np.tril_indices(len(self._last), -1)
        lengths = self._distances[below]
        return found, np.where(lengths < FAR, lengths, -1).tolist()

    def _points(self, number: int) -> tuple[list[bytes], list[int]]:
        """Of every pair of points of a region with a minor node, from the higher point."""
        region, between = self._regions[number], self.between[number]
        turns = self._turns[number]
        found: list[bytes] = []
        lengths: list[int] = []
        for high in range(len(region.borders), len(region.points)):
            for low in range(high):
                length = int(between[high, low])
                lengths.append(length if length < FAR else -1)
                if length >= FAR:
                    found.append(b"")
                elif length == region.distances[high, low]:
                    found.append(self._inside(number, high, low))
                else:
                    out, back = turns[high, low].tolist()
                    found.append(
                        self._inside(number, high, out)
                        + self._way(int(region.borders[out]), int(region.borders[back]))
                        + self._inside(number, back, low)
                    )
        return found, lengths

    def _inside(self, number: int, one: int, other: int) -> bytes:
        """A step between two points of a region."""
        if one == other:
            return b""
        region = self._regions[number]
        count = len(region.borders)
        names = self._names[region.nodes]
        way = [int(names[node - count]) for node in region.ways[one, other]]
        end = int(region.points[other])
        name = int(region.borders[end] if end < count else names[end - count])
        return write_step(number, int(self.starts[number]), way, name)

    def _way(self, one: int, other: int) -> bytes:
        """All steps from a transit node to another."""
        steps = []
        while other != one:
            steps.append(self._steps[self._last[one][other], other])
            other = self._last[one][other]
        return b"".join(reversed(steps))

    def _all_steps(self, before: Ints, via: Ints) -> dict[tuple[int, int], bytes]:
        """Steps from a transit node to the next: through one region, or along one street."""
        steps = {}
        for number, region in enumerate(self._regions):
            borders = region.borders.tolist()
            for one, other in region.ways:
                if max(one, other) < len(borders):
                    ends = borders[one], borders[other]
                    if via[ends] == number:
                        steps[ends] = self._inside(number, one, other)
        direct = (via < 0) & (before == np.arange(len(before))[:, None])
        for one, other in np.argwhere(direct).tolist():
            steps[one, other] = write_step(0, 0, [], other)
        return steps


def _through(region: Region, distances: Ints) -> tuple[Ints, Ints]:
    """Ways between points over two borders: how long, and which.

    Shapes (points, points) and (points, points, 2).
    """
    count, size = len(region.borders), len(region.points)
    inside = region.distances
    if not count:
        return np.full((size, size), FAR), np.zeros((size, size, 2), np.int64)
    middle = distances[np.ix_(region.borders, region.borders)]
    toward = inside[:, :count, None] + middle[None]
    first = toward.argmin(axis=1)
    near = np.minimum(toward.min(axis=1), FAR)
    length = np.full((size, size), FAR)
    turns = np.zeros((size, size, 2), np.int64)
    for border in range(count):
        other = near[:, border, None] + inside[border][None, :]
        nearer = other < length
        length = np.where(nearer, other, length)
        turns[nearer] = np.stack(
            [
                np.broadcast_to(first[:, border, None], other.shape)[nearer],
                np.full(int(nearer.sum()), border),
            ],
            axis=1,
        )
    return length, turns
