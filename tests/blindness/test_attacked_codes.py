"""What a hostile reader found in queries on codes, each mended and kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import louver
from tests.inside import context_of
from tests.twin import Twin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture
def con(open_connection) -> Any:
    connection = open_connection("cryptdb")
    # What may be pushed is pushed, also of small tables.
    connection.execute("SET link_bandwidth = '10B/s'")
    return connection


def test_codes_of_texts_know_no_collation(con) -> None:
    rows = ", ".join(f"({i}, '{'Abc' if i % 2 else 'aBC'}')" for i in range(20))
    twin = Twin.beside(con)
    twin.run("CREATE TABLE t (n INT, s VARCHAR ENC)")
    queries = (
        "SELECT count(*) FROM t WHERE s = 'abc'",
        "SELECT count(*) FROM (SELECT DISTINCT s FROM t)",
        "SELECT count(*) FROM t WHERE s IN ('ABC', 'x')",
        "SELECT count(*) FROM t WHERE s > 'abb'",
    )
    twin.run(f"INSERT INTO t VALUES {rows}")
    for setting in ("SET default_collation = 'nocase'", "RESET default_collation"):
        twin.run(setting)
        # DDL of any kind makes the databases at home anew; the setting stays.
        con.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS x")
        for sql in queries:
            twin.run(sql)


def test_numbers_of_every_kind_meet_a_double(con) -> None:
    con.execute("CREATE TABLE t (f DOUBLE ENC)")
    con.execute("INSERT INTO t VALUES (0.5), (1e30), (-2), (NULL), (18446744073709551616)")
    assert con.execute("SELECT count(*) FROM t WHERE f < 18446744073709551616").fetchall() == [(2,)]
    assert con.execute("SELECT count(*) FROM t WHERE f = ?", [np.float64(0.5)]).fetchall() == [(1,)]
    assert con.execute("SELECT count(*) FROM t WHERE f > 0.25").fetchall() == [(3,)]


def test_a_decimal_with_an_exponent_is_what_duckdb_makes_of_it(con) -> None:
    twin = Twin.beside(con)
    twin.fill("CREATE TABLE t (n INT ENC)", "INSERT INTO t VALUES (1), (10), (100)")
    twin.run("SELECT n FROM t WHERE n = ?", [Decimal("1E+1")])


def test_a_sum_that_may_overflow_is_duckdbs(con) -> None:
    most, twin = 2**127 - 1, Twin.beside(con)
    twin.fill(
        "CREATE TABLE t (l INT, h HUGEINT ENC, d DECIMAL(38,4) ENC)",
        f"INSERT INTO t VALUES (1, {most}, {10**34 - 1}.9999), (2, {most}, 7)",
    )
    assert "Overflow" in str(twin.fails("SELECT sum(h) FROM t WHERE l > 0"))
    twin.run("SELECT sum(d)::VARCHAR, avg(d) FROM t WHERE l > 0")


def test_a_generated_column_depends_on_its_row_alone(con) -> None:
    for type_, definition, expression in (
        ("TIMESTAMPTZ", "BIGINT", "hour(c)"),
        ("TIMESTAMPTZ", "DATE", "c::DATE"),
        ("INT", "DOUBLE", "c + random()"),
        ("VARCHAR", "VARCHAR", "c || now()::VARCHAR"),
    ):
        with pytest.raises(louver.Error, match="time zone, the clock or chance"):
            con.execute(f"CREATE TABLE g (c {type_} ENC, x {definition} ENC AS ({expression}))")


def test_a_layer_that_another_client_is_opening_is_done_without(open_connection) -> None:
    first, second = open_connection("cryptdb"), open_connection("cryptdb")
    first.execute("CREATE TABLE t (n INT ENC)")
    first.execute("INSERT INTO t SELECT range % 7 FROM range(700)")
    for connection in (first, second):
        connection.execute("SET link_bandwidth = '10B/s'")
    sql = "SELECT count(*) FROM t WHERE n = 3"
    first.execute("BEGIN")
    assert first.execute(sql).fetchall() == [(100,)]
    assert second.execute(sql).fetchall() == [(100,)]
    first.execute("COMMIT")
    assert second.execute(sql).fetchall() == [(100,)]
    assert context_of(second).catalog.table("main", "t").column("n").layers["eq"] == "det"


def test_values_do_not_come_under_a_higher_ceiling(open_connection) -> None:
    con = open_connection("cryptdb")
    con.execute("CREATE TABLE low (i INT, n INT ENC MAY REVEAL access, m INT ENC)")
    con.execute("CREATE TABLE high (i INT, n INT ENC MAY REVEAL order, m INT ENC)")
    con.execute("INSERT INTO low VALUES (1, 1, 1), (2, 2, 2)")
    con.execute("INSERT INTO high VALUES (1, 5, 5)")
    for sql in (
        "INSERT INTO high SELECT i, n, m FROM low",
        "INSERT INTO high SELECT * FROM low",
        "INSERT INTO high (n) SELECT n + 1 FROM low",
        "UPDATE high SET n = low.n FROM low WHERE low.i = high.i",
        "UPDATE low SET m = n",
        "MERGE INTO high USING low ON low.i = high.i WHEN MATCHED THEN UPDATE SET n = low.n",
    ):
        with pytest.raises(louver.Error) as caught:
            con.execute(sql)
        assert caught.value.code == "leak.flow", sql
    for sql in (
        "INSERT INTO high (i, m) SELECT i, m FROM low",
        "INSERT INTO low SELECT * FROM high",
        "UPDATE low SET n = m",
        "UPDATE high SET n = 7 WHERE m = 5",
        "UPDATE low SET n = high.n FROM high WHERE low.i = high.i",
        "MERGE INTO high USING low ON low.i = high.i WHEN MATCHED THEN UPDATE SET m = low.m"
        " WHEN NOT MATCHED THEN INSERT (i, m) VALUES (low.i, low.m)",
    ):
        con.execute(sql)


def test_without_home_nothing_is_shipped_that_is_not_the_answer(open_connection) -> None:
    con = open_connection("cryptdb")
    con.execute(
        "CREATE TABLE t (id INT, s VARCHAR ENC MAY REVEAL access, n INT ENC MAY REVEAL access"
        " WITH (sum = 'masked'), z INT ENC MAY REVEAL size)"
    )
    con.execute("INSERT INTO t SELECT range, range::VARCHAR, range % 5, range FROM range(50)")
    con.execute("SET local_processing = off")
    for sql, named in (
        ("SELECT n, count(*) FROM t GROUP BY n", "t ALTER COLUMN n MAY REVEAL equality"),
        ("SELECT max(n) FROM t", "t ALTER COLUMN n MAY REVEAL order"),
        ("SELECT id, n FROM t ORDER BY n LIMIT 3", "t ALTER COLUMN n MAY REVEAL order"),
        ("SELECT count(DISTINCT s) FROM t", "t ALTER COLUMN s MAY REVEAL equality"),
    ):
        with pytest.raises(louver.Error) as caught:
            con.execute(sql)
        assert caught.value.code == "leak.ceiling", sql
        assert named in str(caught.value), sql
    assert con.execute("SELECT sum(n) FROM t WHERE id < 3").fetchall() == [(3,)]
    assert con.execute("SELECT s FROM t WHERE id = 7").fetchall() == [("7",)]


def test_a_generated_column_is_what_every_session_would_compute(con) -> None:
    query = "CREATE TABLE g (id INT ENC, i INT ENC AS (id / 2))"
    con.execute(query)
    with pytest.raises(louver.Error, match="while a table has generated columns"):
        con.execute("SET integer_division = true")
    con.execute("DROP TABLE g")
    con.execute("SET integer_division = true")
    with pytest.raises(louver.Error, match="where integer_division is set"):
        con.execute(query)
