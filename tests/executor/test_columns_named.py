"""Queries whose answers depend on which columns a text names, and in which order."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.generated import cases, generator
from tests.twin import Twin

THREE = (
    "CREATE TABLE t (c0 INTEGER ENC, c1 INTEGER ENC, c2 INTEGER ENC)",
    "INSERT INTO t VALUES (1, 2, 3), (4, 5, 6), (1, 2, 3), (NULL, 8, 9)",
    "CREATE TABLE u (c0 INTEGER ENC, p INTEGER)",
    "INSERT INTO u VALUES (1, 7), (4, 7), (9, 9)",
)


@pytest.fixture
def twin(any_twin: Twin) -> Twin:
    return any_twin


@pytest.mark.in_turn
def test_a_star_of_groups_keeps_the_order_of_the_columns(twin: Twin) -> None:
    twin.fill(*THREE)
    for keys in permutations(("c0", 't."C1"', "c2")):
        group = ", ".join(keys)
        for items in ("*", "t.*", "DISTINCT *", "c1, *", "*, count(*)", "t.*, sum(c1)"):
            query = f"SELECT {items} FROM t GROUP BY {group}"
            twin.either(query)
            twin.either(f"SELECT DISTINCT * FROM ({query}) AS q")
    twin.either("SELECT * FROM t JOIN u ON t.c0 = u.c0 GROUP BY p, c2, u.c0, c1, t.c0")
    twin.either("SELECT u.*, t.* FROM t JOIN u ON t.c0 = u.c0 GROUP BY p, c2, u.c0, c1, t.c0")
    twin.either("SELECT *, c1 FROM t GROUP BY c1, c2, c0 HAVING count(*) > 1")
    twin.either("SELECT * FROM t GROUP BY c1, c0")


@pytest.mark.in_turn
def test_an_order_of_nulls_that_is_written_out_holds_under_every_setting(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (i INTEGER ENC, p INTEGER)")
    twin.fill("INSERT INTO t VALUES (1, 1), (NULL, 2), (3, NULL), (2, 4)")
    random = generator("order of nulls")
    for null_order in ("nulls_first", "nulls_last", "nulls_first_on_asc_last_on_desc"):
        for order in ("asc", "desc"):
            twin.fill(f"SET default_null_order = '{null_order}'", f"SET default_order = '{order}'")
            for _ in range(cases(6)):
                down = random.choice(("", " ASC", " DESC"))
                nulls = random.choice(("", " NULLS FIRST", " NULLS LAST"))
                key = random.choice(("i", "p"))
                twin.either(
                    f"SELECT {key} FROM t ORDER BY {key}{down}{nulls} LIMIT 1", ordered=True
                )
                grouped = f"SELECT {key}, count(*) FROM t GROUP BY {key}"
                twin.either(f"{grouped} ORDER BY {key}{down}{nulls} LIMIT 2", ordered=True)
                first = f"{grouped} ORDER BY {key}{down}{nulls} LIMIT 1"
                twin.either(f"WITH g AS ({first}) SELECT g.{key}, t.p FROM g, t")


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


@pytest.mark.in_turn
def test_a_star_that_chooses_columns_by_their_names(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (col1 INTEGER ENC, col2 INTEGER ENC, x INTEGER ENC)")
    twin.fill("INSERT INTO t VALUES (1, 2, 3), (1, 2, 3), (NULL, 5, 6)")
    for items in STARS:
        for rest in (
            "",
            " LIMIT 1",
            " ORDER BY ALL LIMIT 1",
            " ORDER BY x LIMIT 1",
            " WHERE x > 3",
        ):
            twin.either(f"SELECT {items} FROM t{rest}", ordered="ORDER" in rest)
        twin.either(f"SELECT DISTINCT {items} FROM t")
        twin.either(f"SELECT * FROM (SELECT {items} FROM t)")
