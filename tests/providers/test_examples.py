"""The examples' queries, asked of two and three providers, equal plaintext DuckDB's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import louver
from examples.flights import data as flights
from examples.flights import queries as flight_queries
from examples.providers import running, url
from examples.restaurants import data as restaurants
from examples.restaurants import queries as restaurant_queries
from louver.trusted.apps.demo_console import same
from tests.sources import ROOT

ROWS = 4_000


@pytest.fixture(scope="module", params=[2, 3])
def connected(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, duckdb.DuckDBPyConnection]]:
    """A session with providers of both tables, and plaintext DuckDB."""
    folder = tmp_path_factory.mktemp("examples")
    tables = {
        "restaurants": restaurants.restaurants(ROWS),
        "flights": flights.new_york(ROWS),
    }
    files: list[Path] = []
    with duckdb.connect() as plain:
        for name, table in tables.items():
            files.append(folder / f"{name}.parquet")
            pq.write_table(table, files[-1])
            plain.register(name, table)
        with (
            running(files, request.param, options=("--threads", "1")) as providers,
            louver.connect(url(providers)) as con,
        ):
            yield con, plain


def questions() -> list[Any]:
    places = [(0, 0.0, 0.0), (0, 1.5, -0.5), (3, -2.0, 4.0), (39, 30.0, 30.0)]
    queries: list[tuple[str, tuple[object, ...]]] = [
        *((restaurant_queries.Q1, (name,)) for name in ("Thai", "American", "No such thing")),
        *(
            (restaurant_queries.Q2, restaurant_queries.near(name, *index))
            for name, index in zip(("Mexican", "American", "Pizza", "Thai"), places, strict=True)
        ),
        (restaurant_queries.Q3, restaurant_queries.SUBSET),
        (restaurant_queries.Q3, ("Thai",) * 5 + ("Nothing",)),
        *((query.sql, query.parameters) for query in flight_queries.queries()),
        (flight_queries.Q1, (3, "JFK", "JFK")),
        (flight_queries.Q2, ("LGA", "ATL")),
        (flight_queries.Q2, ("ATL", "LGA")),
        (flight_queries.TOP_10, ("EWR", "ORD", 1, 12)),
        (flight_queries.TOP_10, ("EWR", "ORD", 12, 1)),
    ]
    return [pytest.param(*query, id=f"{n}-{query[1][0]}") for n, query in enumerate(queries)]


@pytest.mark.parametrize(("sql", "secrets"), questions())
def test_answers_equal_plaintext(connected, sql: str, secrets: tuple[object, ...]):
    con, plain = connected
    answer = con.execute(sql, list(secrets))
    wanted = plain.execute(sql, list(secrets))
    assert same(answer.fetchall(), wanted.fetchall())
    assert [column[0] for column in answer.description] == [
        column[0] for column in wanted.description
    ]


@pytest.mark.parametrize(("example", "rows"), [("restaurants", "3000"), ("flights", "3000")])
def test_an_example_runs(example: str, rows: str):
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{example}", "--rows", rows],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equal to plaintext DuckDB's answer") == 3
    assert "NOT EQUAL" not in done.stdout
    assert "private: " in done.stdout
