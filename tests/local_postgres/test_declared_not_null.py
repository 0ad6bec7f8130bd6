"""What a declared NOT NULL tells PostgreSQL's planner: a condition that no row can meet, beside
which nothing is computed that would fail.
"""

from __future__ import annotations

import random

import pytest

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin

_FORMS = (
    "SELECT count(*) FROM t AS a, o AS b WHERE {}",
    "SELECT a.k FROM t AS a, o AS b WHERE {} FOR UPDATE",
    "SELECT b.k FROM t AS a LEFT JOIN o AS b ON a.k = b.k WHERE {}",
    "UPDATE t AS a SET c = a.c FROM o AS b WHERE {}",
    "DELETE FROM t AS a USING o AS b WHERE {}",
    "MERGE INTO t AS a USING o AS b ON {} WHEN MATCHED THEN UPDATE SET c = 1",
)
_MET = ("{} IS NULL", "{} IS NOT NULL", "NOT ({} IS NOT NULL)", "({} IS NULL) IS TRUE")
_FAILS = ("a.k + 1 > 5", "1 / (a.c - 1) = 1", "b.k + 1 > 5", "a.k < 0 OR b.k + a.k > 3")


def _statement(draws: random.Random) -> str:
    column = draws.choice(["a.k", "a.c", "a.n", "b.k", "b.n"])
    met = draws.choice(_MET).format(column)
    parts = [met, draws.choice(_FAILS)]
    draws.shuffle(parts)
    return draws.choice(_FORMS).format(" AND ".join(parts))


@pytest.mark.parametrize("number", range(cases(6)))
def test_what_cannot_be_null(number: int) -> None:
    draws = generator(f"not null {number}")
    twin = PostgresTwin("cryptdb" if number % 2 else "sealed")
    try:
        for table in ("t", "o"):
            key = draws.choice([" PRIMARY KEY", " NOT NULL", ""])
            rules = [draws.choice([" NOT NULL", ""]) for _ in range(2)]
            columns = f"k integer ENC{key}, c integer ENC{rules[0]}, n bigint{rules[1]}"
            twin.run(f"CREATE TABLE {table} ({columns})")
            if draws.random() < 0.9:
                twin.run(f"INSERT INTO {table} VALUES (2147483647, 1, 1), (14, 1, 2)")
        for _ in range(40):
            twin.run(_statement(draws))
    finally:
        twin.close()
