"""A condition is no error for rows that the rest of WHERE excludes, wherever it is decided."""

from __future__ import annotations

from tests.generated import cases, generator
from tests.twin import Twin

#: What is true of row 2 alone, or of none: the server decides some of these, others it does not.
EXCLUDING = (
    "0 = 1",
    "k = 2",
    "k * k = 4",
    "s = 'b'",
    "upper(s) = 'B'",
    "q < 5",
    "k IN (2, 9)",
    "(k = 2 AND q = 2)",
)
#: What leaves the range of TINYINT, or of SMALLINT, in every other row.
RAISING = (
    "0 = -(m + m)",
    "m + m = 2",
    "NOT (m * m = 5)",
    "(m + m = 2 OR m = 7)",
    "n * 300::SMALLINT > 0",
    "(k = 7 OR m + m = 2)",
    "m - e > 0",
)
QUERIES = (
    "SELECT * FROM t WHERE {c}",
    "SELECT count(*), sum(k) FROM t WHERE {c}",
    "SELECT k FROM t WHERE {c} ORDER BY k LIMIT 1",
    "SELECT t.k, u.k FROM t JOIN u ON t.k = u.k WHERE {c}",
    "SELECT u.k FROM u WHERE k IN (SELECT k FROM t WHERE {c})",
    "WITH g AS (SELECT q, count(*) AS c FROM t WHERE {c} GROUP BY q) FROM g",
)


def test_excluded_rows_raise_nothing(any_twin: Twin) -> None:
    twin = any_twin
    twin.fill(
        "CREATE TABLE t (k INTEGER ENC, e TINYINT ENC, m TINYINT, n SMALLINT, q INTEGER,"
        " s VARCHAR ENC)",
        "INSERT INTO t VALUES (1, -128, 127, 30000, 9, 'a'), (2, 0, 1, 7, 2, 'b')",
        "INSERT INTO t VALUES (NULL, -128, 127, 30000, NULL, NULL), (5, NULL, 100, 20000, 8, 'c')",
        "CREATE TABLE u (k INTEGER ENC)",
        "INSERT INTO u VALUES (1), (2), (5)",
    )
    random = generator("excluded rows")
    for excluding in EXCLUDING:
        for raising in random.sample(RAISING, min(len(RAISING), cases(4))):
            condition = f"{excluding} AND {raising}"
            if random.random() < 0.3:
                condition = f"({condition})"
            name = "t." if "JOIN" in (query := random.choice(QUERIES)) else ""
            text = condition.replace("k ", f"{name}k ") if name else condition
            sql = query.format(c=text)
            # In which order DuckDB decides the parts of a condition is its own affair.
            if not twin.duckdb_fails(sql):
                twin.either(sql)
