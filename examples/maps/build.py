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
import pyarrow.parquet as pq

from examples.maps.atlas import Atlas
from examples.maps.graph import FAR, Flags, Graph, Ints, useful
from examples.maps.numbering import names_of
from examples.maps.partition import Dissection, core_of, dissect
from examples.maps.records import Cell, write_cell, write_distances
from examples.maps.regions import Part, Region, all_distances, regions_of, within_borders
from examples.maps.ways import Ways


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
        return _widest(self.cells["data"]), _widest(self.transit["path"])


def build(graph: Graph, transit_count: int) -> Built:
    """Tables with at most so many transit nodes. All is decided by the graph alone."""
    if graph.size < 2:
        raise ValueError("a map has at least two nodes")
    lean = useful(graph)
    found = dissect(core_of(lean), transit_count)
    if not len(found.transit):
        found = Dissection(np.array([int(np.diff(lean.first).argmax())]), found.minor[:0])
    regions = regions_of(lean, found)
    distances, before, via = all_distances(lean, found.transit, regions)
    names = names_of(graph.size, found.transit, regions, before, via)
    ways = Ways(regions, names, distances, before, via)
    atlas = _atlas(regions, names, ways)
    return Built(
        _cells(regions, names, ways, distances),
        ways.table(),
        atlas,
        names,
        graph.renumbered(names),
    )


def _atlas(regions: list[Region], names: Ints, ways: Ways) -> Atlas:
    homes = np.zeros(len(names), np.int64)
    region: list[int] = []
    for number, one in enumerate(regions):
        for cell in one.cells:
            # Nodes inside come last: a border's home is any cell that it borders.
            homes[names[cell.borders]] = len(region)
            homes[names[cell.nodes]] = len(region)
            region.append(number)
    minor = [len(one.points) - len(one.borders) for one in regions]
    return Atlas(
        int(ways.starts[0]),
        ways.starts,
        homes,
        np.array(region, np.int64),
        np.array([len(one.borders) for one in regions], np.int64),
        np.array(minor, np.int64),
    )


def _cells(regions: list[Region], names: Ints, ways: Ways, distances: Ints) -> pa.Table:
    data: list[bytes] = []
    pairs: list[bytes] = []
    for region, between in zip(regions, ways.between, strict=True):
        points = [_points(region, cell) for cell in region.cells]
        leaving = [
            _needed(within_borders(cell), between[mine])
            for cell, mine in zip(region.cells, points, strict=True)
        ]
        for high, (cell, mine) in enumerate(zip(region.cells, points, strict=True)):
            toward = np.where(leaving[high], between[mine], FAR)[:, : len(region.borders)]
            data.append(_cell(region, cell, mine, names, toward))
            for low, theirs in enumerate(points[: high + 1]):
                kept = leaving[low][:, mine] & leaving[high][:, theirs].T
                table = np.where(kept, between[np.ix_(theirs, mine)], FAR)
                pairs.append(write_distances(table))
    needed = [_needed(region.between_borders(), distances[region.borders]) for region in regions]
    for high, other in enumerate(regions):
        for low, one in enumerate(regions[:high]):
            table = distances[np.ix_(one.borders, other.borders)]
            kept = needed[low][:, other.borders] & needed[high][:, one.borders].T
            data.append(write_distances(np.where(kept, table, FAR)))
    data.extend(pairs)
    keys = pa.array(range(len(data)), pa.int32())
    return pa.table({"cell": keys, "data": pa.array(data, pa.binary())})


def _points(region: Region, cell: Part) -> Ints:
    """Which points of a region are the borders of a cell."""
    points = region.point_nodes()
    order = np.argsort(points)
    return np.asarray(order[np.searchsorted(points[order], cell.borders)], np.int64)


def _cell(region: Region, cell: Part, points: Ints, names: Ints, toward: Ints) -> bytes:
    count = len(cell.borders)
    inner = names[cell.nodes]
    order = np.argsort(inner)
    graph = cell.graph.part(np.concatenate([np.arange(count), count + order]))
    nodes = [*names[cell.borders].tolist(), *inner[order].tolist()]
    return write_cell(Cell(region.borders.tolist(), points.tolist(), nodes, [], toward), graph)


def _needed(inside: Ints, distances: Ints) -> Flags:
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
    np.fill_diagonal(inside, FAR)
    over = np.full(distances.shape, FAR)
    for border in range(len(inside)):
        np.minimum(over, inside[:, border, None] + distances[border], out=over)
    return np.asarray(over > distances) & (distances < FAR)


def _widest(column: pa.ChunkedArray) -> int:
    array = column.combine_chunks()
    offsets = np.frombuffer(array.buffers()[1], np.int32)[: len(array) + 1]
    return int(np.diff(offsets).max(initial=0))
