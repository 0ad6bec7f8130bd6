"""Blocks that a server groups and aggregates in PostgreSQL's language, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from louver.trusted.executor.local.postgres import workspace_indexes
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_GROUPED = (
    "SELECT count(*), sum(i), sum(s), sum(b), sum(n) FROM t",
    "SELECT avg(i), avg(s), avg(b), avg(n), sum(n) / count(*), round(avg(n), 1) FROM t",
    "SELECT g, h, sum(n), avg(n), count(*) FROM t GROUP BY g, h",
    "SELECT g, min(i), max(i), min(b), max(b), min(n), max(n), min(d), max(d) FROM t GROUP BY g",
    "SELECT count(g), count(DISTINCT g), count(DISTINCT i) FROM t",
    "SELECT p, sum(q * q), avg(q), min(p), max(x), sum(q * (1 - q)) FROM t GROUP BY p",
    "SELECT x, count(*) FROM t GROUP BY x HAVING count(*) > 3 ORDER BY x",
    "SELECT sum(CASE WHEN i = 1 THEN n END), sum(CASE WHEN i = 1 THEN 1 ELSE 0 END) FROM t",
    "SELECT count(*) FILTER (WHERE i = 1), sum(n) FILTER (WHERE p = 2) FROM t",
    "SELECT sum(n), avg(b) FROM t WHERE i = 77",
    "SELECT a.g, sum(b.n) FROM t AS a JOIN t AS b ON a.i = b.i GROUP BY a.g",
    "SELECT count(*) FROM t WHERE d >= '2020-01-05' AND e < date '2020-01-20'",
    "SELECT count(*) FROM t WHERE x LIKE 'k%' AND x <> 'k3' OR p IN (1, 2) AND q BETWEEN 0 AND 1",
    "SELECT * FROM (SELECT g, sum(n) AS total FROM t GROUP BY g) AS s WHERE total > 5",
    "SELECT DISTINCT h FROM t",
)
_LOCAL = (
    # What may leave the range of its type is computed where PostgreSQL's own error can be raised.
    "SELECT sum(p + 1) FROM t",
    "SELECT p + 1, count(*) FROM t GROUP BY p + 1",
    # Sums of floating point numbers depend on the order of rows.
    "SELECT sum(f), avg(f) FROM t",
    "SELECT count(*) FROM t WHERE e > '01/02/2020'",
    "SELECT x, count(*) FROM t WHERE x LIKE 'k\\_%' GROUP BY x",
)


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    twin, random = PostgresTwin("cryptdb"), Random(11)
    twin.run(
        "CREATE TABLE t (id integer PRIMARY KEY, g text ENC, h varchar(5) ENC, i integer ENC,"
        " s smallint ENC, b bigint ENC, n numeric(12,2) ENC, d date ENC,"
        " p integer, q numeric(10,3), x varchar(9), f double precision, e date)"
    )
    for number in range(60):
        values = (
            number, random.choice(("a", "b", "C", "é", None)), random.choice(("x", "yy", None)),
            random.choice((1, 2, 3, None)), random.randint(-5, 5),
            random.randint(-(10**12), 10**12), f"{random.uniform(-999, 999):.2f}",
            f"2020-01-{random.randint(1, 28):02}", random.choice((1, 2, 3, None)),
            f"{random.uniform(-9, 9):.3f}", f"k{random.randint(0, 9)}", random.random(),
            f"2020-01-{random.randint(1, 28):02}",
        )  # fmt: skip
        twin.run(f"INSERT INTO t VALUES ({', '.join(f'${k}' for k in range(1, 14))})", values)
    yield twin
    twin.close()


def _is_grouped(twin: PostgresTwin, sql: str) -> bool:
    return any(
        word in text
        for text in twin.louver.sql(sql).remote_sql()
        for word in ("GROUP BY", "sum(", "count(", "min(")
    )


@pytest.mark.parametrize("sql", _GROUPED)
def test_blocks_are_grouped_on_the_server(twin: PostgresTwin, sql: str) -> None:
    twin.run(sql)
    assert _is_grouped(twin, sql)


@pytest.mark.parametrize("sql", _LOCAL)
def test_what_is_not_known_is_left_to_the_local_engine(twin: PostgresTwin, sql: str) -> None:
    twin.run(sql)
    assert not _is_grouped(twin, sql)


def test_an_overflow_is_the_local_engines_and_ends_no_transaction_of_the_servers(
    twin: PostgresTwin,
) -> None:
    twin.run("CREATE TABLE u (k integer PRIMARY KEY, p integer)")
    twin.run("INSERT INTO u VALUES (1, 2147483647), (2, 5)")
    twin.run("BEGIN")
    twin.run("SAVEPOINT s")
    twin.run("SELECT sum(p + 1) FROM u")
    twin.run("ROLLBACK TO s")
    twin.run("SELECT sum(p + 1) FROM u WHERE k = 2")
    twin.run("COMMIT")


def test_opened_tables_get_indexes_for_correlated_subqueries(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    original = workspace_indexes.wanted

    def wanted(*given: object) -> list[str]:
        texts = original(*given)  # type: ignore[arg-type]
        seen.extend(texts)
        return texts

    monkeypatch.setattr(workspace_indexes, "wanted", wanted)
    twin.run("CREATE TABLE many (k integer PRIMARY KEY, g integer ENC, v float8 ENC)")
    for side in (twin.plain, twin.louver):
        side.execute("INSERT INTO many SELECT i, i % 700, i FROM generate_series(1, 3000) AS i")
    twin.run("SELECT sum(v) FROM many")
    assert not seen
    twin.run("CREATE INDEX ON many (g)")
    twin.run(
        "SELECT count(*) FROM many AS a WHERE v > (SELECT avg(v) FROM many AS b WHERE b.g = a.g)"
    )
    assert [text.partition(" (")[2] for text in seen] == ['"k")', '"g")']


def test_layers_of_tables_without_rows_are_opened() -> None:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (n numeric(10,2) ENC, i int ENC)")
    for sql in (
        "SELECT sum(n), avg(n), min(n), max(i), count(n) FROM t",
        "SELECT i, count(*) FROM t WHERE n > 3 GROUP BY i",
        "INSERT INTO t VALUES (1.5, 2)",
        "SELECT min(n), max(i) FROM t",
    ):
        opened.run(sql)
    opened.close()


def test_patterns_that_are_not_written_out_are_matched_locally() -> None:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (x text, i int ENC)")
    opened.run("INSERT INTO t VALUES ('a\\', 1), ('b', 2)")
    for sql, values in (
        ("SELECT count(*) FROM t WHERE x LIKE $1", ["b\\"]),
        ("SELECT count(*) FROM t WHERE x LIKE $1", ["_"]),
        ("SELECT x LIKE x, count(*) FROM t GROUP BY 1", []),
        ("SELECT sum(i) FROM t WHERE x LIKE 'a%'", []),
    ):
        opened.run(sql, values)
    opened.close()
