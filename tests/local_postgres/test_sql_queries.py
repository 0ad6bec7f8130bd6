"""Queries whose columns are read without being named, and others that need care."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE a (i integer ENC, j integer ENC, t text ENC)")
    opened.run("CREATE TABLE b (i integer ENC, k integer ENC)")
    opened.run("INSERT INTO a VALUES (1, 2, 'x'), (2, 3, 'y'), (3, NULL, 'z')")
    opened.run("INSERT INTO b VALUES (1, 5), (2, 6)")
    opened.run("CREATE VIEW w AS SELECT * FROM (a CROSS JOIN b) AS tx (ii, jj, tt, ii2, kk)")
    yield opened
    opened.close()


@pytest.mark.parametrize("sql", [
    "SELECT ii, tt, kk FROM (a CROSS JOIN b) AS tx (ii, jj, tt, ii2, kk)",
    "SELECT kk FROM w",
    "SELECT jj FROM (a JOIN b USING (i)) AS tx (ii, jj) WHERE ii = 1",
    "SELECT tx.jj FROM (a CROSS JOIN b) tx (ii, jj) ORDER BY tx.ii, tx.jj",
    "SELECT kk FROM ((a CROSS JOIN b) x CROSS JOIN a AS c) AS tx (ii, jj, tt, ii2, kk)",
    # names of other columns
    "SELECT tx.j FROM (a CROSS JOIN b) AS tx (j, i) WHERE tx.i = 2",
    "SELECT j FROM a CROSS JOIN b AS tx (k, j2) WHERE tx.k = 2",
    "SELECT count(*) FROM (a CROSS JOIN b) AS tx (j, i) WHERE i = 2",
    "SELECT n FROM ((SELECT 1 AS i) AS q CROSS JOIN b) AS tx (o, p, n)",
])  # fmt: skip
def test_columns_of_a_join_in_brackets_have_other_names(twin: PostgresTwin, sql: str) -> None:
    twin.run(sql)


@pytest.mark.parametrize("row", ["q.*", "q"])
@pytest.mark.parametrize("sql", [
    "SELECT a.i, count({row}) FROM a LEFT JOIN (SELECT * FROM b WHERE i > 1) q ON a.i = q.i"
    " GROUP BY a.i ORDER BY 1",
    "SELECT a.i, {row} IS NULL FROM a LEFT JOIN (SELECT * FROM b WHERE i > 1) q ON a.i = q.i",
    "SELECT a.i, (SELECT count({row})) FROM a LEFT JOIN (SELECT k, i FROM b) q ON a.i = q.i",
])  # fmt: skip
def test_a_whole_row_of_a_query_is_a_value(twin: PostgresTwin, sql: str, row: str) -> None:
    twin.run(sql.format(row=row))


def test_rows_without_columns_are_counted() -> None:
    opened = PostgresTwin()
    try:
        for sql in (
            "CREATE TABLE t (a int ENC, b text ENC)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "CREATE TEMP TABLE n ()", "INSERT INTO n DEFAULT VALUES", "INSERT INTO n SELECT FROM t",
            "SELECT count(*) FROM n", "SELECT * FROM n, t ORDER BY a", "SELECT n FROM n",
            "BEGIN", "DELETE FROM n", "SELECT count(*) FROM n", "ROLLBACK",
            "ALTER TABLE n ADD COLUMN x int DEFAULT 7", "SELECT * FROM n",
            "ALTER TABLE n DROP COLUMN x", "CREATE TABLE other (a int ENC)",
            "SELECT count(*), (SELECT relname FROM pg_class WHERE relname = 'n') FROM n",
            "CREATE TEMP TABLE m AS SELECT FROM t WHERE a = 1", "SELECT count(*) FROM m, n",
        ):  # fmt: skip
            opened.run(sql)
        for sql in (
            "SELECT", "SELECT FROM t", "SELECT FROM t WHERE b = 'x'", "SELECT UNION SELECT",
            "SELECT FROM t UNION ALL SELECT FROM t", "SELECT * FROM n", "SELECT FROM t, n -- all",
            "SELECT FROM t EXCEPT SELECT FROM generate_series(1, 9)", "TABLE m",
            "SELECT FROM pg_class WHERE relname = 'm'",
        ):  # fmt: skip
            plain, own = opened.both(sql)
            assert (own.error, own.rows, own.columns) == (None, [], []), sql
            assert own.affected == plain.affected, sql
    finally:
        opened.close()
