"""The results of the evaluation of Splinter (section 8), on 64 cores per provider, 14 ms away.

The numbers are from the text of the paper, without its plots. Those of Figures 7 to 11 and 13 are
confirmed by the chapter of the first author's doctoral thesis, whose public source repeats them
(Figures 10 and 13 partly commented out). Unconfirmed: the curves of Figure 12, of which only the
numbers in the text are known.
"""

from __future__ import annotations

from dataclasses import dataclass

RTT_MS = 14
CORES = 64


@dataclass(frozen=True, slots=True)
class Result:
    """A row of Figure 7: bits of the domain, rounds, KB for each provider, milliseconds."""

    bits: str
    rounds: int
    up_kb: float
    down_kb: float
    ms: float

    @property
    def limit_ms(self) -> float:
        """The time of the rounds and a quarter of the rest."""
        waiting = self.rounds * RTT_MS
        return waiting + (self.ms - waiting) / 4


#: Figure 7: two providers, and three with the scheme of one-way functions.
TWO = {
    "restaurants Q1": Result("11", 1, 2.75, 0.03, 57),
    "restaurants Q2": Result("22", 1, 16.5, 7, 150),
    "restaurants Q3": Result("11", 11, 244, 0.7, 1_300),
    "flights Q1": Result("17", 1, 8.5, 0.06, 1_000),
    "flights Q2": Result("13", 1, 3.25, 0.3, 30),
    "maps": Result("14 and 22", 2, 12.5, 31, 1_200),
}
THREE = {
    "restaurants Q1": Result("11", 1, 10, 18, 52),
    "restaurants Q2": Result("22", 1, 1_900, 0.21, 542),
    "restaurants Q3": Result("11", 11, 880, 396, 1_600),
    "flights Q1": Result("17", 1, 160, 300, 1_200),
    "flights Q2": Result("13", 1, 20, 0.13, 39),
    "maps": Result("14 and 22", 2, 720, 1.1, 1_000),
}
#: Figure 8: rows, megabytes, cardinality.
DATA = {
    "restaurants": ("225,000 rows", 23, "900 categories"),
    "flights": ("6,100,000 rows", 225, "5,000 flights"),
    "maps": ("260,000 nodes, 733,000 edges", 300, "1,333 transit nodes"),
}
#: Figure 9: seconds of the grid's query, of the transit nodes', together.
MAPS_S = {"two": (0.35, 0.85, 1.2), "three": (0.15, 0.85, 1.0)}
#: Figure 11: round trips of Olumofin et al. (4-ary tree) and of Splinter.
ROUND_TRIPS = {
    "restaurants Q1": (6, 1),
    "restaurants Q2": (6, 1),
    "restaurants Q3": (6, 11),
    "flights Q1": (13, 1),
    "flights Q2": (8, 1),
    "maps": (19, 2),
}
#: The thesis' comparison in bytes: KB in all of Splinter and of Olumofin et al.
BANDWIDTH_KB = {
    "restaurants Q1": (2.8, 16),
    "restaurants Q2": (23.5, 128),
    "restaurants Q3": (245, 512),
    "flights Q1": (8.6, 128),
    "flights Q2": (3.6, 128),
    "maps": (44, 192),
}
#: Figure 12, from the text of section 8.3: evaluations a second on one core, 24 bits.
POINTS_24_PER_S = 700_000
PAILLIER_PER_S = 250
HASHES_GAIN = 2.5
"""How much faster one-way compression is than AES used as a generator."""
#: Figure 13: bits, and seconds to make shares with one-way functions and with Paillier.
GENERATION_S = {8: (0.001, 0.06), 16: (0.001, 1.0), 24: (0.044, 16.0), 32: (0.166, 265.0)}
TWO_PARTY_GENERATION_S = 0.001
#: Section 8.4.
CENTS_PER_CPU_HOUR = 5.0
CENTS = {"most": 0.002, "maps": 0.02}


@dataclass(frozen=True, slots=True)
class Site:
    """A row of Figure 10: fields of a search form, the kind of condition, what asks it here."""

    site: str
    fields: str
    paper: str
    ours: str


#: Figure 10. The fields are those of the sites of 2016, from the thesis; the last column says how
#: our language asks for them. It is a statement about the language, not a measurement.
SITES = (
    Site("Yelp", "booking method, cities, distance", "equality", "`=`; distance by hexagons"),
    Site("Yelp", "price", "range", "BETWEEN"),
    Site("Yelp", "best match, top rated, most reviews", "sorting", "ORDER BY … LIMIT"),
    Site("Yelp", "free text", "not supported", "refused; `=` on a category where one is meant"),
    Site("Hotels.com", "destination, room type, amenities", "equality", "`=`, IN, OR"),
    Site("Hotels.com", "check in and out, price, ratings", "range", "BETWEEN, one secret interval"),
    Site("Hotels.com", "stars, distance, ratings, price", "sorting", "ORDER BY … LIMIT"),
    Site("Hotels.com", "name contains", "not supported", "refused"),
    Site("Kayak", "from, to, cabin, passengers, stops", "equality", "`=` combined with AND"),
    Site("Kayak", "date, flight time, layover, price", "range", "BETWEEN, one secret interval"),
    Site("Google Maps", "from, to, transit type, route options", "equality", "two look-ups"),
)
