"""From a street graph to the two public tables of transit-node routing, and the atlas.

* ``cells``: a row has the number of a cell and bytes. Every region between transit nodes takes
  `pieces` rows: its streets. Every pair of regions takes one: the distances between their
  transit nodes.
* ``transit``: a row for every pair of transit nodes: their distance and the way.
* the atlas, a small file that every client has, the same for all: which number belongs to which
  region. It says nothing about who asks.

See README.md for why answers are exact.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from examples.maps.graph import FAR, Flags, Graph, Ints, useful
from examples.maps.numbering import names_of
from examples.maps.partition import core_of, separators
from examples.maps.records import write_distances, write_step, write_streets
from examples.maps.regions import Region, all_distances, regions_of

#: A region's rows are to be about as wide as the distances between two regions; at most so many.
MOST_PIECES = 4


@dataclass(frozen=True)
class Atlas:
    """What every client knows of the map.

    Attributes:
        transit: how many transit nodes there are: nodes 0..transit - 1.
        starts: the first node of each region, and last how many nodes there are.
        homes: for each transit node, a region that it borders.
        pieces: rows that a region takes.
    """

    transit: int
    starts: list[int]
    homes: list[int]
    pieces: int

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.starts) - 1

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="ascii")

    @staticmethod
    def load(path: Path) -> Atlas:
        """Read what `save` wrote."""
        return Atlas(**json.loads(path.read_text(encoding="ascii")))


@dataclass(frozen=True)
class Built:
    """Both tables, the atlas, and what each node of the graph is called in them.

    ``names`` has shape (n,). ``graph`` is the whole graph in the tables' numbers.
    """

    cells: pa.Table
    transit: pa.Table
    atlas: Atlas
    names: Ints
    graph: Graph

    def save(self, folder: Path) -> None:
        """Write cells.parquet, transit.parquet and atlas.json."""
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(self.cells, folder / "cells.parquet")
        pq.write_table(self.transit, folder / "transit.parquet")
        self.atlas.save(folder / "atlas.json")

    def widths(self) -> tuple[int, int]:
        """Bytes of the widest row of each table."""
        cells = self.cells["data"].to_pylist()
        ways = self.transit["path"].combine_chunks()
        offsets = np.frombuffer(ways.buffers()[1], np.int32)[: len(ways) + 1]
        return max(map(len, cells)), int(np.diff(offsets).max(initial=0))


def build(graph: Graph, transit_count: int) -> Built:
    """Tables with at most so many transit nodes. All is decided by the graph alone."""
    if graph.size < 2:
        raise ValueError("a map has at least two nodes")
    lean = useful(graph)
    transit = separators(core_of(lean), transit_count)
    if not len(transit):
        transit = np.array([int(np.diff(lean.first).argmax())])
    regions = regions_of(lean, transit)
    distances, before, via = all_distances(lean, transit, regions)
    names = names_of(graph.size, transit, regions, before, via)
    starts = [len(transit)]
    for region in regions:
        starts.append(starts[-1] + len(region.nodes))
    homes = [0] * len(transit)
    for number, region in enumerate(regions):
        for border in region.borders.tolist():
            homes[border] = number
    cells, pieces = _cells(regions, names, starts, distances)
    return Built(
        cells,
        _ways(regions, names, starts, distances, before, via),
        Atlas(len(transit), starts, homes, pieces),
        names,
        graph.renumbered(names),
    )


def pair_number(one: int, other: int) -> int:
    """The key of two different transit nodes in `transit`."""
    low, high = min(one, other), max(one, other)
    return high * (high - 1) // 2 + low


def regions_number(atlas_regions: int, pieces: int, one: int, other: int) -> int:
    """The key of the distances between two regions (or of one to itself) in `cells`."""
    low, high = min(one, other), max(one, other)
    return atlas_regions * pieces + high * (high + 1) // 2 + low


def _cells(
    regions: list[Region], names: Ints, starts: list[int], distances: Ints
) -> tuple[pa.Table, int]:
    streets = []
    for region, start in zip(regions, starts, strict=False):
        count = len(region.borders)
        order = count + np.argsort(names[region.nodes])
        graph = region.graph.part(np.concatenate([np.arange(count), order]))
        streets.append(write_streets(region.borders, start, graph))
    needed = [_needed(region, distances) for region in regions]
    tables = []
    for high, other in enumerate(regions):
        for low, one in enumerate(regions[: high + 1]):
            table = distances[np.ix_(one.borders, other.borders)]
            kept = needed[low][:, other.borders] & needed[high][:, one.borders].T
            tables.append(write_distances(np.where(kept, table, FAR)))
    widest = max(map(len, streets))
    pieces = max(1, min(MOST_PIECES, widest // max(map(len, tables))))
    data: list[bytes] = []
    for record in streets:
        step = -(-len(record) // pieces)
        data.extend(record[at * step : (at + 1) * step] for at in range(pieces))
    data.extend(tables)
    keys = pa.array(range(len(data)), pa.int32())
    return pa.table({"cell": keys, "data": pa.array(data, pa.binary())}), pieces


def _needed(region: Region, distances: Ints) -> Flags:
    """Shape (borders, transit nodes): whether the way there leaves the region at once.

    One that goes to another border of the region first is never needed: who comes from inside
    is as near through that other border.
    """
    inside = region.distances.copy()
    np.fill_diagonal(inside, FAR)
    rows = distances[region.borders]
    over = np.full(rows.shape, FAR)
    for border in range(len(rows)):
        np.minimum(over, inside[:, border, None] + rows[border], out=over)
    return np.asarray(over > rows) & (rows < FAR)


def _ways(
    regions: list[Region],
    names: Ints,
    starts: list[int],
    distances: Ints,
    before: Ints,
    via: Ints,
) -> pa.Table:
    count = len(before)
    steps: dict[tuple[int, int], bytes] = {}
    for number, region in enumerate(regions):
        inner = names[region.nodes].tolist()
        borders = region.borders.tolist()
        for (one, other), way in region.ways.items():
            ends = borders[one], borders[other]
            if via[ends] == number:
                nodes = [inner[node - len(borders)] for node in way]
                steps[ends] = write_step(number, starts[number], nodes, ends[1])
    for one, other in np.argwhere((via < 0) & (before == np.arange(count)[:, None])).tolist():
        steps[one, other] = write_step(0, 0, [], other)
    found: list[bytes] = []
    order = np.argsort(distances, axis=1, kind="stable").tolist()
    last = before.tolist()
    for high in range(count):
        # Every way is written from its higher end.
        ways: dict[int, bytes] = {high: b""}
        for node in order[high]:
            if node != high and last[high][node] >= 0:
                ways[node] = ways[last[high][node]] + steps[last[high][node], node]
        found.extend(ways.get(low, b"") for low in range(high))
    lows = np.concatenate([np.arange(high) for high in range(count)])
    highs = np.repeat(np.arange(count), np.arange(count))
    lengths = np.where(distances < FAR, distances, -1)[highs, lows]
    return pa.table(
        {
            "pair": pa.array(np.arange(len(found)), pa.int32()),
            "distance": pa.array(lengths, pa.int64()),
            "path": pa.array(found, pa.binary()),
        }
    )
