"""Queries whose answers depend on which columns a text names, and in which order."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.reads import PROFILES, Both

THREE = (
    "CREATE TABLE t (c0 INTEGER ENC, c1 INTEGER ENC, c2 INTEGER ENC)",
    "INSERT INTO t VALUES (1, 2, 3), (4, 5, 6), (1, 2, 3), (NULL, 8, 9)",
    "CREATE TABLE u (c0 INTEGER ENC, p INTEGER)",
    "INSERT INTO u VALUES (1, 7), (4, 7), (9, 9)",
)


@pytest.fixture(params=PROFILES)
def both(request, open_connection) -> Both:
    return Both(open_connection(request.param))


def test_a_star_of_groups_keeps_the_order_of_the_columns(both: Both) -> None:
    both.run(*THREE)
    for keys in permutations(("c0", 't."C1"', "c2")):
        group = ", ".join(keys)
        for items in ("*", "t.*", "DISTINCT *", "c1, *", "*, count(*)", "t.*, sum(c1)"):
            query = f"SELECT {items} FROM t GROUP BY {group}"
            both.same(query)
            both.same(f"SELECT DISTINCT * FROM ({query}) AS q")
    both.same("SELECT * FROM t JOIN u ON t.c0 = u.c0 GROUP BY p, c2, u.c0, c1, t.c0")
    both.same("SELECT u.*, t.* FROM t JOIN u ON t.c0 = u.c0 GROUP BY p, c2, u.c0, c1, t.c0")
    both.same("SELECT *, c1 FROM t GROUP BY c1, c2, c0 HAVING count(*) > 1")
    both.same("SELECT * FROM t GROUP BY c1, c0")
