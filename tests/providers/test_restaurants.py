"""Restaurants by category and by place (Splinter, section 8.1)."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest

from examples.restaurants import data, hexagons, queries
from examples.restaurants.hexagons import BEYOND, RADII_MILES, City, around, hexagon

CITY = City(3, "Somewhere", 40.0, -75.0)
ROWS = 4_000


def ring(radius: float, middle: tuple[float, float], count: int = 100_000):
    """Points of a circle."""
    angle = np.linspace(0, 2 * math.pi, count)
    return middle[0] + radius * np.cos(angle), middle[1] + radius * np.sin(angle)


@pytest.fixture(scope="module")
def table():
    return data.restaurants(ROWS)


@pytest.mark.parametrize("radius", RADII_MILES)
class TestHexagons:
    def test_three_hold_every_point_within_the_radius_and_none_far_beyond(self, radius: int):
        chance = np.random.default_rng(radius)
        for east, north in chance.uniform(-15, 15, (300, 2)):
            cells = around(CITY, radius, east, north)
            assert len(set(cells)) == 3
            far = chance.uniform(0, 1.2 * BEYOND * radius, 300)
            angle = chance.uniform(0, 2 * math.pi, 300)
            at = east + far * np.cos(angle), north + far * np.sin(angle)
            inside = np.isin(hexagon(CITY, radius, *at), cells)
            assert inside[far <= radius].all()
            assert (far[inside] <= BEYOND * radius).all()

    def test_both_bounds_are_reached(self, radius: int):
        side = hexagons.SIDES_PER_RADIUS * radius
        # The middle of the side between the hexagons (0, 0) and (1, 0): its ends are side / 2 off.
        worst = (math.sqrt(3) / 2 * side, 1e-9)
        cells = around(CITY, radius, *worst)
        assert np.isin(hexagon(CITY, radius, *ring(0.999 * radius, worst)), cells).all()
        assert not np.isin(hexagon(CITY, radius, *ring(1.001 * radius, worst)), cells).all()
        middle = (1e-9, 1e-9)
        cells = around(CITY, radius, *middle)
        outer = ring(0.999 * BEYOND * radius, middle)
        assert np.isin(hexagon(CITY, radius, *outer), cells).any()
        outer = ring(1.001 * BEYOND * radius, middle)
        assert not np.isin(hexagon(CITY, radius, *outer), cells).any()

    def test_hexagons_have_the_area_that_they_should(self, radius: int):
        chance = np.random.default_rng(1)
        points = chance.uniform(-20 * radius, 20 * radius, (2, 100_000))
        _, counts = np.unique(hexagon(CITY, radius, *points), return_counts=True)
        full = 1.5 * math.sqrt(3) * (hexagons.SIDES_PER_RADIUS * radius) ** 2
        density = 100_000 / (40 * radius) ** 2
        assert abs(np.median(counts) / density / full - 1) < 0.1

    def test_numbers_of_cities_do_not_meet(self, radius: int):
        grid = np.meshgrid(np.linspace(-40, 40, 200), np.linspace(-40, 40, 200))
        at = grid[0].ravel(), grid[1].ravel()
        first, second = (hexagon(data.CITIES[n], radius, *at) for n in (0, 1))
        assert not np.intersect1d(first, second).size
        assert first.min() >= 0


def test_the_plane_is_nearly_the_sphere():
    chance = np.random.default_rng(5)
    for city in (data.CITIES[0], data.CITIES[-1]):
        here, there = chance.uniform(-14, 14, (2, 2, 1_000))
        flat = np.hypot(*(here - there))
        a, b = (np.radians(city.degrees(*at)) for at in (here, there))
        half = np.sin((b - a) / 2) ** 2
        round_ = 2 * 3958.8 * np.arcsin(np.sqrt(half[0] + np.cos(a[0]) * np.cos(b[0]) * half[1]))
        assert (np.abs(flat / round_ - 1) < 0.01).all()


class TestTable:
    def test_the_recipe_gives_the_same_table_again(self, table):
        assert table.equals(data.restaurants(ROWS))
        assert not table.equals(data.restaurants(ROWS, seed=1))

    def test_it_has_the_shape_that_is_stated(self, table):
        shown = (
            duckdb.from_arrow(table)
            .query(
                "restaurants",
                "SELECT count(DISTINCT score), min(stars), max(stars), min(review_count),"
                " count(DISTINCT city), count(*) FILTER (WHERE category = 'Thai') FROM restaurants",
            )
            .fetchone()
        )
        assert shown is not None
        assert shown[0] == ROWS
        assert (float(shown[1]), float(shown[2]), shown[3], shown[4]) == (1.0, 5.0, 3, 40)
        assert 30 < shown[5] < 150
        assert len(data.CATEGORIES) == len(set(data.CATEGORIES)) == 900

    def test_degrees_give_the_hexagons(self, table):
        for city in data.CITIES[:3]:
            mine = table.filter(np.array(table["city"]) == city.name)
            at = city.plane(mine["latitude"].to_numpy(), mine["longitude"].to_numpy())
            for radius in RADII_MILES:
                assert (hexagon(city, radius, *at) == mine[f"hex{radius}mi"].to_numpy()).all()


def test_the_queries_mean_what_they_say_in_plaintext(table):
    """Q2 finds the best within two miles, or better ones that are not much farther."""
    with duckdb.connect() as con:
        con.register(data.TABLE, table)
        for query in queries.queries():
            assert con.execute(query.sql, list(query.parameters)).fetchall()
        answer = con.execute(queries.Q2, list(queries.near("Mexican", *queries.HERE))).fetchall()
        city = data.CITIES[queries.HERE[0]]
        rows = con.execute(
            "SELECT name, latitude, longitude FROM restaurants"
            " WHERE category = 'Mexican' AND city = ? ORDER BY score DESC",
            [city.name],
        ).fetchall()
    at = city.plane(np.array([r[1] for r in rows]), np.array([r[2] for r in rows]))
    far = np.hypot(at[0] - queries.HERE[1], at[1] - queries.HERE[2])
    within = [row[0] for row, miles in zip(rows, far, strict=True) if miles <= 2]
    beyond = {row[0] for row, miles in zip(rows, far, strict=True) if miles > 2 * BEYOND}
    names = [row[0] for row in answer]
    assert not beyond.intersection(names)
    assert set(within[: 1 if names else 0]) <= set(names) or len(names) == 10
