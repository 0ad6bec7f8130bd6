"""From a street graph to the two public tables of transit-node routing, and the atlas.

* ``cells``: a row has a number and bytes. First the cells: streets, and distances to the transit
  nodes around their region. Then distances between the transit nodes of every two regions, and
  between the borders of every two cells of one region.
* ``transit``: a row for every pair of transit nodes, then for every pair of points of one region
  with a minor node among them: distance and way.

See README.md for why answers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from examples.maps.atlas import Atlas
from examples.maps.graph import Flags, Floats, Graph, Ints, renumbered
from examples.maps.partition import regions_within
from examples.maps.records import Cell, write_cell, write_distances
from examples.maps.regions import Part, Region, regions_of
from examples.maps.ways import MapWays


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
        columns = self.cells["data"], self.transit["path"]
        cells, transit = (pc.max(pc.binary_length(column)).as_py() for column in columns)
        return cells or 0, transit or 0


def build(graph: Graph, transit_count: int) -> Built:
    """Tables with at most so many transit nodes. All is decided by the graph alone."""
    if graph.shape[0] < 2:
        raise ValueError("a map has at least two nodes")
    label = regions_within(graph, transit_count)
    transit = np.flatnonzero(label < 0)
    regions = regions_of(graph, label)
    ways = MapWays(graph, transit, regions)
    names = np.empty(len(label), np.int64)
    names[np.concatenate([transit, *(region.nodes for region in regions)])] = np.arange(len(label))
    atlas = _atlas(len(label), len(transit), regions)
    return Built(_cells(regions, ways), ways.table(), atlas, names, renumbered(graph, names))


def _atlas(size: int, transit: int, regions: list[Region]) -> Atlas:
    homes = np.zeros(size, np.int64)
    region: list[int] = []
    for number, item in enumerate(regions):
        for cell in item.cells:
            # A border's home is any cell that it borders.
            homes[item.names(cell.borders)] = len(region)
            homes[item.names(cell.nodes)] = len(region)
            region.append(number)
    return Atlas(
        transit,
        np.array([*(item.start for item in regions), size], np.int64),
        homes,
        np.array(region, np.int64),
        np.array([len(item.borders) for item in regions], np.int64),
        np.array([len(item.points) - len(item.borders) for item in regions], np.int64),
    )


def _cells(regions: list[Region], ways: MapWays) -> pa.Table:
    data: list[bytes] = []
    pairs: list[bytes] = []
    for region, between in zip(regions, ways.between_points, strict=True):
        points = [np.searchsorted(region.points, cell.borders) for cell in region.cells]
        leaving = [
            _needed(cell.border_ways().lengths, between[mine])
            for cell, mine in zip(region.cells, points, strict=True)
        ]
        for high, (cell, mine) in enumerate(zip(region.cells, points, strict=True)):
            toward = np.where(leaving[high], between[mine], np.inf)[:, : len(region.borders)]
            data.append(_cell(region, cell, mine, toward))
            for low, theirs in enumerate(points[: high + 1]):
                mask = leaving[low][:, mine] & leaving[high][:, theirs].T
                pairs.append(write_distances(np.where(mask, between[np.ix_(theirs, mine)], np.inf)))
    distances = ways.between_transit
    needed = [
        _needed(
            item.ways.lengths[: len(item.borders), : len(item.borders)], distances[item.borders]
        )
        for item in regions
    ]
    for high, other in enumerate(regions):
        for low, item in enumerate(regions[:high]):
            table = distances[np.ix_(item.borders, other.borders)]
            mask = needed[low][:, other.borders] & needed[high][:, item.borders].T
            data.append(write_distances(np.where(mask, table, np.inf)))
    data.extend(pairs)
    keys = pa.array(range(len(data)), pa.int32())
    return pa.table({"cell": keys, "data": pa.array(data, pa.binary())})


def _cell(region: Region, cell: Part, points: Ints, toward: Floats) -> bytes:
    nodes = region.names(np.concatenate([cell.borders, cell.nodes]))
    return write_cell(Cell(region.borders, points, nodes, cell.graph, toward))


def _needed(inside: Floats, distances: Floats) -> Flags:
    """Whether the shortest way from a border of a part leaves the part at once.

    One that goes to another border inside of the part first is never needed: who comes from
    inside is as near through that other border.

    Args:
        inside: shape (borders, borders): distances within the part.
        distances: shape (borders, others): distances in the whole map.

    Returns:
        Shape (borders, others).
    """
    inside = inside.copy()
    np.fill_diagonal(inside, np.inf)
    over = np.full(distances.shape, np.inf)
    for border in range(len(inside)):
        np.minimum(over, inside[:, border, None] + distances[border], out=over)
    return np.asarray(over > distances)
