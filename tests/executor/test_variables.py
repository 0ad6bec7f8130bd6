"""SET VARIABLE, RESET VARIABLE and getvariable: as in DuckDB, at home, under the flow rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import louver
from tests.generated import cases, generator
from tests.inside import context_of
from tests.twin import Twin

VALUES = (
    "5", "-1", "1.5", "'b'", "NULL", "NULL::INT", "DATE '2020-02-01'", "INTERVAL 1 MONTH",
    "[1, 2]", "(ROW(2, 'x'))",
    "{'a': 1, 'b': 'x'}", "MAP {'k': 2}", "2::TINYINT", "'x'::BLOB", "word", "1 + 2",
    "(SELECT max(a) FROM t)", "(SELECT b FROM t WHERE p = 1)", "(SELECT list(a ORDER BY a) FROM t)",
    "getvariable('y')", "(SELECT a FROM t WHERE p = 99)", "sum(2)", "(SELECT a FROM t)", "1, 2",
)  # fmt: skip
QUERIES = (
    "SELECT getvariable('x')",
    "SELECT typeof(getvariable('X')) AS k, getvariable('y') AS v",
    "SELECT a FROM t WHERE a = getvariable('x')",
    "SELECT b FROM t WHERE p > getvariable('x') ORDER BY b",
    "SELECT count(*) AS n, max(a) AS m FROM t WHERE b = getvariable('y')",
    "SELECT getvariable('x') IN (SELECT a FROM t) AS found",
    "FROM shown",
)


@pytest.fixture(scope="module")
def twin(open_module_twin: Callable[..., Twin]) -> Twin:
    twin = open_module_twin()
    twin.run("CREATE TABLE t (a INT ENC, b VARCHAR ENC, p INT)")
    twin.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (5, 'zebra-in-the-attic', 3)")
    twin.run("CREATE VIEW shown AS SELECT p, getvariable('x') AS v FROM t")
    return twin


def test_drawn_variables(twin: Twin) -> None:
    random, failed = generator("variables"), 0
    for _ in range(cases(30)):
        name, joined = random.choice(("x", "y", '"X"')), random.choice((" = ", " TO "))
        failed += twin.either(f"SET VARIABLE {name}{joined}{random.choice(VALUES)}") is None
        if random.random() < 0.2:
            twin.run(f"RESET VARIABLE {name}")
        twin.either(random.choice(QUERIES))
    assert failed < cases(10)


def test_statements_that_change(twin: Twin) -> None:
    twin.run("CREATE TABLE u (i INT ENC, s VARCHAR ENC, p INT)")
    twin.run("SET VARIABLE v = ?", [7])
    twin.run("INSERT INTO u VALUES (getvariable('v'), 'one', getvariable('v'))")
    twin.run("INSERT INTO u SELECT a + getvariable('v'), b, 0 FROM t")
    twin.run("UPDATE u SET s = 'two', p = getvariable('v') WHERE i = getvariable('v')")
    twin.run("DELETE FROM u WHERE i = getvariable('v') + 1")
    twin.run("SELECT * FROM u ORDER BY i")
    twin.run("BEGIN")
    twin.run("SET VARIABLE v = 8")
    twin.run("ROLLBACK")
    assert twin.run("SELECT getvariable('v') AS v") == [(8,)]
    twin.run("CREATE TYPE mood AS ENUM ('sad')")
    twin.run("SELECT name, value, type FROM duckdb_variables() WHERE name = 'v'")
    twin.run("DROP TABLE u")
    for wrong in ("SET VARIABLE = 1", "SET VARIABLE x", "SET VARIABLE 'x' = 1",
                  "SET LOCAL VARIABLE x = 1", "SET VARIABLE x = nothing(1)"):  # fmt: skip
        assert twin.either(wrong) is None, wrong


@pytest.mark.parametrize(
    ("value", "target", "allowed"),
    [
        ("'mine'", "bare", True),
        ("(SELECT b FROM t WHERE p = 3)", "bare", False),
        ("(SELECT b FROM t WHERE p = 3)", "kept", True),
        ("(SELECT 'x' FROM t WHERE a = 5)", "bare", False),
        ("(SELECT p FROM t WHERE p = 3)", "bare", True),
    ],
)
def test_the_flow_rule(twin: Twin, value: str, target: str, allowed: bool) -> None:
    con = twin.louver
    con.execute("CREATE TABLE IF NOT EXISTS bare (s VARCHAR)")
    con.execute("CREATE TABLE IF NOT EXISTS kept (s VARCHAR ENC)")
    con.execute(f"SET VARIABLE deep = {value}")
    con.execute("SET VARIABLE x = getvariable('deep') || '!'")
    for source in ("VALUES (getvariable('x'))", "SELECT getvariable('x')",
                   "SELECT 'y' FROM t WHERE p::VARCHAR < getvariable('x')"):  # fmt: skip
        statement = f"INSERT INTO {target} {source}"
        if allowed or target == "kept":
            if "WHERE" not in source or (allowed and target == "bare"):
                con.execute(statement)
            continue
        with pytest.raises(louver.LeakageRefused):
            con.execute(statement)
    if not allowed:
        for statement in ("INSERT INTO bare SELECT value FROM duckdb_variables()",
                          "CREATE OR REPLACE MACRO m() AS getvariable('x');"
                          "INSERT INTO bare SELECT m()",
                          "ALTER TABLE bare ADD COLUMN c VARCHAR DEFAULT getvariable('x')",
                          "UPDATE bare SET s = getvariable('x')",
                          "DELETE FROM bare WHERE s = getvariable('x')"):  # fmt: skip
            with pytest.raises(louver.Error):
                con.execute(statement)


def test_a_column_that_is_gone_is_still_secret(twin: Twin) -> None:
    con = twin.louver
    con.execute("CREATE TABLE gone (s VARCHAR ENC)")
    con.execute("INSERT INTO gone VALUES ('mole')")
    con.execute("SET VARIABLE lost = (SELECT s FROM gone)")
    con.execute("DROP TABLE gone")
    con.execute("CREATE TABLE IF NOT EXISTS bare (s VARCHAR)")
    with pytest.raises(louver.LeakageRefused):
        con.execute("INSERT INTO bare VALUES (getvariable('lost'))")


def test_declarations_and_new_values_of_columns(twin: Twin) -> None:
    con = twin.louver
    con.execute("SET VARIABLE x = (SELECT b FROM t WHERE p = 3)")
    con.execute("CREATE OR REPLACE TABLE bare (s VARCHAR)")
    con.execute("INSERT INTO bare VALUES ('a')")
    sent = twin.sent()
    for statement in ("ALTER TABLE bare ADD COLUMN c VARCHAR DEFAULT getvariable('x')",
                      "CREATE TABLE g (i INT, s VARCHAR AS (getvariable('x')))",
                      "INSERT INTO bare SELECT getvariable('x') FROM range(2)"):  # fmt: skip
        with pytest.raises(louver.Error):
            con.execute(statement)
    assert not [m for m in twin.recorded.tap.sent()[sent:] if "zebra" in repr(m)]
    con.execute("ALTER TABLE bare ALTER s TYPE VARCHAR USING getvariable('x')")
    assert context_of(con).catalog.tables["main", "bare"].columns[0].ceiling == "access"
    con.execute("INSERT INTO bare VALUES (getvariable('never set'))")
    con.execute("DROP TABLE bare")


def test_nothing_reaches_the_server(twin: Twin) -> None:
    con = twin.louver
    con.execute("SET VARIABLE hideaway = (SELECT b FROM t WHERE p = 3)")
    con.execute("SELECT * FROM t WHERE p::VARCHAR = getvariable('hideaway')").fetchall()
    con.execute("SELECT * FROM t WHERE b = getvariable('hideaway')").fetchall()
    assert not twin.recorded.holds(b"zebra", b"hideaway", b"getvariable")


def test_an_empty_list_of_labels(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sealed")
    twin.fill("CREATE TYPE mood AS ENUM ('sad', 'ok')", "SET VARIABLE v = []::mood[]")
    twin.run("SELECT getvariable('v') AS v, len(getvariable('v')) AS n")
    twin.fill("SET VARIABLE v = ['ok', NULL]::mood[]")
    twin.run("SELECT getvariable('v') AS v, getvariable('v')[1] = 'ok' AS same")
