"""What changes in PostgreSQL's language may depend on, where sqlglot's grammar does not say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run(
        "CREATE TABLE n (r numrange ENC, b bit(4) ENC, a int[] ENC, i int ENC, t text ENC,"
        " v tsvector ENC, p int)"
    )
    opened.run("CREATE TABLE s (i int ENC MAY REVEAL equality)")
    opened.run("INSERT INTO s VALUES (1), (3)")
    opened.run(
        "CREATE FUNCTION reads() RETURNS text LANGUAGE sql AS 'SELECT relname FROM pg_class'"
    )
    opened.run(
        "CREATE FUNCTION adds(a int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT a + 1; END"
    )
    yield opened
    opened.close()


def test_functions_of_arguments_and_bits(twin: PostgresTwin) -> None:
    for sql in (
        "INSERT INTO n (r, b, i) VALUES (numrange(1.1, 2.2), B'0101', 1)",
        "INSERT INTO n (r, i) SELECT numrange(g, g + 1), g FROM generate_series(1, 3) g",
        "INSERT INTO n (i) SELECT generate_series(1, 4)",
        "INSERT INTO n (a[1], a[2], i) SELECT 7, 8, 9",
        "INSERT INTO n (p, i) VALUES (length(B'01'), 5), (adds(2), adds(5))",
        "UPDATE n SET b = b << 1 | B'0001' WHERE i = 1 AND b << 1 >> 1 = B'0010' || B''",
        "UPDATE n SET b = b << 1 WHERE b IS NOT NULL",
        "UPDATE n SET v = to_tsvector('english', 'the fat cats') WHERE i = 1",
        "UPDATE n SET r = r * numrange(0, 2) WHERE i = 2",
        "SELECT i << 2, i >> 1 & 1, 3 << i FROM n WHERE i << 1 > 2",
        "SELECT * FROM n",
    ):
        twin.run(sql)


@pytest.mark.parametrize("sql", [
    # values of ENC columns, by way of what the grammar does not know
    "UPDATE n SET p = length(b << 1) WHERE b IS NOT NULL",
    "INSERT INTO n (p) SELECT upper_inf(numrange(i, i + 1))::int FROM n",
    "UPDATE n SET p = adds(i)",
    "INSERT INTO n (t) SELECT t FROM n JOIN s ON numrange(s.i, n.i) && n.r",
    # the schema
    "UPDATE n SET t = current_setting('DateStyle')",
    "INSERT INTO n (t) SELECT relname FROM pg_class WHERE relname = 'n'",
    "INSERT INTO n (t) SELECT pg_get_expr(NULL, 0)",
    "INSERT INTO n (t) VALUES (reads())",
    "CREATE TABLE d (i int ENC, t text ENC DEFAULT current_setting('TimeZone'))",
])  # fmt: skip
def test_what_must_not_flow_is_refused(twin: PostgresTwin, sql: str) -> None:
    own = twin.on_louver(sql)
    assert own.error is not None, own
    assert own.error.code in ("leak.flow", "leak.refused")


def test_defaults_of_columns_are_looked_at_beside_the_statement(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE d (a int[] ENC, t text ENC DEFAULT upper(lower('x')))")
    twin.run("INSERT INTO d (a[1], a[2]) SELECT 7, 8")
    twin.run("SELECT * FROM d")
