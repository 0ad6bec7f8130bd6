"""The atlas: what every client knows of the map, and the numbers of the rows of both tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from examples.maps.graph import Ints


@dataclass(frozen=True)
class Atlas:
    """What every client has, the same for all; it says nothing about who asks.

    Attributes:
        transit: how many transit nodes there are: nodes 0..transit - 1.
        starts: shape (regions + 1,): the first node inside of each region; how many there are.
        homes: shape (n,): a cell that each node lies in or borders.
        region: shape (cells,): the region of each cell, rising.
        borders: shape (regions,): how many transit nodes are around each.
        minor: shape (regions,): how many minor nodes are in each.
    """

    transit: int
    starts: Ints
    homes: Ints
    region: Ints
    borders: Ints
    minor: Ints

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.homes)

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.borders)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.region)

    def between(self, item: int, other: int) -> int:
        """The row of `cells` with the distances between two cells.

        Within a region they are those between the cells themselves; else between their regions.
        """
        low, high = sorted((int(self.region[item]), int(self.region[other])))
        if low != high:
            return self.cells + high * (high - 1) // 2 + low
        count = np.bincount(self.region, minlength=self.regions)
        before = int((count * (count + 1) // 2)[:low].sum())
        first = int(np.searchsorted(self.region, low))
        near, far = sorted((item - first, other - first))
        pairs = self.regions * (self.regions - 1) // 2
        return self.cells + pairs + before + far * (far + 1) // 2 + near

    def way(self, region: int, item: int, other: int) -> int:
        """The row of `transit` with the way between two points of a region, one a minor node."""
        count = self.borders + self.minor
        rows = count * (count - 1) // 2 - self.borders * (self.borders - 1) // 2
        low, high = sorted((item, other))
        border = int(self.borders[region])
        mine = high * (high - 1) // 2 + low - border * (border - 1) // 2
        return self.transit * (self.transit - 1) // 2 + int(rows[:region].sum()) + mine

    @property
    def ways(self) -> int:
        """How many rows `transit` has."""
        return self.way(self.regions - 1, 0, int(self.borders[-1] + self.minor[-1]))

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        figures = {name: getattr(self, name).tolist() for name in _ARRAYS}
        path.write_text(json.dumps({"transit": self.transit, **figures}), encoding="ascii")

    @staticmethod
    def load(path: Path) -> Atlas:
        """Read what `save` wrote."""
        content = json.loads(path.read_text(encoding="ascii"))
        return Atlas(
            content["transit"], **{name: np.array(content[name], np.int64) for name in _ARRAYS}
        )


_ARRAYS = ("starts", "homes", "region", "borders", "minor")


def pair_number(item: int, other: int) -> int:
    """The row of `transit` with the way between two different transit nodes."""
    low, high = min(item, other), max(item, other)
    return high * (high - 1) // 2 + low
