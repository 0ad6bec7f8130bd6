"""The attacks: nothing before a query, everything after; and the mathematics on its own."""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import louver
from louver.trusted.apps.commands.attack import of_connection
from louver.trusted.apps.ground_truth import judge, unscaled
from louver.untrusted.attacks.common_key import Combination, combinations, search
from louver.untrusted.attacks.coprime import Recovered, conclude
from louver.untrusted.attacks.rational import invert_all, primitive, reconstruct
from tests.client.harness import connection

N = (2**521 - 1) * (2**607 - 1)
ROWS = 600
CREATE = """
CREATE TABLE {name} (a BIGINT ENC USING sdb, b BIGINT ENC USING sdb, c DECIMAL(9,2) ENC USING sdb,
                     day DATE ENC USING sdb, s TEXT ENC)
"""


def attacked(con: louver.Connection, table: str) -> dict[str, dict[str, Any]]:
    options = argparse.Namespace(table=table, rows=ROWS, seconds=600.0)
    (answer,) = of_connection(con, options)
    assert answer["complete"]
    return {column["column"]: column for column in answer["columns"]}


@pytest.fixture(scope="module")
def con() -> Iterator[louver.Connection]:
    with connection() as opened:
        yield opened


def fill(con: louver.Connection, name: str) -> None:
    """A table with random data."""
    dice = random.Random(7)
    con.execute(CREATE.format(name=name))
    rows = pa.table(
        {
            "a": [0, None, *(dice.randrange(-(10**6), 10**6) for _ in range(ROWS - 2))],
            "b": [dice.randrange(1, 10**9) for _ in range(ROWS)],
            "c": pa.array(
                [Decimal(dice.randrange(1, 10**6)).scaleb(-2) for _ in range(ROWS)],
                pa.decimal128(9, 2),
            ),
            "day": pa.array([dice.randrange(1, 20_000) for _ in range(ROWS)], pa.int32()).cast(
                pa.date32()
            ),
            "s": [str(n) for n in range(ROWS)],
        }
    )
    con.load(name, rows)


def test_before_any_query_nothing_is_recovered(con: louver.Connection) -> None:
    fill(con, "fresh")
    before = attacked(con, "fresh")
    assert set(before) == {"a", "b", "c", "day"}
    assert all(column["recovered"] == 0 for column in before.values())
    assert (before["a"]["zeros_visible"], before["a"]["nulls_visible"]) == (1, 1)
    con.sql("SELECT a, s FROM fresh WHERE s = '5'").fetchall()
    con.sql("SELECT a * b FROM fresh").fetchall()
    assert all(column["recovered"] == 0 for column in attacked(con, "fresh").values())


@pytest.mark.parametrize(
    ("number", "query", "columns", "how", "least"),
    [
        (1, "SELECT sum(a) FROM {0}", "a", "common key", ROWS - 1),
        (2, "SELECT sum(c) FROM {0}", "c", "common key", ROWS),
        (3, "SELECT s FROM {0} WHERE day > DATE '1990-01-01'", "day", "constant", ROWS),
        (4, "SELECT s FROM {0} WHERE a > 17", "a", "constant", ROWS - 1),
        (5, "SELECT b + 5 FROM {0}", "b", "sum with a constant", ROWS),
        (6, "SELECT s FROM {0} WHERE a < b", "a b", "coprime", ROWS // 2),
        (8, "SELECT a + b FROM {0}", "b", "coprime", ROWS // 2),
    ],
)
def test_one_query_opens_a_column(
    con: louver.Connection, number: int, query: str, columns: str, how: str, least: int
) -> None:
    name = f"t{number}"
    fill(con, name)
    con.sql(query.format(name)).fetchall()
    answer = attacked(con, name)
    for column in columns.split():
        guess = answer[column]
        assert how in guess["attack"]
        assert guess["recovered"] >= least
        assert guess["wrong"] <= ROWS // 2
        if "coprime" not in how:
            assert guess["wrong"] == 0
    facts = con.leakage().arrow().to_pylist()
    said = [f for f in facts if f["table_name"] == name and f["level"] == "plaintext"]
    assert all(any(column in f["columns"] for f in said) for column in columns.split())


def test_reconstruction_finds_what_is_small_and_nothing_else() -> None:
    dice = random.Random(1)
    for _ in range(50):
        above = dice.choice((1, -1)) * dice.randrange(1, 2**200)
        below = dice.randrange(1, 2**200)
        residue = above * pow(below, -1, N) % N
        answer = reconstruct(residue, N)
        assert answer in (Fraction(above, below), None)
        assert above < 0 or answer is not None
        assert reconstruct(dice.randrange(N), N) is None


def test_helpers_of_the_arithmetic() -> None:
    values = [3, 5, 2**300 + 1]
    assert [v * i % N for v, i in zip(values, invert_all(values, N), strict=True)] == [1, 1, 1]
    assert primitive([Fraction(1, 2), None, Fraction(3, 4), Fraction(0)]) == [2, None, 3, 0]


def test_the_search_stops_in_time_and_tries_the_simple_first() -> None:
    tried = list(combinations(["a", "h"], ["w"]))
    assert tried[0] == Combination((), (), "w")
    assert len(tried) == len(set(tried)) == 1 + 4 + 3 + 2
    columns = {name: [dice + 2 for dice in range(5)] for name in ("a", "h", "w")}
    endless = itertools.repeat(tried[0])
    values, _, complete = search(columns, endless, N, budget_s=-1.0)
    assert (values, complete) == ([], False)
    assert conclude([], ["a"]) == []


def test_judging() -> None:
    up_to = Recovered("s", "common key", (-2, None, 4, 0, 5))
    verdict = judge("c", up_to, [10, None, -20, 0, 5])
    assert (verdict.right, verdict.wrong, verdict.factor) == (3, 1, -5)
    exact = Recovered("s", "coprime", (2, -3, 4), exact=True)
    assert judge("c", exact, [2, 3, 8]).right == 2
    assert unscaled(None, "INTEGER") is None
    assert unscaled("text", "VARCHAR") is None
