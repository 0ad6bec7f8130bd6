"""Plans are kept by shape: what they depend on must be part of it."""

from __future__ import annotations

import pytest

from louver.trusted.planner.sql import lexer
from tests.twin import Twin


def shape_of(sql: str) -> str:
    return lexer.shape(sql, lexer.tokens(sql)).key


def test_numbers_of_a_class_share_a_shape() -> None:
    assert shape_of("SELECT a FROM t WHERE a < 5") == shape_of("SELECT a FROM t WHERE a < 99")
    assert shape_of("SELECT a FROM t WHERE a < 5") != shape_of("SELECT a FROM t WHERE a < 0")
    assert shape_of("SELECT a FROM t WHERE a < 5") != shape_of("SELECT a FROM t WHERE a < 200")
    assert shape_of("SELECT a FROM t WHERE a < 1.5") != shape_of("SELECT a FROM t WHERE a < 1.55")


@pytest.mark.parametrize("profile", ["sdb", "sealed"])
def test_statements_of_one_shape(profile: str, open_connection) -> None:
    twin = Twin.beside(open_connection(profile))
    twin.fill(
        "CREATE TABLE t (a TINYINT ENC, b DECIMAL(6,2) ENC, c VARCHAR ENC)",
        "INSERT INTO t VALUES (1, 1.25, 'x'), (7, -3.5, NULL), (NULL, 0, 'yy')",
    )
    for template, numbers in {
        "SELECT a + {} FROM t": (1, 2, 100, 120, 127, 128, 0),
        "SELECT {}, a FROM t": (1, 2, 300),
        "SELECT round(b, {}) FROM t": (0, 1, 2),
        "SELECT CAST(b AS DECIMAL(8,{})) AS x FROM t": (1, 2, 3),
        "SELECT a, b FROM t ORDER BY {} LIMIT 2": (1, 2),
        "SELECT a FROM t WHERE a < {} AND b > {}": (1, 2, 5, 9),
        "SELECT a AS x FROM t WHERE b * {} = 2.5": (1, 2, 3),
        "SELECT a FROM t ORDER BY a LIMIT {}": (1, 2, 3),
        "SELECT c[{}] AS x FROM t": (1, 2),
        "SELECT sum(a) + {} AS x FROM t GROUP BY b HAVING sum(a) < {}": (2, 3, 8),
    }.items():
        for number in numbers:
            sql = template.replace("{}", str(number))
            twin.either(sql, ordered=False)
            twin.either(sql, ordered=False)


def test_parameters_of_one_shape(open_connection) -> None:
    twin = Twin.beside(open_connection("sdb"))
    twin.fill(
        "CREATE TABLE t (a INTEGER ENC, d DATE ENC)",
        "INSERT INTO t VALUES (1, '2020-01-01'), (-7, NULL), (0, '2021-05-05')",
    )
    for sql in (
        "SELECT a * ? AS x FROM t WHERE a > ?",
        "SELECT a + $2 AS x FROM t WHERE a <> $1",
        "SELECT d FROM t WHERE d >= ? AND a < ?",
    ):
        for values in ([1, 0], [0, 5], [-3, 3], [3, -3], ["2020-06-01", 7], [None, 1]):
            twin.either(sql, values)
