"""PIVOT and UNPIVOT, and tables that are arguments: what a query reads where no table is named."""

from __future__ import annotations

import pytest

from louver import errors
from tests.twin import PROFILES, Twin

SETUP = (
    'CREATE TABLE t (a INTEGER ENC, b VARCHAR ENC, c INTEGER, "Da y" VARCHAR)',
    "INSERT INTO t VALUES (1, 'x', 2, 'm'), (2, 'y', 2, 'm'), (5, 'x', 6, NULL)",
    "INSERT INTO t VALUES (NULL, 'z', 6, 'n')",
    "CREATE TABLE plain (a INTEGER, b VARCHAR, c INTEGER)",
    "INSERT INTO plain VALUES (1, 'x', 2), (2, 'y', 2), (5, 'x', 6)",
    "CREATE VIEW v AS SELECT a, b, c FROM t WHERE a > 1",
)
PIVOTS = (
    "PIVOT {t} ON b USING sum(a) GROUP BY c",
    "PIVOT {t} ON b IN ('x', 'y', 'w') USING sum(a) GROUP BY c",
    "PIVOT {t} ON b USING sum(a) + 1 GROUP BY c",
    "PIVOT {t} ON b USING max(a) c",
    "PIVOT {t} ON b USING sum(a) + 1 AS s, max(a) AS m GROUP BY c",
    "PIVOT {t} ON b || c USING sum(a)",
    "PIVOT {t} ON b, c USING count(*)",
    "PIVOT {t} ON b IN ('x'), c USING count(*)",
    "PIVOT (PIVOT {t} ON b USING sum(a) GROUP BY c) ON c USING max(x)",
    "PIVOT {t} USING sum(a) GROUP BY c",
    "PIVOT (SELECT * FROM {t} WHERE a < 5) ON b USING sum(a)",
    "FROM {t} PIVOT (sum(a) FOR b IN ('x', 'y') GROUP BY c)",
    "UNPIVOT {t} ON a, c",
    "UNPIVOT {t} ON a, c INTO NAME n VALUE w",
    "UNPIVOT {t} ON COLUMNS(* EXCLUDE b)",
    "UNPIVOT (PIVOT {t} ON b USING sum(a) GROUP BY c) ON COLUMNS(* EXCLUDE c)",
    "SELECT * FROM {t} UNPIVOT (w FOR n IN (a, c))",
)
FRAMES = (
    "{q}",
    "{q} ORDER BY ALL LIMIT 2",
    "SELECT * FROM ({q})",
    "SELECT count(*), p.* FROM ({q}) AS p, plain GROUP BY ALL",
    "WITH q AS ({q}) FROM q ORDER BY ALL",
)


@pytest.fixture
def twin(any_twin: Twin) -> Twin:
    any_twin.fill(*SETUP)
    return any_twin


def test_pivots_wherever_they_stand(twin: Twin) -> None:
    for index, pivot in enumerate(PIVOTS):
        for turn, frame in enumerate(FRAMES):
            source = ("t", "v", "plain")[(index + turn) % 3]
            if source == "t" and "UNPIVOT" in pivot:
                source = "(SELECT a, b, c FROM t)"
            inner = pivot.format(t=source)
            if frame.startswith("{q} ORDER") and not inner.startswith(("PIVOT", "UNPIVOT")):
                continue
            twin.either(frame.format(q=inner), ordered="ORDER" in frame)


@pytest.mark.parametrize("profile", PROFILES)
def test_tables_of_pivots(profile: str, open_connection) -> None:
    twin = Twin.beside(open_connection(profile), own_errors=True)
    twin.fill(*(sql for sql in SETUP if " plain " in sql))
    for number, pivot in enumerate(PIVOTS):
        for kind, query in (("p", pivot), ("s", f"SELECT * FROM ({pivot})")):
            name = f"{kind}{number}"
            twin.fill(f"CREATE TABLE {name} AS {query.format(t='plain')}")
            twin.either(f"FROM {name}")
            twin.either(f"DESCRIBE {name}")
    twin.fill("CREATE TABLE nothing AS PIVOT plain ON b USING sum(a) WITH NO DATA")
    twin.either("FROM nothing")
    twin.fill(*(sql for sql in SETUP if " t " in sql and "VIEW" not in sql))
    twin.fill("CREATE TABLE sealed AS PIVOT t ON b IN ('x', 'y') USING sum(a) GROUP BY c")
    twin.either("FROM sealed")


def test_changes_by_pivots_report_counts_as_duckdb_does(open_twin) -> None:
    """Where the rows give the columns, DuckDB runs several statements and reports no count."""
    twin = open_twin()
    twin.fill(*(sql for sql in SETUP if " plain " in sql))
    twin.fill("CREATE TABLE n (x HUGEINT, y HUGEINT)")
    for values in ("", "IN ('x', 'y') "):
        pivot = f"PIVOT (SELECT a, b FROM plain) ON b {values}USING sum(a)"
        for change in (
            "INSERT INTO n {}",
            "INSERT INTO n SELECT * FROM ({})",
            "UPDATE n SET x = 1 WHERE x IN (SELECT x FROM ({}))",
            "MERGE INTO n USING ({}) AS p ON n.x = p.x WHEN NOT MATCHED THEN INSERT VALUES (7, 7)",
            "DELETE FROM n WHERE x IN (SELECT x FROM ({}))",
            "CREATE OR REPLACE TABLE made AS {}",
            "CREATE OR REPLACE TABLE made AS WITH p AS ({}) FROM p",
        ):
            twin.fill(change.format(pivot))
        twin.fill("FROM n", "FROM made")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_change_by_a_pivot_of_encrypted_rows_is_refused(profile: str, open_connection) -> None:
    twin = Twin.beside(open_connection(profile), own_errors=True)
    twin.fill(*SETUP, "CREATE TABLE n (x HUGEINT, y HUGEINT)")
    with pytest.raises(errors.LeakageRefused):
        twin.louver.execute("INSERT INTO n PIVOT (SELECT a, b FROM t) ON b USING sum(a)")


@pytest.mark.parametrize("profile", PROFILES[:1] + PROFILES[2:])
def test_no_name_of_a_new_table_is_an_encrypted_value(profile: str, open_connection) -> None:
    connection = open_connection(profile)
    twin = Twin.beside(connection, own_errors=True)
    twin.fill(*SETUP)
    for query in ("PIVOT t ON b USING sum(a)", "SELECT * FROM (PIVOT v ON b USING count(*))"):
        with pytest.raises(errors.LeakageRefused):
            connection.execute(f"CREATE TABLE n AS {query}")
    with pytest.raises(errors.LeakageRefused):
        connection.execute("CREATE TYPE e AS ENUM (SELECT DISTINCT b FROM t)")


ARGUMENTS = (
    "FROM histogram(t, c)",
    "FROM histogram(v, a)",
    "SELECT count(*) FROM plain, histogram('t', a)",
    "FROM histogram_values(t, a, bin_count := 2)",
    "FROM query_table([t, u])",
    "FROM query_table(['t', 'u'], true)",
    "SELECT sum(a) FROM query_table(t) WHERE b = 'x'",
    "FROM query('SELECT sum(a) FROM t')",
    "FROM shown",
    "FROM of_macro()",
    "SELECT histogram(a) FROM t WHERE c = 2",
)


def test_tables_that_are_arguments(twin: Twin) -> None:
    twin.fill("CREATE TABLE u AS SELECT * FROM t LIMIT 0")
    twin.fill("CREATE VIEW shown AS FROM histogram(t, c)")
    twin.fill("CREATE MACRO of_macro() AS TABLE FROM query_table('t')")
    for sql in ARGUMENTS:
        twin.either(sql)


@pytest.mark.parametrize("profile", PROFILES)
def test_enums_of_queries(profile: str, open_connection) -> None:
    twin = Twin.beside(open_connection(profile), own_errors=True)
    twin.fill(*SETUP)
    twin.fill("CREATE TYPE e AS ENUM (SELECT DISTINCT b FROM plain ORDER BY b)")
    twin.fill("CREATE TYPE f AS ENUM (FROM (VALUES ('it''s'), ('q')))")
    twin.either("SELECT enum_range(NULL::e), enum_range(NULL::f)")
    twin.either("SELECT 'w'::e")
    twin.fill("CREATE TABLE w (m e ENC, n f)", "INSERT INTO w VALUES ('x', 'q')")
    twin.either("FROM w")
