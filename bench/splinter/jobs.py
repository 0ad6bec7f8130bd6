"""The paper's queries, each with many secrets: no question is asked twice in a measurement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from examples.flights import queries as flights
from examples.restaurants import data as restaurants
from examples.restaurants import queries as reviews

#: 40 that are measured, then those of the first uses and of the longer way.
SECRETS = 64
SEED = 11


@dataclass(frozen=True, slots=True)
class Job:
    """A query of Figure 7 under the name that `paper.TWO` has for it.

    ``plain`` is what the peer is asked: where rows are sorted, ties are broken by their place in
    the table, which Louver does by itself.
    """

    name: str
    sql: str
    secrets: list[list[Any]]
    plain: str = ""

    def as_json(self) -> dict[str, Any]:
        """As plain data, for another process."""
        return asdict(self)


#: As in the paper: nothing but the name, or the number, and no second key to sort by.
REVIEWS_Q2 = (
    "SELECT name FROM restaurants WHERE category = ? AND (hex2mi = ? OR hex2mi = ? OR hex2mi = ?)"
    " ORDER BY stars DESC LIMIT 10"
)
FLIGHTS_Q2 = "SELECT flight_no FROM flights WHERE origin = ? AND dest = ? ORDER BY price LIMIT 10"


def jobs(table: str, file: Path) -> list[Job]:
    """The queries of one table."""
    chance = np.random.default_rng(SEED)
    return _restaurants(chance) if table == "restaurants" else _flights(chance, file)


def _restaurants(chance: np.random.Generator) -> list[Job]:
    named = restaurants.CATEGORIES
    places = [(int(chance.integers(40)), *chance.uniform(-8, 8, 2)) for _ in range(SECRETS)]
    several = [chance.choice(120, 6, replace=False) for _ in range(SECRETS)]
    return [
        Job("restaurants Q1", reviews.Q1, [[c] for c in named[:SECRETS]]),
        Job(
            "restaurants Q2",
            REVIEWS_Q2,
            [list(reviews.near(named[n % 30], *position)) for n, position in enumerate(places)],
            REVIEWS_Q2.replace("stars DESC", "stars DESC, rowid"),
        ),
        Job(
            "restaurants Q3",
            reviews.Q3,
            [[named[c] for c in some] for some in several],
        ),
    ]


def _flights(chance: np.random.Generator, file: Path) -> list[Job]:
    with duckdb.connect() as con:
        routes = con.execute(
            f"SELECT origin, dest FROM '{file}'"
            " GROUP BY ALL ORDER BY count(*) DESC, 1, 2 LIMIT 1000"
        ).fetchall()
    some = [list(routes[n]) for n in chance.choice(len(routes), SECRETS, replace=False)]
    # One of the routes leads nowhere: a miss takes as long as a hit.
    some[-1] = ["JFK", "JFK"]
    months = chance.integers(1, 13, SECRETS).tolist()
    return [
        Job(
            "flights Q1",
            flights.Q1,
            [[month, *route] for month, route in zip(months, some, strict=True)],
        ),
        Job("flights Q2", FLIGHTS_Q2, some, FLIGHTS_Q2.replace("price", "price, rowid")),
        Job(
            "flights top 10",
            flights.TOP_10,
            [[*route, min(m, 7), max(m, 7)] for m, route in zip(months, some, strict=True)],
        ),
    ]
