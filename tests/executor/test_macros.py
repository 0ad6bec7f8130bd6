"""Macros and views against plaintext DuckDB: scalar and table macros of one name, overloads, and
those that name themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.twin import Twin

_CALLS = ("SELECT m(1)", "SELECT m(1, 2)", "FROM m(1)", "FROM m(1, 2)")
_STATE = (
    "SELECT function_type, parameters, comment FROM duckdb_functions() WHERE NOT internal",
    "FROM t",
)
_STATEMENTS = (
    "CREATE MACRO m(a) AS a + 1",
    "CREATE MACRO m(a) AS TABLE SELECT a AS x",
    "CREATE MACRO m(a, b) AS a + b",
    "CREATE MACRO IF NOT EXISTS m(a) AS TABLE SELECT 77 AS x",
    "CREATE OR REPLACE MACRO m(a) AS a, (a, b) AS a * b",
    "COMMENT ON MACRO m IS 'scalar'",
    "COMMENT ON MACRO TABLE m IS 'table'",
    "CREATE OR REPLACE MACRO m(a) AS TABLE SELECT a AS x, (a, b) AS TABLE SELECT a - b AS x",
    "DROP MACRO m",
    "DROP MACRO m",
    "CREATE MACRO IF NOT EXISTS m(a) AS a * 5",
    "DROP MACRO TABLE IF EXISTS m",
    "DROP MACRO TABLE m",
    "CREATE FUNCTION m(a) AS TABLE FROM t",
    "DROP FUNCTION IF EXISTS m",
    "DROP MACRO TABLE m",
)


def _same(twin: Twin, queries: Sequence[str]) -> None:
    for sql in queries:
        twin.either(sql, only_rows=True)


def test_macros_of_one_name(twin: Twin) -> None:
    twin.both("CREATE TABLE t (x INT ENC)", "INSERT INTO t VALUES (7)")
    for count, sql in enumerate(_STATEMENTS):
        twin.both(sql)
        if count % 5 == 4:
            twin.reopen()
        _same(twin, [*_CALLS, *_STATE])


def test_what_names_itself(twin: Twin) -> None:
    """DuckDB takes it, and says at its use what is wrong; nothing else is harmed."""
    twin.both("CREATE TABLE t (x INT ENC)", "INSERT INTO t VALUES (7)")
    for sql in (
        "CREATE VIEW v AS SELECT 1 AS a", "CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM v",
        "CREATE MACRO m(a) AS a", "CREATE OR REPLACE MACRO m(a) AS m(a) + 1",
        "CREATE MACRO n(a) AS TABLE SELECT a AS x",
        "CREATE OR REPLACE MACRO n(a) AS TABLE SELECT x FROM n(a)",
        "CREATE VIEW w AS SELECT x FROM t", "CREATE VIEW u AS SELECT x FROM w",
        "CREATE OR REPLACE VIEW w AS SELECT x FROM u",
    ):  # fmt: skip
        twin.both(sql)
        _same(twin, ["FROM v", "SELECT m(1)", "FROM n(1)", "FROM w", "FROM t"])
    twin.reopen()
    _same(twin, ["FROM v", "SELECT m(1)", "FROM n(1)", "FROM w", "FROM t"])
    twin.both("INSERT INTO t VALUES (8)", "CREATE OR REPLACE VIEW v AS SELECT x FROM t")
    twin.both("CREATE OR REPLACE MACRO m(a) AS a - 1", "CREATE OR REPLACE VIEW w AS SELECT 1 AS x")
    for _ in range(2):
        _same(twin, ["FROM v", "SELECT m(1)", "FROM w", "FROM u", "FROM t"])
        twin.reopen()


def test_returning(twin: Twin) -> None:
    """RETURNING is bound as DuckDB binds it, and a refused statement leaves no row."""
    twin.both("CREATE TABLE t (x INT ENC, y INT DEFAULT 5)", "CREATE TABLE excluded (x INT ENC)")
    for listed in (
        "sum(x)", "count(*)", "x + 1", "*", "t.x, y AS z", "max(x) + 1", "row_number() OVER ()",
        "unnest([1, 2])", "nothing", "(SELECT 1)", "x IN (SELECT 1)", "upper('a')", "t",
    ):  # fmt: skip
        for sql in (
            f"INSERT INTO t (x) VALUES (1), (2) RETURNING {listed}",
            f"INSERT INTO t SELECT 3, 4 RETURNING {listed}",
            f"UPDATE t SET x = x + 1 RETURNING {listed}",
        ):
            _same(twin, [sql])
    _same(twin, ["FROM t", "INSERT INTO t AS a (x) VALUES (1) RETURNING a.x, a.y"])
    twin.both("INSERT INTO excluded VALUES (1)", "INSERT INTO excluded SELECT 2")
    twin.both("UPDATE excluded SET x = excluded.x + 5", "DELETE FROM excluded WHERE excluded.x = 6")
    _same(twin, ["FROM t", "FROM excluded", "INSERT INTO excluded VALUES (9) RETURNING x"])


def test_exists_is_still_checked(twin: Twin) -> None:
    twin.both("CREATE TABLE t (x INT ENC)", "CREATE VIEW v AS FROM t")
    for sql in (
        "CREATE OR REPLACE TABLE IF NOT EXISTS t (x INT ENC)",
        "CREATE OR REPLACE TABLE IF NOT EXISTS u (x INT ENC)",
        "CREATE OR REPLACE VIEW IF NOT EXISTS v AS FROM t",
        "CREATE TABLE IF NOT EXISTS t (x nothing ENC)",
        "CREATE TABLE IF NOT EXISTS t AS SELECT * FROM nothing",
        "CREATE TABLE IF NOT EXISTS t (other INT ENC)", "CREATE TABLE IF NOT EXISTS v (x INT ENC)",
        "CREATE SCHEMA IF NOT EXISTS main",
    ):  # fmt: skip
        twin.both(sql)
    twin.same_schema()
