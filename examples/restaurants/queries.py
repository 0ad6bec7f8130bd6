"""The paper's three queries of restaurants (Splinter, section 8.1), in DuckDB's SQL."""

from __future__ import annotations

from examples.restaurants.data import CITIES
from examples.restaurants.hexagons import around
from louver.trusted.apps.demo_console import Question

#: The paper's Q2 sorts by stars alone; `score` breaks its ties, so that there is one right answer.
Q1 = "SELECT count(*) AS restaurants FROM restaurants WHERE category = ?"
Q2 = (
    "SELECT name, stars, review_count FROM restaurants\n"
    "WHERE category = ? AND (hex2mi = ? OR hex2mi = ? OR hex2mi = ?)\n"
    "ORDER BY stars DESC, score DESC LIMIT 10"
)
Q3 = (
    "SELECT category, max(stars) AS stars, arg_max(name, score) AS restaurant FROM restaurants\n"
    "WHERE category = ? OR category = ? OR category = ?\n"
    "   OR category = ? OR category = ? OR category = ?\n"
    "GROUP BY category ORDER BY category"
)
SUBSET = ("Mexican", "Chinese", "Indian", "Greek", "Thai", "Japanese")
HERE = (0, 1.5, -0.5)
"""Where the person of the examples is: a city's number, miles east and north of its middle."""


def near(category: str, city: int, east: float, north: float) -> tuple[object, ...]:
    """Parameters of Q2: the three hexagons are found at home."""
    return (category, *around(CITIES[city], 2, east, north))


def queries() -> list[Question]:
    """All three, with the parameters of the paper and a place in the largest city."""
    return [
        Question("Q1", "how many Thai restaurants there are", Q1, ("Thai",)),
        Question("Q2", "the best ten Mexican restaurants near me", Q2, near("Mexican", *HERE)),
        Question("Q3", "the best restaurant of each of six cuisines", Q3, SUBSET),
    ]
