"""A stated recipe for restaurants that look like those of a review site.

Every number comes from one seeded generator, so the same number of rows gives the same table:

* 40 cities on a grid over North America, their sizes falling as 1 / (rank + 4);
* in each city 24 neighbourhoods with a middle up to 12 miles out and a spread of 0.3 to 2 miles;
  sizes fall as 1 / (rank + 2);
* 900 categories: the cuisines alone, then with a style ("Thai, noodles"); sizes fall as
  1 / (rank + 3), in the order of `CUISINES`;
* stars from 1.0 to 5.0 in halves, with weights of a typical review site;
* numbers of reviews log-normal (median 20, spread 1.3), at least 3;
* `score` orders restaurants by stars, then reviews, then id, without ties;
* hex1mi, hex2mi, hex5mi: the hexagon of each tiling that the place lies in (`hexagons.py`).

The data set of the paper (Yelp's, repeated to 225,000 rows, 900 categories) may not be passed on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from examples.restaurants.hexagons import RADII_MILES, City, hexagon

ROWS = 225_000
SEED = 20170327
TABLE = "restaurants"
CITIES = tuple(
    City(number, f"City {number + 1:02}", 29.0 + 2.3 * (number // 8), -121.0 + 6.1 * (number % 8))
    for number in range(40)
)
CUISINES = (
    *("American", "Mexican", "Italian", "Chinese", "Pizza", "Burgers", "Japanese", "Thai"),
    *("Indian", "Greek", "Mediterranean", "Vietnamese", "Korean", "French", "Barbecue"),
    *("Seafood", "Breakfast", "Vegan", "Spanish", "Caribbean", "Ethiopian", "Turkish"),
    *("German", "Peruvian", "Brazilian", "Cuban", "Lebanese", "Persian", "Filipino", "Polish"),
)
STYLES = (
    *("", "bar", "buffet", "café", "bakery", "takeaway", "fine dining", "family", "late night"),
    *("market", "noodles", "grill", "sandwiches", "soup", "salads", "desserts", "street food"),
    *("tapas", "brunch", "fusion", "organic", "rooftop", "garden", "live music", "delivery"),
    *("food truck", "tasting menu", "diner", "canteen", "pub"),
)
CATEGORIES = tuple(
    f"{cuisine}, {style}" if style else cuisine for style in STYLES for cuisine in CUISINES
)
FIRST = (
    *("Golden", "Blue", "Old", "Little", "Royal", "Green", "Lucky", "Silver", "Red", "Sunny"),
    *("Quiet", "Grand", "Happy", "Wild", "Copper", "Velvet", "Iron", "Paper", "Stone", "Amber"),
)
SECOND = (
    *("Table", "Spoon", "Garden", "House", "Kitchen", "Lantern", "Harbor", "Corner", "Oven"),
    *("Market", "Bridge", "Orchard", "Mill", "Terrace", "Tavern", "Palace", "Fork", "Room"),
)
STARS = (10, 15, 20, 25, 30, 35, 40, 45, 50)
STAR_WEIGHTS = (2, 2, 5, 7, 12, 20, 26, 17, 9)
NEIGHBORHOODS = 24

Chance = np.random.Generator
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Places:
    """Where restaurants are: city and neighbourhood by number, degrees, hexagons by radius."""

    city: Whole
    neighborhood: Whole
    latitude: npt.NDArray[np.float64]
    longitude: npt.NDArray[np.float64]
    hexagons: dict[int, Whole]


def restaurants(rows: int = ROWS, seed: int = SEED) -> pa.Table:
    """The table; id is the row's number."""
    chance = np.random.default_rng(seed)
    places = _places(chance, rows)
    category = chance.choice(len(CATEGORIES), rows, p=_falling(len(CATEGORIES), 3))
    weights = np.array(STAR_WEIGHTS) / sum(STAR_WEIGHTS)
    tenths = chance.choice(np.array(STARS), rows, p=weights)
    reviews = 3 + np.floor(np.exp(chance.normal(3.0, 1.3, rows))).astype(np.int64)
    number = np.arange(rows, dtype=np.int64)
    score = (tenths * 10**6 + np.minimum(reviews, 10**6 - 1)) * 10**7 + (10**7 - 1 - number)
    first, second = chance.integers(len(FIRST), size=rows), chance.integers(len(SECOND), size=rows)
    columns = {
        "id": pa.array(number, pa.int32()),
        "name": _names(first, second, number),
        "stars": _decimal(tenths),
        "review_count": pa.array(reviews, pa.int32()),
        "category": _chosen(CATEGORIES, category),
        "neighborhood": _chosen(
            [f"Neighborhood {n + 1:02}" for n in range(NEIGHBORHOODS)], places.neighborhood
        ),
        "city": _chosen([city.name for city in CITIES], places.city),
        "latitude": pa.array(places.latitude),
        "longitude": pa.array(places.longitude),
        **{f"hex{radius}mi": pa.array(h, pa.int32()) for radius, h in places.hexagons.items()},
        "score": pa.array(score),
    }
    return pa.table(columns)


def _places(chance: Chance, rows: int) -> Places:
    cities = chance.choice(len(CITIES), rows, p=_falling(len(CITIES), 4))
    neighborhoods = chance.choice(NEIGHBORHOODS, rows, p=_falling(NEIGHBORHOODS, 2))
    shape = (len(CITIES), NEIGHBORHOODS)
    far, angle = 12 * np.sqrt(chance.random(shape)), 2 * np.pi * chance.random(shape)
    spread = chance.uniform(0.3, 2.0, shape)
    at = (cities, neighborhoods)
    east = (far * np.cos(angle))[at] + spread[at] * chance.normal(size=rows)
    north = (far * np.sin(angle))[at] + spread[at] * chance.normal(size=rows)
    latitude, longitude = np.empty(rows), np.empty(rows)
    hexagons = {radius: np.empty(rows, np.int64) for radius in RADII_MILES}
    for city in CITIES:
        mine = cities == city.number
        latitude[mine], longitude[mine] = city.degrees(east[mine], north[mine])
        for radius, numbers in hexagons.items():
            numbers[mine] = hexagon(city, radius, east[mine], north[mine])
    return Places(cities, neighborhoods, latitude, longitude, hexagons)


def _falling(count: int, offset: int) -> npt.NDArray[np.float64]:
    """Shares that fall with the rank, as sizes of cities and of categories do."""
    sizes: npt.NDArray[np.float64] = 1 / (np.arange(count) + offset)
    return np.asarray(sizes / sizes.sum())


def _chosen(values: list[str] | tuple[str, ...], at: Whole) -> pa.Array:
    return pa.array(values).take(pa.array(at))


def _names(first: Whole, second: Whole, number: Whole) -> pa.Array:
    heads, tails = np.array(FIRST)[first], np.array(SECOND)[second]
    results = [f"{a} {b} {n + 1}" for a, b, n in zip(heads, tails, number.tolist(), strict=True)]
    return pa.array(results)


def _decimal(tenths: Whole) -> pa.Array:
    """Tenths as DECIMAL(2, 1)."""
    by_value = pa.array([f"{value / 10:.1f}" for value in STARS]).cast(pa.decimal128(2, 1))
    return by_value.take(pa.array(np.searchsorted(np.array(STARS), tenths)))
