"""Flights by route, month and price (Splinter, section 8.1)."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples.flights import data, queries
from louver.trusted.apps.demo import flights

ROWS = 20_000


@pytest.fixture(scope="module")
def table():
    return data.new_york(ROWS)


class TestTable:
    def test_prices_follow_the_recipe(self, table):
        assert table.equals(data.new_york(ROWS))
        raw = flights.raw(ROWS)
        for row in (0, 1, 7_777, table.num_rows - 1):
            mixed = row * 2_654_435_761 % 2**32
            cents = 3_900 + 11 * raw["distance"][row].as_py() + (mixed >> 16) % 15_000
            assert round(table["price"][row].as_py() * 100) == cents
        assert table["price"].type == pa.decimal128(8, 2)

    def test_three_millions_are_repeated_half_a_year_later(self, tmp_path):
        few = pa.table(
            {
                "date": pa.array([0, 90 * 86_400], pa.timestamp("s")),
                "delay": pa.array([5, None]),
                "distance": [100, 200],
                "origin": ["LAS", "ATL"],
                "destination": ["PHL", "SAV"],
            }
        )
        pq.write_table(few, tmp_path / "few.parquet")
        flights = data.vega(tmp_path / "few.parquet", 5)
        assert flights["month"].to_pylist() == [1, 4, 7, 10, 1]
        assert flights["origin"].to_pylist() == ["LAS", "ATL"] * 2 + ["LAS"]
        assert flights["id"].to_pylist() == list(range(5))
        assert flights.schema == data.new_york(10).schema


def test_the_queries_mean_what_they_say_in_plaintext(table):
    with duckdb.connect() as con:
        con.register(data.TABLE, table)
        for query in queries.queries():
            assert con.execute(query.sql, list(query.parameters)).fetchall()
