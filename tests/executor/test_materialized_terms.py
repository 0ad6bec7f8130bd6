"""Tables large enough that the server keeps products: right before, with and after keeping."""

from __future__ import annotations

import random

import pytest

from louver.trusted.executor import materialized_terms
from tests.inside import context_of, session_of
from tests.twin import Twin

LEAST_ROWS = 200
ROWS = LEAST_ROWS + 60
QUERIES = (
    "SELECT a, b FROM t WHERE a < 17",
    "SELECT a, b FROM t WHERE a < 230",
    "SELECT a FROM t WHERE b - a > 40",
    "SELECT a FROM t WHERE b - a + c * 2 > 40 AND p < 5",
    "SELECT a + b - 3, a - p, c * 2 + a FROM t WHERE a * b > 900",
    "SELECT p, sum(a), sum(a * b - 7), avg(c), min(b), max(c) FROM t GROUP BY p",
    "SELECT p, sum(a) FROM t GROUP BY p HAVING sum(a) - sum(b) > 100",
    "SELECT s FROM (SELECT p, sum(a + b) AS s FROM t GROUP BY p) AS q WHERE s > 3000",
    "SELECT a, count(*) FROM t WHERE a > 0 GROUP BY a",
    "SELECT t.b, u.y FROM t JOIN u ON t.a = u.x WHERE u.y > 4",
    "SELECT t.a - u.x FROM t JOIN u ON t.a = u.x",
    "SELECT count(*) FROM t WHERE a = b OR a BETWEEN 3 AND 9 OR c IN (1, 2.5)",
    "SELECT (a + b) * c FROM t WHERE (a - b) * 3 < c",
)
CHANGES = (
    "INSERT INTO t SELECT i % 90, NULL, i / 4.0, i % 7 FROM range(70) r(i)",
    "UPDATE t SET a = a + 1 WHERE p = 3",
    "DELETE FROM t WHERE p = 4",
    "UPDATE t SET b = NULL WHERE a = 5",
)


@pytest.fixture(autouse=True)
def kept_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of fewer rows are worth it."""
    monkeypatch.setattr(materialized_terms, "LEAST_ROWS", LEAST_ROWS)


@pytest.fixture
def twin(open_connection) -> Twin:
    twin = Twin.beside(open_connection("sdb"))
    choose = random.Random(7)
    rows = ", ".join(
        f"({choose.randint(-90, 90)}, {choose.randint(-90, 90)}, {choose.randint(-900, 900) / 4},"
        f" {choose.randint(0, 9)})"
        for _ in range(ROWS)
    )
    twin.fill(
        "CREATE TABLE t (a INTEGER ENC, b INTEGER ENC, c DECIMAL(8,2) ENC, p INTEGER)",
        "CREATE TABLE u (x INTEGER ENC, y INTEGER ENC)",
        f"INSERT INTO t VALUES {rows}",
        "INSERT INTO u VALUES (1, 2), (17, 5), (NULL, 9), (-40, 8), (3, 44)",
    )
    return twin


def agree(twin: Twin) -> None:
    for sql in QUERIES:
        twin.either(sql)


def test_keeping_changes_no_answer(twin) -> None:
    agree(twin)
    assert context_of(twin.louver).catalog.table("main", "t").kept
    agree(twin)
    for change in CHANGES:
        twin.run(change)
        agree(twin)


def test_in_a_transaction_nothing_new_is_kept(twin) -> None:
    twin.louver.execute("BEGIN")
    agree(twin)
    assert not context_of(twin.louver).catalog.table("main", "t").kept
    twin.louver.execute("COMMIT")
    agree(twin)
    twin.fill("BEGIN", CHANGES[0])
    agree(twin)
    twin.run("ROLLBACK")
    agree(twin)


def test_a_repeated_shape_keeps_nothing_more(twin) -> None:
    louver = twin.louver
    louver.execute("SELECT a FROM t WHERE a - b < 17").fetchall()
    terms = dict(context_of(louver).catalog.table("main", "t").kept)
    answer = session_of(louver).execute("SELECT a FROM t WHERE a - b < 3")
    assert context_of(louver).catalog.table("main", "t").kept == terms
    assert "sdb_compare_kept" in answer.remote_sql[0]
