"""Numbers of 128 bits without a sign as shares: above 2^127 they are no negative numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.twin import Twin

MOST = (1 << 128) - 1
VALUES = (0, 1, 7, (1 << 127) - 1, 1 << 127, (1 << 127) + 5, MOST)
QUERIES = (
    "SELECT min(b), max(b), count(b) FROM t",
    "SELECT min(b), max(b) FROM t WHERE b > 7",
    "SELECT count(*) FROM t WHERE b > 3",
    f"SELECT k FROM t WHERE b = {MOST} ORDER BY k",
    f"SELECT k, b FROM t WHERE b BETWEEN {1 << 126} AND {MOST} ORDER BY k",
    "SELECT x.k FROM t x JOIN t y ON x.b = y.b WHERE x.b >= y.b ORDER BY 1",
    "SELECT b, count(*) FROM t GROUP BY b ORDER BY b",
    "SELECT sum(b) FROM t WHERE b < 1000",
    "SELECT * FROM t ORDER BY b",
)


@pytest.mark.parametrize("way", ["constants", "query", "altered"])
def test_queries(way: str, open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sdb")
    first = "BIGINT ENC" if way == "altered" else "UHUGEINT ENC"
    twin.fill(f"CREATE TABLE t (k INT, b {first})")
    if way == "altered":
        twin.run("INSERT INTO t VALUES (0, 1)")
        twin.run("ALTER TABLE t ALTER COLUMN b TYPE UHUGEINT")
    rows = ", ".join(f"({key}, {value}::UHUGEINT)" for key, value in enumerate(VALUES))
    twin.run(f"INSERT INTO t {'SELECT * FROM (' if way == 'query' else ''}VALUES {rows}"
             f"{') AS v(k, b)' if way == 'query' else ''}")  # fmt: skip
    for sql in QUERIES:
        twin.run(sql)
    twin.run(f"UPDATE t SET b = {MOST} WHERE k = 1")
    twin.run("SELECT max(b), min(b) FROM t WHERE k < 3")
