"""Statements that almost have a normal form: names, numbers and functions that mean another thing
than they seem to. Each has DuckDB's answer.
"""

from __future__ import annotations

from typing import Any

import pytest

SCHEMA = (
    "CREATE TABLE f (id INTEGER, dist INTEGER ENC, delay INTEGER ENC, month INTEGER)",
    "INSERT INTO f SELECT i, i * 37 % 1000, nullif(i * 13 % 90, 7) - 20, i % 12"
    " FROM range(120) r(i)",
    "CREATE TABLE lists (id INTEGER, l INTEGER[] ENC, share DECIMAL(8, 3) ENC)",
    "INSERT INTO lists SELECT i, [i, i + 1], i / 7 FROM range(5) r(i)",
    "CREATE TABLE own (n INTEGER ENC)",
    "INSERT INTO own VALUES (1)",
    "CREATE SCHEMA other",
    "CREATE TABLE other.own (n INTEGER ENC)",
    "INSERT INTO other.own VALUES (1000)",
    "CREATE VIEW other.own_view AS SELECT n FROM own",
    "CREATE MACRO itself(x) AS x",
    "CREATE MACRO longest() AS (SELECT max(dist) FROM f)",
    "CREATE VIEW macro_view AS SELECT n, longest() AS longest FROM own",
    "CREATE VIEW few AS SELECT dist FROM f WHERE month = 3",
)
STATEMENTS = [
    # One column in several spellings is several keys, or one key.
    'SELECT month, count(*) FROM f GROUP BY CUBE (month, "month")',
    "SELECT month, count(*) FROM f GROUP BY CUBE (month, MONTH)",
    "SELECT month, count(*) FROM f GROUP BY CUBE (month, f.month)",
    "SELECT month AS m, count(*) FROM f GROUP BY CUBE (month, m)",
    "SELECT month, count(*) FROM f GROUP BY CUBE (month, 1)",
    # Functions that are not known: aggregates, or several rows of one.
    "SELECT month, histogram(month), count(*) FROM f GROUP BY ROLLUP (month)",
    "SELECT month, max(dist, 2) FROM f GROUP BY ROLLUP (month)",
    "SELECT max(dist, 2), min(id, 1 + 1) FROM f",
    "SELECT month, max(delay, 2) FILTER (dist > 500), max(delay) FROM f GROUP BY month",
    "SELECT sum(x) FROM (SELECT id AS x, unlist(l) AS u FROM lists)",
    "SELECT sum(x) FROM (SELECT month AS x, sum(dist) AS y, unlist([1, 2]) AS u FROM f GROUP BY 1)",
    # A constant by a name is no ordinal.
    "SELECT 3 AS z, count(*), month FROM f GROUP BY z, month ORDER BY z, month DESC LIMIT 3",
    "SELECT z, n, month FROM (SELECT 3 AS z, id AS n, month FROM f) ORDER BY z, n LIMIT 3",
    "SELECT id, dist FROM f ORDER BY itself(2), id LIMIT 3",
    # What a view's text means: its own schema's tables, and what its macros read.
    "SELECT n, longest FROM macro_view",
    "SELECT n FROM other.own_view",
    "SELECT sum(n) FROM other.own_view",
    # A common table expression of the name of a view that it reads.
    "WITH few AS (SELECT dist FROM few WHERE dist > 500) SELECT count(*), max(dist) FROM few",
    "WITH f AS (SELECT max(dist) AS most FROM few) SELECT * FROM f",
    # A table's columns by other names, within a query that is merged.
    "SELECT max(x) FROM (SELECT dist AS x FROM f AS f2(dist, id))",
    "SELECT y.dist FROM (SELECT * FROM f AS f2(dist, id)) AS y WHERE y.id > 900 ORDER BY ALL",
    # A sample is drawn of what the conditions within leave.
    "SELECT count(*) FROM (SELECT dist FROM f WHERE month = 3) USING SAMPLE 9",
    "SELECT count(*) FROM few USING SAMPLE 9",
    # A named window's columns are the query's.
    "SELECT id, row_number() OVER w AS r FROM (SELECT id, dist AS month FROM f)"
    " WINDOW w AS (ORDER BY month, id)",
    # A number that decides the type, in statements of one shape.
    "SELECT round(share, 1 + 2) AS r FROM lists",
    "SELECT round(share, 1 + 0) AS r FROM lists",
]


@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
@pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
def test_what_seems_to_have_a_normal_form(profile: str, open_twin: Any) -> None:
    twin = open_twin(profile)
    twin.fill(*SCHEMA)
    for sql in STATEMENTS:
        twin.either(sql)
