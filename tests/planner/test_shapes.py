"""Plans are kept by shape: what they depend on must be part of it."""

from __future__ import annotations

from typing import Any

import pytest

from louver.trusted.planner.ir import Plan
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.settings import DEFAULT, PlannerSettings
from louver.trusted.planner.sql import lexer
from tests.inside import context_of
from tests.planner import fixtures
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


def test_a_plan_is_of_its_settings_and_of_the_state_that_it_was_made_on() -> None:
    catalog, home = fixtures.world()
    planner = Planner(home, lambda: 2048, fixtures.backend_of)
    (text,) = lexer.split("SELECT A + 1 FROM T WHERE B < 5")

    def plan(settings: PlannerSettings = DEFAULT) -> Plan:
        return planner.plan(text, [], catalog, settings)[0]

    first = plan()
    assert plan() is first
    assert plan(PlannerSettings(apart=True)).kind == "scans" != first.kind
    assert plan() is first
    catalog.touch()
    second = plan()
    assert second is not first
    home.forget_types()
    assert plan() is not second
    home.close()


@pytest.mark.parametrize("change", [
    "INSERT INTO t VALUES (1000000)", "DELETE FROM t", "ALTER TABLE t ADD COLUMN b INT",
    "CREATE TEMP TABLE other (a INT)", "CREATE TEMP VIEW v AS SELECT 1", "SET VARIABLE x = 1",
    "SET search_path = 'main'", "SET default_null_order = 'nulls_first'",
    "BEGIN; INSERT INTO t VALUES (5); ROLLBACK", "BEGIN; CREATE TEMP TABLE o (a INT); ROLLBACK",
    "SET link_latency = '20ms'",
])  # fmt: skip
def test_a_change_makes_plans_anew(change: str, open_connection: Any) -> None:
    con = open_connection("sdb")
    con.execute("CREATE TABLE t (a BIGINT ENC); INSERT INTO t VALUES (1), (2)")
    (text,) = lexer.split("SELECT a * 3 AS x FROM t WHERE a < 5")
    context = context_of(con)
    before = context.plan(text, [])[0]
    assert context.plan(text, [])[0] is before
    con.execute(change)
    assert context.plan(text, [])[0] is not before


def test_hints_of_primes_are_stored(open_connection: Any) -> None:
    con = open_connection("sdb")
    con.execute("CREATE TABLE t (a BIGINT ENC); INSERT INTO t VALUES (1)")
    context = context_of(con)
    assert context.store.load().sdb_hint == context.columns.space.hint != b""
