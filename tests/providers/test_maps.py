"""Private routes: lengths are Dijkstra's on the whole map, and every way is one of the map's."""

from __future__ import annotations

import lzma
import math
import random
import re
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import osmium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from osmium import osm
from scipy.sparse import csgraph

from examples.maps import draw, streets
from examples.maps.atlas import Atlas
from examples.maps.build import Built, build
from examples.maps.codec import FILTERS, pack, put_varint, unpack, varints
from examples.maps.graph import Graph, Ways, cut, graph_of, read_dimacs, streets_of, useful
from examples.maps.partition import regions_within
from examples.maps.records import read_cell, read_distances, read_way, write_step
from examples.maps.route import SQL, Router
from tests.generated import cases
from tests.providers.local import connected

NEW_YORK = streets.new_york()


class Plain:
    """DuckDB with both tables, which notes what it is asked."""

    def __init__(self, built: Built) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.register("cells", built.cells)
        self.connection.register("transit", built.transit)
        self.statements: list[tuple[str, list[int]]] = []

    def execute(self, sql, parameters=()):
        self.statements.append((sql, list(parameters)))
        return self.connection.execute(sql, parameters)


def grid(side: int, seed: int, gaps: float = 0.25) -> Graph:
    """A small map, in pieces where chance cuts it."""
    draw_ = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    tails = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    heads = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    present = draw_.random(len(tails)) >= gaps
    # Few different weights, so that many ways are equally long.
    weights = draw_.integers(1, 4, len(tails))
    return graph_of(side * side, tails[present], heads[present], weights[present])


def check(built: Built, router: Router, source: int, target: int, known: list[float]) -> None:
    route = router.route(source, target)
    assert (math.inf if route.length is None else route.length) == known[target], (source, target)
    if route.length is None:
        assert not route.nodes
        return
    assert (route.nodes[0], route.nodes[-1]) == (source, target)
    steps = [built.graph[step] for step in pairwise(route.nodes)]
    assert all(steps)
    assert sum(steps) == route.length


def check_many(built: Built, router: Router, sources: int, each: int, seed: int = 1) -> None:
    """Targets from everywhere, and as many from near the source."""
    chance = random.Random(seed)
    size = built.graph.shape[0]
    starts = [chance.randrange(built.atlas.transit)]
    starts += [chance.randrange(size) for _ in range(sources - 1)]
    for source in starts:
        known = csgraph.dijkstra(built.graph, indices=source).tolist()
        near = sorted(range(size), key=lambda node: known[node])[: max(2, size // 20)]
        for _ in range(each):
            check(built, router, source, chance.randrange(size), known)
            check(built, router, source, chance.choice(near), known)
        check(built, router, source, source, known)


@pytest.fixture(scope="module")
def town():
    return streets.made_town(20)


@pytest.fixture(scope="module")
def built(town):
    return build(town.graph, 40)


class TestRoutes:
    def test_are_shortest_on_a_town(self, built):
        assert built.atlas.regions > 2
        assert built.atlas.cells > built.atlas.regions
        check_many(built, Router(Plain(built), built.atlas, pause_s=0), 6, 25)

    @pytest.mark.parametrize("seed", range(4))
    def test_are_shortest_where_ways_are_equally_long_or_lead_nowhere(self, seed):
        built = build(grid(14, seed), 20)
        check_many(built, Router(Plain(built), built.atlas, pause_s=0), 5, 15, seed)

    @pytest.mark.parametrize("size", [2, 3, 5, 9])
    def test_are_shortest_on_tiny_maps(self, size):
        line = np.arange(size - 1)
        built = build(graph_of(size, line, line + 1, line + 1), 3)
        router = Router(Plain(built), built.atlas, pause_s=0)
        for source in range(size):
            known = csgraph.dijkstra(built.graph, indices=source).tolist()
            for target in range(size):
                check(built, router, source, target, known)

    @pytest.mark.skipif(NEW_YORK is None, reason=f"{streets.NEW_YORK} names no road graph here")
    def test_are_shortest_in_a_part_of_new_york(self):
        assert NEW_YORK is not None
        whole = read_dimacs(NEW_YORK)
        assert (whole.shape[0], whole.nnz) == (264_346, 730_100)
        assert (whole.data.min(), whole.data.max()) == (1, 1000)
        built = build(cut(whole, 3000), 40)
        check_many(built, Router(Plain(built), built.atlas, pause_s=0), 5, 25)

    def test_are_the_same_by_private_questions(self, built, tmp_path):
        built.save(tmp_path)
        files = [tmp_path / "cells.parquet", tmp_path / "transit.parquet"]
        with connected(files, tmp_path) as connection:
            router = Router(connection, Atlas.load(tmp_path / "atlas.json"))
            check_many(built, router, 2, 3)

    def test_questions_are_alike_in_number_and_form(self, built):
        plain = Plain(built)
        router = Router(plain, built.atlas, pause_s=0)
        size = built.graph.shape[0]
        # A node to itself, in one cell, in one region, between regions, from a transit node.
        mates = np.flatnonzero(built.atlas.homes == built.atlas.homes[size - 1])
        for target in (size - 1, int(mates[0]), size - 30, size // 2, 0):
            plain.statements.clear()
            router.route(size - 1, target)
            assert [sql for sql, _ in plain.statements] == list(SQL)
            assert [len(values) for _, values in plain.statements] == [3, 3]
            assert len(set(plain.statements[1][1])) == 3

    def test_the_second_round_begins_at_a_fixed_time(self, built):
        router = Router(Plain(built), built.atlas, pause_s=0.2)
        for target in (0, built.graph.shape[0] - 1):
            started = time.monotonic()
            router.route(built.graph.shape[0] - 1, target)
            assert time.monotonic() - started >= 0.2

    def test_nodes_that_are_not_there_are_refused(self, built):
        router = Router(Plain(built), built.atlas, pause_s=0)
        for node in (-1, built.graph.shape[0]):
            with pytest.raises(IndexError):
                router.route(0, node)

    def test_other_tables_than_the_atlas_is_of_are_noticed(self, built):
        router = Router(Plain(build(grid(14, 1), 20)), built.atlas)
        chance = random.Random(3)
        for _ in range(30):
            ends = chance.randrange(built.graph.shape[0]), chance.randrange(built.graph.shape[0])
            try:
                router.route(*ends)
            except (ValueError, IndexError):
                return
        pytest.fail("a map of another town was taken for this one")


class TestTables:
    def test_are_decided_by_the_graph(self, town, built):
        again = build(town.graph, 40)
        assert again.cells.equals(built.cells)
        assert again.transit.equals(built.transit)

    def test_rows_have_the_keys_that_the_atlas_counts(self, built, tmp_path):
        atlas = built.atlas
        assert built.cells["cell"].to_pylist() == list(range(built.cells.num_rows))
        assert built.transit["pair"].to_pylist() == list(range(atlas.ways))
        pairs = {
            atlas.between(left, other)
            for left in range(atlas.cells)
            for other in range(atlas.cells)
        }
        assert pairs == set(range(atlas.cells, built.cells.num_rows))
        atlas.save(tmp_path / "atlas.json")
        loaded = Atlas.load(tmp_path / "atlas.json")
        assert loaded.transit == atlas.transit
        assert np.array_equal(loaded.homes, atlas.homes)

    def test_names_are_a_permutation(self, town, built):
        assert sorted(built.names.tolist()) == list(range(town.graph.shape[0]))

    def test_streets_that_no_shortest_way_takes_are_left_out(self):
        triangle = graph_of(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1, 1, 3]))
        assert [part.tolist() for part in streets_of(useful(triangle))] == [[0, 1], [1, 2], [1, 1]]

    def test_transit_nodes_part_the_map(self):
        graph = grid(30, 5, 0.1)
        label = regions_within(graph, 60)
        tails, heads, _ = streets_of(graph)
        inside = (label[tails] >= 0) & (label[heads] >= 0)
        assert 0 < (label < 0).sum() <= 60
        assert (label[tails] == label[heads])[inside].all()
        assert np.bincount(label[label >= 0]).max() < graph.shape[0] / 4

    def test_ways_between_points_pass_no_end(self):
        square = graph_of(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.array([1, 1, 5, 5]))
        ways = Ways.between(square, np.array([0, 2, 1]), np.array([0, 1, 2]))
        assert ways.lengths.tolist() == [[0, 10, 1], [10, 0, 1], [1, 1, 0]]
        assert ways.middle(0, 1) == [3]


class TestRecords:
    @given(st.lists(st.integers(0, 2**40), max_size=50))
    def test_lists_of_numbers_come_back(self, numbers):
        lists = [numbers, [], numbers[:1]]
        assert [part.tolist() for part in unpack(pack(lists), 3)] == lists
        packed = bytearray()
        for number in numbers:
            put_varint(packed, number)
        assert list(varints(bytes(packed))) == numbers

    @given(st.binary(max_size=300))
    def test_no_bytes_break_a_reader(self, data):
        for record in (data, packed_bytes(data)):
            for read in (read_cell, read_distances, lambda d: read_way(0, d, [5, 50, 90])):
                with suppress(ValueError):
                    read(record)

    @given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=14, max_size=14))
    def test_no_lists_break_a_reader(self, lists):
        for read, record in ((read_cell, lists), (read_distances, lists[:5])):
            with suppress(ValueError):
                read(pack(record))

    @settings(max_examples=cases(60), deadline=None)
    @given(st.data())
    def test_no_changed_cell_breaks_a_reader(self, built, data):
        number = data.draw(st.integers(0, built.atlas.cells - 1))
        row = bytearray(built.cells["data"][number].as_py())
        row[data.draw(st.integers(0, len(row) - 1))] ^= data.draw(st.integers(1, 255))
        try:
            cell = read_cell(bytes(row))
        except ValueError:
            return
        assert cell.streets.shape == (len(cell.nodes),) * 2

    def test_ways_come_back_in_runs(self):
        inner = [10, 11, 12, 20, 19, 18, 40, 41, 40, 7]
        data = write_step(0, 5, inner, 3) + write_step(0, 5, [], 2)
        assert read_way(1, data, [5, 50]) == [1, *inner, 3, 2]
        assert len(data) < 2 * len(inner)


class TestSources:
    def test_an_extract_becomes_a_town(self, tmp_path):
        write_extract(tmp_path / "a.osm.pbf")
        town = streets.read_town(tmp_path / "a.osm.pbf")
        # A way of three nodes 0.001 degrees apart; a footpath apart from it and a house are not.
        assert town.graph.shape[0] == 3
        assert streets_of(town.graph)[2].tolist() == [1112, 1112]
        assert np.allclose(np.diff(town.y), 111.195)

    def test_what_is_no_extract_is_refused(self, tmp_path):
        whole = write_extract(tmp_path / "whole.osm.pbf")
        for data in (b"", b"\0\0\0\x02ab", b"<osm>" * 20, whole[:-7]):
            (tmp_path / "a.osm.pbf").write_bytes(data)
            with pytest.raises(ValueError):
                streets.read_town(tmp_path / "a.osm.pbf")

    def test_a_picture_shows_the_way(self, town):
        text = draw.picture(town, [3, 2, 1], "A & B")
        assert "A &amp; B" in text
        points = re.search(r'polyline points="([^"]*)"', text)
        assert points is not None
        assert len(points[1].split()) == 3


def packed_bytes(data: bytes) -> bytes:
    """As `pack` would pack what is no list of numbers."""
    return lzma.compress(data, lzma.FORMAT_RAW, filters=FILTERS)


def write_extract(path: Path) -> bytes:
    """Four nodes 0.001 degrees apart to the north; a street over three of them, and a house."""
    with osmium.SimpleWriter(path) as out:
        for node in range(4):
            out.add_node(osm.mutable.Node(id=7 + node, location=(25.0, 60.0 + 0.001 * node)))
        out.add_way(osm.mutable.Way(id=1, nodes=[7, 8, 9], tags={"highway": "residential"}))
        out.add_way(osm.mutable.Way(id=2, nodes=[9, 10], tags={"highway": "footway"}))
        out.add_way(osm.mutable.Way(id=3, nodes=[9, 10], tags={"building": "house"}))
    return path.read_bytes()
