"""What a hostile reader found in queries on codes, each mended and kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest

import louver

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture
def con(open_connection) -> Any:
    connection = open_connection("cryptdb")
    # What may be pushed is pushed, also of small tables.
    connection.execute("SET link_bandwidth = '10B/s'")
    return connection


def test_codes_of_texts_know_no_collation(con) -> None:
    rows = ", ".join(f"({i}, '{'Abc' if i % 2 else 'aBC'}')" for i in range(20))
    duck = duckdb.connect()
    con.execute("CREATE TABLE t (n INT, s VARCHAR ENC)")
    duck.execute("CREATE TABLE t (n INT, s VARCHAR)")
    asked = (
        "SELECT count(*) FROM t WHERE s = 'abc'",
        "SELECT count(*) FROM (SELECT DISTINCT s FROM t)",
        "SELECT count(*) FROM t WHERE s IN ('ABC', 'x')",
        "SELECT count(*) FROM t WHERE s > 'abb'",
    )
    for target in (con, duck):
        target.execute(f"INSERT INTO t VALUES {rows}")
    for setting in ("SET default_collation = 'nocase'", "RESET default_collation"):
        con.execute(setting)
        duck.execute(setting)
        # DDL of any kind makes the databases at home anew; the setting stays.
        con.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS x")
        for sql in asked:
            assert con.execute(sql).fetchall() == duck.execute(sql).fetchall(), (setting, sql)


def test_numbers_of_every_kind_meet_a_double(con) -> None:
    con.execute("CREATE TABLE t (f DOUBLE ENC)")
    con.execute("INSERT INTO t VALUES (0.5), (1e30), (-2), (NULL), (18446744073709551616)")
    assert con.execute("SELECT count(*) FROM t WHERE f < 18446744073709551616").fetchall() == [(2,)]
    assert con.execute("SELECT count(*) FROM t WHERE f = ?", [np.float64(0.5)]).fetchall() == [(1,)]
    assert con.execute("SELECT count(*) FROM t WHERE f > 0.25").fetchall() == [(3,)]


def test_a_decimal_with_an_exponent_is_what_duckdb_makes_of_it(con) -> None:
    duck = duckdb.connect()
    con.execute("CREATE TABLE t (n INT ENC)")
    duck.execute("CREATE TABLE t (n INT)")
    for target in (con, duck):
        target.execute("INSERT INTO t VALUES (1), (10), (100)")
    sql, values = "SELECT n FROM t WHERE n = ?", [Decimal("1E+1")]
    assert con.execute(sql, values).fetchall() == duck.execute(sql, values).fetchall()


def test_a_sum_that_may_overflow_is_duckdbs(con) -> None:
    most = 2**127 - 1
    con.execute("CREATE TABLE t (l INT, h HUGEINT ENC, d DECIMAL(38,4) ENC)")
    con.execute(f"INSERT INTO t VALUES (1, {most}, {10**34 - 1}.9999), (2, {most}, 7)")
    with pytest.raises(louver.Error, match="Overflow"):
        con.execute("SELECT sum(h) FROM t WHERE l > 0").fetchall()
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t (l INT, d DECIMAL(38,4))")
    duck.execute(f"INSERT INTO t VALUES (1, {10**34 - 1}.9999), (2, 7)")
    sql = "SELECT sum(d)::VARCHAR, avg(d) FROM t WHERE l > 0"
    assert con.execute(sql).fetchall() == duck.execute(sql).fetchall()


def test_a_generated_column_depends_on_its_row_alone(con) -> None:
    for type_, made, expression in (
        ("TIMESTAMPTZ", "BIGINT", "hour(c)"),
        ("TIMESTAMPTZ", "DATE", "c::DATE"),
        ("INT", "DOUBLE", "c + random()"),
        ("VARCHAR", "VARCHAR", "c || now()::VARCHAR"),
    ):
        with pytest.raises(louver.Error, match="time zone, the clock or chance"):
            con.execute(f"CREATE TABLE g (c {type_} ENC, x {made} ENC AS ({expression}))")


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
    assert second.session.catalog.table("main", "t").column("n").layers["eq"] == "det"
