"""Circles as three hexagons, so that a place is asked for by `=` and not by intervals.

The plane is tiled by regular hexagons of side s, one tiling for each radius r of interest
(Splinter, section 8.1: columns hex1mi, hex2mi, hex5mi). Every restaurant lies in exactly one
hexagon of each tiling. A person asks for the three hexagons that meet at the corner nearest to
her.

With s = 2 r this finds every restaurant within r of her: a circle about a point of the plane
touches a fourth hexagon only from radius s / 2 on (the worst place is the middle of a side, whose
two ends are equally near), and no choice of three hexagons does better there. Restaurants that are
farther come along too, but none beyond sqrt(7) s = 5.292 r (the worst place is the middle of a
hexagon, and the far corner of its neighbour).

Coordinates are miles in the plane of one city: an equirectangular projection about its middle.
Within 20 miles of the middle its distances differ by less than 1 % from those on the sphere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Miles: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = npt.NDArray[np.int64]

MILES_PER_DEGREE = 2 * math.pi * 3958.8 / 360
RADII_MILES = (1, 2, 5)
SIDES_PER_RADIUS = 2
BEYOND = math.sqrt(7) * SIDES_PER_RADIUS
"""No restaurant of the three hexagons is farther than this many radii."""
REACH_MILES = 40
"""How far from a city's middle its hexagons are numbered."""

#: The three neighbours' steps, in axial coordinates, in the order of their directions: hexagons at
#: i and i + 1 meet in the corner between these two directions.
_STEPS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


@dataclass(frozen=True, slots=True)
class City:
    """A city: its number, its name and where its middle is, in degrees."""

    number: int
    name: str
    latitude: float
    longitude: float

    def plane(self, latitude: Miles, longitude: Miles) -> tuple[Miles, Miles]:
        """Degrees as miles east and north of the middle."""
        east = (longitude - self.longitude) * MILES_PER_DEGREE * self._shrunk
        return east, (latitude - self.latitude) * MILES_PER_DEGREE

    def degrees(self, east: Miles, north: Miles) -> tuple[Miles, Miles]:
        """The other way: latitude and longitude."""
        longitude = self.longitude + east / MILES_PER_DEGREE / self._shrunk
        return self.latitude + north / MILES_PER_DEGREE, longitude

    @property
    def _shrunk(self) -> float:
        return math.cos(math.radians(self.latitude))


def hexagon(city: City, radius_miles: int, east: Miles, north: Miles) -> Cells:
    """The number of the hexagon that each point lies in; unique over all cities."""
    q, r = _axial(east, north, _side(radius_miles))
    return _number(city, radius_miles, q, r)


def around(city: City, radius_miles: int, east: float, north: float) -> tuple[int, int, int]:
    """The numbers of the three hexagons that hold every point within the radius of a place."""
    side = _side(radius_miles)
    x, y = np.array([east]), np.array([north])
    q, r = (int(item[0]) for item in _axial(x, y, side))
    middle = _middle(q, r, side)
    angle = math.atan2(north - middle[1], east - middle[0])
    # Corners lie between two neighbours: at 30 degrees beyond the direction of each step.
    corner = math.floor(angle / (math.pi / 3)) % 6
    steps = ((0, 0), _STEPS[corner], _STEPS[(corner + 1) % 6])
    cells = [(q + step[0], r + step[1]) for step in steps]
    first, second, third = (
        int(_number(city, radius_miles, np.array([a]), np.array([b]))[0]) for a, b in cells
    )
    return first, second, third


def _side(radius_miles: int) -> float:
    return float(SIDES_PER_RADIUS * radius_miles)


def _middle(q: int, r: int, side: float) -> tuple[float, float]:
    """Of the hexagon with these axial coordinates: neighbours' middles are sqrt(3) sides apart."""
    return math.sqrt(3) * side * (q + r / 2), 1.5 * side * r


def _axial(east: Miles, north: Miles, side: float) -> tuple[Cells, Cells]:
    """The hexagon of each point: the lattice point whose middle is nearest (cube rounding)."""
    r = north / (1.5 * side)
    q = east / (math.sqrt(3) * side) - r / 2
    s = -q - r
    rounded = [np.rint(item) for item in (q, r, s)]
    off = [np.abs(a - b) for a, b in zip(rounded, (q, r, s), strict=True)]
    # The three coordinates add to nothing; the one that rounding moved most follows the others.
    first = (off[0] > off[1]) & (off[0] > off[2])
    second = ~first & (off[1] > off[2])
    q = np.where(first, -rounded[1] - rounded[2], rounded[0])
    r = np.where(second, -rounded[0] - rounded[2], rounded[1])
    return q.astype(np.int64), r.astype(np.int64)


def _number(city: City, radius_miles: int, q: Cells, r: Cells) -> Cells:
    reach = math.ceil(1.2 * REACH_MILES / _side(radius_miles)) + 2
    width = 2 * reach + 1
    return (city.number * width + (q + reach)) * width + (r + reach)
