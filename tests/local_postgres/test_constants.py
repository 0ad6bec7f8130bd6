"""Constants of conditions in PostgreSQL's language: what the server compares is what they mean."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_CONDITIONS = (
    "b = 2.5", "b = 2.505", "b < 2.505", "b <= 2.505", "b IN (1, 2.25, 1e100)",
    "b > 'NaN'::numeric",    "b < 'NaN'::numeric", "b >= '-Infinity'::numeric",
    "b BETWEEN -1.255 AND 3.33333333333333333333",
    "i = 1.5", "i < 1.5", "i >= 1e1", "i <> 1.5", "i = 9007199254740993e0", "f = 1.5", "f < 1.5e1",
    "f <> 2.5", "i IS NOT NULL", "NOT (i IS NOT NULL)", "(i IS NOT NULL) = (b > 1)", "a NOTNULL",
    "a = 'x5'", "a >= 'x5' AND a NOT LIKE 'x6%'", "a = 'x5'::varchar(1)", "d = '2020-01-06'",
    "d < timestamp '2020-01-06 12:00'", "i = '7'", "i IS NOT DISTINCT FROM 7",
)  # fmt: skip
_NARROWED = (0, 1, 2, 3, 9, 10, 11, 14, 21, 24, 26)


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin("cryptdb")
    twin.run(
        "CREATE TABLE t (k integer ENC, b numeric(10,2) ENC, i bigint ENC, f float8 ENC,"
        " a text ENC, d date ENC)"
    )
    twin.run(
        "INSERT INTO t SELECT g, g * 0.25, g, g * 0.5, 'x' || g, date '2020-01-01' + g"
        " FROM generate_series(-20, 200) AS g"
    )
    twin.run("INSERT INTO t VALUES (1000, NULL, NULL, NULL, NULL, NULL)")
    twin.run("INSERT INTO t (k, i, f) VALUES (1001, 9007199254740993, 'NaN'), (1002, 1, '-0')")
    yield twin
    twin.close()


@pytest.mark.parametrize("condition", _CONDITIONS)
def test_conditions_mean_the_same(condition: str, twin: PostgresTwin) -> None:
    twin.run(f"SELECT k FROM t WHERE {condition}")
    twin.run(f"SELECT count(*) FROM t WHERE NOT ({condition})")


@pytest.mark.parametrize("number", _NARROWED)
def test_conditions_narrow_what_the_server_sends(number: int, twin: PostgresTwin) -> None:
    plan = twin.louver.execute(f"EXPLAIN SELECT k FROM t WHERE {_CONDITIONS[number]}").fetchall()
    assert "WHERE" in str(plan).partition("home")[0]
