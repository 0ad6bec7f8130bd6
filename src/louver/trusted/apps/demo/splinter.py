"""`louver demo splinter`: private questions to two providers of public flights, and what each
provider saw.
"""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from louver.trusted.apps import share_inspection, terminal
from louver.trusted.apps.demo import flights
from louver.trusted.apps.demo_console import Console, Question, same, service, services
from louver.trusted.client.connect import connect
from louver.trusted.client.dbapi import Connection

_NAMES = ("first", "second")


QUESTIONS = (
    Question(
        "The mean price of a month, from one airport to another",
        "An AND of equalities: one point function. Each provider obliviously selects one record of "
        "a table that it prepared for all months and all pairs of airports.",
        "SELECT avg(price) AS mean_price, count(*) AS flights FROM flights\n"
        "WHERE month = ? AND origin = ? AND dest = ?",
        (3, "JFK", "SFO"),
    ),
    Question(
        "The ten cheapest flights",
        "The record of a pair of airports contains its first ten rows, padded to ten.",
        "SELECT flight, carrier, day, price FROM flights\n"
        "WHERE origin = ? AND dest = ? ORDER BY price, day, flight LIMIT 10",
        ("LGA", "ATL"),
    ),
    Question(
        "A private interval of days, summed by carrier",
        "Two comparison functions; the sums of all carriers are computed on shares. The bound on "
        "the distance is public, like every literal.",
        "SELECT carrier, count(*) AS flights, sum(price) AS paid FROM flights\n"
        "WHERE day BETWEEN ? AND ? AND distance > 1000 GROUP BY carrier ORDER BY carrier",
        ("2013-07-03", "2013-07-05"),
    ),
    Question(
        "The most expensive flight of some days, in two rounds",
        "A maximum is not additive: the first round locates the interval in the sorted days, the "
        "second fetches maxima over blocks of 2^k days that cover it.",
        "SELECT max(price) AS dearest, arg_max(flight, price) AS flight FROM flights\n"
        "WHERE origin = ? AND day BETWEEN ? AND ?",
        ("EWR", "2013-12-20", "2013-12-31"),
    ),
    Question(
        "One of several destinations",
        "Three clauses, three point functions at once. A repeated value is replaced by a dummy, so "
        "the number of functions reveals nothing.",
        "SELECT dest, min(price) AS cheapest FROM flights\n"
        "WHERE dest IN (?, ?, ?) GROUP BY dest ORDER BY dest",
        ("HNL", "ANC", "HNL"),
    ),
)


class SplinterDemonstration:
    """Starts the providers, sends the questions, prints what each provider saw, and compares."""

    def __init__(self, directory: Path, *, quiet: bool, rows: int) -> None:
        self._directory, self._rows = directory, rows
        self._console = Console(quiet=quiet)
        self._plain = duckdb.connect(":memory:")

    def run(self) -> dict[str, Any]:
        """Run the demonstration; its results as plain data."""
        data = self._directory / "flights.parquet"
        rows = priced(self._rows)
        pq.write_table(rows, data)
        self._plain.execute(f"CREATE VIEW flights AS FROM '{data}'")
        seen = [self._directory / name for name in _NAMES]
        options = [("--data", str(data), "--record", str(folder)) for folder in seen]
        with services(*(service("provider", *each) for each in options)) as providers:
            console, say = self._console, self._console.say
            console.title("Two providers of the same public data that do not collude")
            for provider in providers:
                say(f"  louver serve provider --data flights.parquet   → {provider.address}")
            url = "providers://" + ",".join(provider.address for provider in providers)
            say(f"  {rows.num_rows:,} flights; louver.connect({url!r}), without a key\n")
            with connect(url) as connection:
                answers = [
                    self._query(connection, n, question, seen)
                    for n, question in enumerate(QUESTIONS, 1)
                ]
                console.title("Everything that the providers have learned")
                facts = connection.leakage().arrow().to_pylist()
                for fact in facts:
                    console.fill(fact["reveals"], "  ", "    ")
                say("")
        self._plain.close()
        revealed = [{"question": f["statement"], "reveals": f["reveals"]} for f in facts]
        return {"rows": rows.num_rows, "questions": answers, "facts": revealed}

    def _query(
        self, connection: Connection, number: int, question: Question, seen: list[Path]
    ) -> dict[str, Any]:
        console = self._console
        console.title(f"{number}. {question.title}")
        console.fill(question.why)
        console.code(question.sql)
        console.say(f"  private: {', '.join(map(repr, question.parameters))}", "green")
        before = [_files(folder) for folder in seen]
        start = time.perf_counter()
        relation = connection.sql(question.sql, question.parameters).execute()
        spent_ms = (time.perf_counter() - start) * 1000
        views = [
            share_inspection.views(sorted(_files(folder) - known))
            for folder, known in zip(seen, before, strict=True)
        ]
        for name, lines in zip(_NAMES, views, strict=True):
            console.say(f"  the {name} provider saw")
            for line in lines:
                for part in textwrap.wrap(line, console.width - 4, subsequent_indent="  "):
                    console.say(f"    {part}", "yellow")
        console.answer(relation)
        mine = relation.fetchall()
        theirs = self._plain.execute(question.sql, list(question.parameters)).fetchall()
        console.equal(same(mine, theirs), f", {spent_ms:.0f} ms")
        return {
            "sql": question.sql, "secrets": [str(secret) for secret in question.parameters],
            "rows": terminal.rows_json(mine), "first_saw": views[0], "second_saw": views[1],
            "ms": round(spent_ms, 1), "equal_to_plaintext": True,
        }  # fmt: skip


def priced(rows: int) -> pa.Table:
    """The flights with a price in cents, which follows from the flight alone."""
    with duckdb.connect(":memory:") as connection:
        connection.register("flights", flights.raw(rows))
        return connection.execute(
            "SELECT make_date(year::INT, month::INT, day::INT) AS day, month::INT AS month,"
            " carrier, flight::INT AS flight, origin, dest, distance::BIGINT AS distance,"
            " (4900 + distance::BIGINT * 11 + (flight::BIGINT * 7919 + day::BIGINT * 104729)"
            " % 20011)::INT AS price FROM flights ORDER BY 1, sched_dep_time, 3, 4"
        ).to_arrow_table()


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()
