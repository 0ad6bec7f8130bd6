"""Queries whose answers depend on which columns a text names, and in which order."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.executor.reads import PROFILES, Both
from tests.generated import cases, generator

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


def test_an_order_of_nulls_that_is_written_out_holds_under_every_setting(both: Both) -> None:
    both.run("CREATE TABLE t (i INTEGER ENC, p INTEGER)")
    both.run("INSERT INTO t VALUES (1, 1), (NULL, 2), (3, NULL), (2, 4)")
    random = generator("order of nulls")
    for null_order in ("nulls_first", "nulls_last", "nulls_first_on_asc_last_on_desc"):
        for order in ("asc", "desc"):
            both.run(f"SET default_null_order = '{null_order}'", f"SET default_order = '{order}'")
            for _ in range(cases(6)):
                down = random.choice(("", " ASC", " DESC"))
                nulls = random.choice(("", " NULLS FIRST", " NULLS LAST"))
                key = random.choice(("i", "p"))
                both.same(f"SELECT {key} FROM t ORDER BY {key}{down}{nulls} LIMIT 1", ordered=True)
                grouped = f"SELECT {key}, count(*) FROM t GROUP BY {key}"
                both.same(f"{grouped} ORDER BY {key}{down}{nulls} LIMIT 2", ordered=True)
                first = f"{grouped} ORDER BY {key}{down}{nulls} LIMIT 1"
                both.same(f"WITH g AS ({first}) SELECT g.{key}, t.p FROM g, t")


STARS = (
    "* LIKE 'col%'",
    "* NOT LIKE 'col%'",
    "* ILIKE 'COL%'",
    "* NOT ILIKE 'COL%'",
    "* GLOB 'col*'",
    "* SIMILAR TO 'col.'",
    "t.* LIKE 'col%'",
    "COLUMNS('col.')",
    "COLUMNS(* EXCLUDE x) + 1",
    "min(COLUMNS(*))",
    "COLUMNS(c -> c LIKE 'col%')",
    "* EXCLUDE (x)",
    "* REPLACE (x + 1 AS x)",
    "* RENAME (x AS y)",
    "x, * LIKE 'col%'",
    "count(*), count(COLUMNS(*))",
)


def test_a_star_that_chooses_columns_by_their_names(both: Both) -> None:
    both.run("CREATE TABLE t (col1 INTEGER ENC, col2 INTEGER ENC, x INTEGER ENC)")
    both.run("INSERT INTO t VALUES (1, 2, 3), (1, 2, 3), (NULL, 5, 6)")
    for items in STARS:
        for rest in (
            "",
            " LIMIT 1",
            " ORDER BY ALL LIMIT 1",
            " ORDER BY x LIMIT 1",
            " WHERE x > 3",
        ):
            both.same(f"SELECT {items} FROM t{rest}", ordered="ORDER" in rest)
        both.same(f"SELECT DISTINCT {items} FROM t")
        both.same(f"SELECT * FROM (SELECT {items} FROM t)")
