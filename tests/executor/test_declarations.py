"""Each declaration of docs/guides/declarations.md has the effect that the page states."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.executor.schema.representations import stored_type
from louver.trusted.planner.ir import Opening
from louver.trusted.vault.stored_types import CODE, WIDE_CODE
from tests.inside import context_of, session_of


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", louver.LeakageWarning)
        yield


def column(connection: Any, name: str, table: str = "t") -> Any:
    return context_of(connection).catalog.table("main", table).column(name)


def kind(connection: Any, sql: str) -> str:
    return str(connection.sql(sql).explain(leakage=True))


def split(connection: Any, sql: str) -> str:
    return kind(connection, sql).split()[1].rstrip(":")


def test_unique_values_show_no_classes(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute(
        "CREATE TABLE t (a BIGINT ENC MAY REVEAL equality PRIMARY KEY, b BIGINT ENC MAY REVEAL"
        " equality UNIQUE, c BIGINT ENC MAY REVEAL equality, d BIGINT, UNIQUE (c, d))"
    )
    table = context_of(connection).catalog.table("main", "t")
    said = {}
    for column in table.columns[:3]:
        (fact,) = of_openings(
            [Opening(table.id, column.id, "eq", "det")], context_of(connection).catalog
        )
        said[column.name] = fact.text
    assert said["a"].startswith("the server can tell that all values of a in t differ")
    assert said["b"].startswith("the server can tell that all values of b in t differ")
    assert said["c"] == "the server can tell which rows of t have the same c"


def test_a_range_makes_order_codes_short(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute(
        "CREATE TABLE t (a BIGINT ENC MAY REVEAL order CHECK (a BETWEEN 0 AND 1000000),"
        " b BIGINT ENC MAY REVEAL order, c DECIMAL(15,2) ENC MAY REVEAL order CHECK (c >= 0))"
    )
    assert (column(connection, "a").low, column(connection, "a").bits) == (0, 20)
    assert column(connection, "b").bits == 64
    assert column(connection, "c").low == 0
    assert stored_type(column(connection, "a"), "ord") == CODE
    assert stored_type(column(connection, "b"), "ord") == WIDE_CODE


def test_decimals_are_added_on_the_server_and_doubles_are_not(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute("CREATE TABLE t (a DECIMAL(12,2) ENC WITH (sum = 'masked'), b DOUBLE ENC)")
    assert split(connection, "SELECT sum(a) FROM t") == "whole"
    assert split(connection, "SELECT sum(b) FROM t") == "scans"


def test_what_is_never_null_needs_no_flags(open_connection: Any) -> None:
    connection = open_connection()
    masked = "INTEGER ENC WITH (sum = 'masked')"
    connection.execute(f"CREATE TABLE t (a {masked} NOT NULL, b {masked})")
    assert "sum_count" not in column(connection, "a").stored
    assert "sum_count" in column(connection, "b").stored


def test_a_list_of_values_is_counted(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad', 'mad')")
    connection.execute(
        "CREATE TABLE t (a VARCHAR ENC CHECK (a IN ('x', 'y', 'z')), b mood ENC, c BOOLEAN ENC,"
        " d INTEGER ENC CHECK (d BETWEEN 1 AND 5), e VARCHAR ENC CHECK (e = 'p' OR 'q' <> e),"
        " f VARCHAR ENC CHECK (f = 'p' OR f = 'q'))"
    )
    counts = {name: column(connection, name).choices for name in "abcdef"}
    assert counts == {"a": 3, "b": 4, "c": 2, "d": 5, "e": 0, "f": 2}
    assert "at most 3" in " ".join(
        session_of(connection).execute("ALTER TABLE t ALTER COLUMN a MAY REVEAL equality").notices
    )


def test_a_foreign_key_makes_columns_joinable(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute("CREATE TABLE p (id BIGINT ENC MAY REVEAL equality PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE t (p BIGINT ENC MAY REVEAL equality REFERENCES p (id),"
        " q BIGINT ENC MAY REVEAL equality)"
    )
    parent = column(connection, "id", "p")
    assert parent.group
    assert column(connection, "p").group == parent.group != column(connection, "q").group


def test_a_generated_column_holds_a_part_or_a_product(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute(
        "CREATE TABLE t (phone VARCHAR ENC MAY REVEAL equality, day DATE ENC MAY REVEAL equality,"
        " price DECIMAL(9,2) ENC, pieces INTEGER ENC,"
        " land VARCHAR ENC MAY REVEAL equality GENERATED ALWAYS AS (substring(phone, 1, 2)),"
        " year BIGINT ENC MAY REVEAL equality GENERATED ALWAYS AS (year(day)),"
        " worth DECIMAL(18,2) ENC WITH (sum = 'masked') GENERATED ALWAYS AS (price * pieces))"
    )
    assert column(connection, "worth").expression == "(price * pieces)"
    assert split(connection, "SELECT sum(price * pieces) FROM t") == "whole"
    assert split(connection, "SELECT sum(price * (pieces + 1)) FROM t") == "scans"
    grouped = "SELECT year(day), count(*) FROM t GROUP BY year(day)"
    assert "opens    t.year: equality layer" in kind(connection, grouped)
    assert split(connection, grouped) == "whole"
    lands = "SELECT substring(phone, 1, 2), count(*) FROM t GROUP BY substring(phone, 1, 2)"
    assert "opens    t.land: equality layer" in kind(connection, lands)


def test_a_number_of_an_expression_is_part_of_it(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute(
        "CREATE TABLE t (a INTEGER ENC, b BIGINT ENC GENERATED ALWAYS AS (CAST(a AS BIGINT) * 2))"
    )
    connection.execute("INSERT INTO t VALUES (1), (2), (3)")
    for number in (2, 3, 2):
        sql = f"SELECT sum(CAST(a AS BIGINT) * {number}) FROM t"
        assert connection.execute(sql).fetchall() == [(6 * number,)]
