"""The paper's two queries of flights (Splinter, section 8.1) and a top ten within a period."""

from __future__ import annotations

from louver.trusted.apps.demo_console import Question

Q1 = "SELECT avg(price) AS price FROM flights WHERE month = ? AND origin = ? AND dest = ?"
#: `id` breaks ties of the price, so that there is one right answer.
Q2 = (
    "SELECT flight_no, price FROM flights WHERE origin = ? AND dest = ?\n"
    "ORDER BY price, id LIMIT 10"
)
TOP_10 = (
    "SELECT flight_no, month, price FROM flights\n"
    "WHERE origin = ? AND dest = ? AND month BETWEEN ? AND ?\n"
    "ORDER BY price, id LIMIT 10"
)


def queries(origin: str = "JFK", dest: str = "LAX") -> list[Question]:
    """All three, for one route."""
    return [
        Question("Q1", "the mean price of a route in March", Q1, (3, origin, dest)),
        Question("Q2", "the ten cheapest flights of a route", Q2, (origin, dest)),
        Question("top 10", "the same, from June to August", TOP_10, (origin, dest, 6, 8)),
    ]
