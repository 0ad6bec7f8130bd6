"""What is said before little-varied columns show which of their values are equal."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pytest

import louver
from louver.trusted.apps import cli
from louver.trusted.executor import cardinality
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.planner.ir import Opening
from louver.trusted.vault.catalog import Catalog, Column
from louver.trusted.vault.seen_values import MANY, MOST_SEEN
from tests.inside import context_of

CODED = (
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT "
    "FLOAT DOUBLE DATE TIME TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS UUID VARCHAR BLOB "
    "DECIMAL(4,1) DECIMAL(9,2) DECIMAL(18,3) DECIMAL(38,5)"
).split()


def column(connection: Any, name: str, table: str = "t") -> Any:
    return context_of(connection).catalog.table("main", table).column(name)


def test_values_are_counted_until_they_are_many(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute(
        "CREATE TABLE t (a INTEGER ENC, b VARCHAR ENC, c HUGEINT ENC, d INTEGER[] ENC)"
    )
    assert column(connection, "a").cardinality() == 0
    connection.execute("INSERT INTO t SELECT i, 'v' || (i % 3), i % 2, [i] FROM range(40) r(i)")
    assert column(connection, "a").seen == [MANY]
    assert len(column(connection, "b").seen) == column(connection, "b").cardinality() == 3
    assert column(connection, "c").cardinality() == 2
    assert column(connection, "d").cardinality() == 0
    connection.execute("INSERT INTO t (b) VALUES ('v1'), ('w'), (NULL)")
    assert column(connection, "b").cardinality() == 4
    connection.execute(f"INSERT INTO t (b) SELECT 'x' || i FROM range({MOST_SEEN}) r(i)")
    assert column(connection, "b").seen == [MANY]
    assert "v1" not in str(context_of(connection).catalog.to_json())


def test_a_catalog_without_counts_does_not_know_its_values(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute("CREATE TABLE t (a INTEGER ENC)")
    body = json.loads(context_of(connection).catalog.to_json())
    for field in ("seen", "unique", "choices"):
        del body["tables"][0]["columns"][0][field]
    old = Catalog.from_json(json.dumps(body).encode()).table("main", "t")
    assert old is not None
    assert (old.columns[0].seen, old.columns[0].cardinality()) == ([MANY], 0)


def test_a_declaration_with_few_values_is_warned_of_at_once(open_connection: Any) -> None:
    connection = open_connection()
    with pytest.warns(louver.LeakageWarning, match=r"t\.b has at most 2 different values"):
        connection.execute("CREATE TABLE t (a INTEGER ENC, b BOOLEAN ENC MAY REVEAL equality)")
    with pytest.warns(louver.LeakageWarning, match=r"u\.s has at most 3 .* once their order shows"):
        connection.execute(
            "CREATE TABLE u (s VARCHAR ENC MAY REVEAL order CHECK (s IN ('new', 'paid', 'sent')))"
        )
    with pytest.warns(louver.LeakageWarning, match=r"t\.c has at most 2"):
        connection.execute("ALTER TABLE t ADD COLUMN c BOOLEAN ENC MAY REVEAL equality")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connection.execute("CREATE TABLE v (a BOOLEAN ENC, b VARCHAR ENC MAY REVEAL equality)")
    with pytest.warns(louver.LeakageWarning, match=r"v\.a has at most 2"):
        connection.execute("ALTER TABLE v ALTER COLUMN a MAY REVEAL equality")


def test_explain_warns_before_anything_is_shown(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute("CREATE TABLE t (a VARCHAR ENC MAY REVEAL equality, b INTEGER ENC)")
    for mark in "xyz":
        column(connection, "a").see([mark])
    sql = "SELECT a, count(*) FROM t GROUP BY a"
    explanation = connection.sql(sql).explain(leakage=True)
    assert "opens    t.a: equality layer (now closed)" in explanation
    assert "warning  t.a has only 3 different values" in explanation
    assert "warning" not in connection.sql(sql).explain()
    body = json.loads(connection.sql(sql).explain(leakage=True, format="json"))
    assert body["layers"] == [{"column": "t.a", "layer": "equality", "now": "closed"}]
    assert len(body["warnings"]) == 1
    assert "t.a: equality layer" in connection.sql(sql).explain(format="mermaid")
    catalog = context_of(connection).catalog
    opening = Opening(catalog.table("main", "t").id, column(connection, "a").id, "eq", "det")
    context_of(connection).ledger.record(of_openings([opening], catalog), "SELECT")
    assert "warning" not in connection.sql(sql).explain(leakage=True)


def test_a_query_that_shows_them_says_so_once(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute("CREATE TABLE t (a VARCHAR ENC MAY REVEAL equality, b INTEGER ENC)")
    connection.execute("INSERT INTO t SELECT 'v' || (i % 3), i FROM range(50) r(i)")
    sql = "SELECT a, count(*) FROM t GROUP BY a ORDER BY a"
    with pytest.warns(louver.LeakageWarning, match="only 3 different values"):
        assert connection.execute(sql).fetchall() == [("v0", 17), ("v1", 17), ("v2", 16)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connection.execute(sql)


def test_the_command_line_prints_them_beside_the_answer(
    key_file: Path, tmp_path: Path, capsys: Any
) -> None:
    arguments = ["--url", f"duckdb:///{tmp_path}/w.duckdb", "--keys", str(key_file)]
    definition = "CREATE TABLE t (b BOOLEAN ENC MAY REVEAL equality)"
    assert cli.main(["sql", definition, *arguments]) == 0
    printed = capsys.readouterr()
    assert "note: t.b has at most 2 different values" in printed.err
    assert not printed.out
    assert cli.main(["sql", definition.replace(" t ", " u "), "--json", *arguments]) == 0
    assert "at most 2" in json.loads(capsys.readouterr().out)["notices"][0]


@pytest.mark.parametrize("type_", CODED)
def test_arrow_tells_values_of_every_type_with_codes_apart(type_: str) -> None:
    column = Column("c", type_, 1, encrypted=True)
    with duckdb.connect(config={"arrow_lossless_conversion": "true"}) as connection:
        sql = f"SELECT NULL::{type_} AS c UNION ALL SELECT NULL"
        cardinality.see(column, connection.execute(sql).to_arrow_table().column(0))
    assert column.seen == []
