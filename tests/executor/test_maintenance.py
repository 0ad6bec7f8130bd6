"""VACUUM, ANALYZE, CHECKPOINT, CALL, settings, and EXPLAIN of whatever runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import louver
from louver.trusted.executor import settings
from tests.inside import session_of
from tests.twin import Twin

ALIKE = (
    "VACUUM", "VACUUM t", "VACUUM ANALYZE t(a)", "ANALYZE", "ANALYZE t", "ANALYZE t(p)",
    "CHECKPOINT", "FORCE CHECKPOINT", "VACUUM missing", "ANALYZE t(missing)", "VACUUM FULL",
    "CHECKPOINT missing", "CALL range(3)", "CALL range(?)", "CALL repeat(1, 2)", "CALL abs(1)",
    "CALL pragma_table_info('t')", "CALL unnest([1, 2])", "CALL missing()", "CALL twice(2)",
    "CALL query('SELECT sum(a) FROM t')", "CALL", "CALL range(", "CALL checkpoint()",
    "SELECT current_database() AS d, current_schema() AS s", "FORCE",
    "USE main", "USE memory.main", "USE memory", "USE", "USE a.b.c", "USE nowhere",
    "PRAGMA enable_verification", "PRAGMA disable_progress_bar",
)  # fmt: skip
EXPLAINED = (
    "SELECT a FROM t WHERE p = 1", "WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1)", "FROM t",
    "INSERT INTO t VALUES (3, 'c', 3)", "INSERT INTO t SELECT * FROM t", "UPDATE t SET a = 1",
    "DELETE FROM t WHERE a = 1", "WITH x AS (SELECT 1 AS i) DELETE FROM t WHERE p IN (FROM x)",
    "CREATE TABLE u (i INT ENC)", "CREATE TABLE u AS SELECT 1 AS i", "CREATE VIEW w AS FROM t",
    "ALTER TABLE t ADD COLUMN c INT ENC", "DROP TABLE t", "TRUNCATE t", "SET threads = 2",
    "BEGIN", "COPY t TO 'nowhere.csv'", "SHOW TABLES", "DESCRIBE t", "VACUUM", "CHECKPOINT",
    "CALL range(3)", "PREPARE later AS SELECT 1", "SET VARIABLE v = 1",
    "MERGE INTO t USING (SELECT 1 AS i) s ON t.a = s.i WHEN MATCHED THEN DELETE",
)  # fmt: skip


@pytest.fixture(scope="module")
def twin(open_module_twin: Callable[..., Twin]) -> Twin:
    twin = open_module_twin()
    twin.run("CREATE TABLE t (a INT ENC, b VARCHAR ENC, p INT)")
    twin.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    twin.run("CREATE MACRO twice(n) AS TABLE SELECT a * n AS m FROM t")
    return twin


@pytest.mark.parametrize("sql", ALIKE)
def test_it_is_as_in_duckdb(twin: Twin, sql: str) -> None:
    twin.either(sql, [2] if "?" in sql else [])
    twin.run("SELECT sum(a), count(*) FROM t")


@pytest.mark.parametrize("sql", EXPLAINED)
def test_everything_is_explained_and_nothing_done(twin: Twin, sql: str) -> None:
    con = twin.louver
    before = con.execute("SHOW TABLES").fetchall(), con.execute("SELECT * FROM t").fetchall()
    plan = con.execute(f"EXPLAIN {sql}").fetchall()
    assert plan[0][0] == "louver_plan"
    assert plan[0][1]
    parsed = json.loads(con.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])
    assert {"servers", "home", "split"} <= set(parsed)
    after = con.execute("SHOW TABLES").fetchall(), con.execute("SELECT * FROM t").fetchall()
    assert before == after
    assert not session_of(con).in_transaction


def test_analyze_runs_what_it_explains(twin: Twin) -> None:
    con = twin.louver
    con.execute("CREATE TABLE runs (i INT ENC)")
    plan = con.execute("EXPLAIN ANALYZE INSERT INTO runs SELECT a FROM t").fetchall()[0]
    assert plan[0] == "analyzed_plan"
    assert "rows     2" in plan[1]
    assert con.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]
    plan = con.execute("EXPLAIN (ANALYZE, FORMAT json) SELECT i FROM runs").fetchall()[0]
    assert json.loads(plan[1])["analyzed"]["rows"] == 2
    con.execute("PREPARE one AS SELECT i FROM runs WHERE i = $1")
    plan = con.execute("EXPLAIN EXECUTE one(2)").fetchall()[0]
    assert "server" in plan[1]
    for wrong in ("EXPLAIN", "EXPLAIN EXPLAIN SELECT 1", "EXPLAIN GRANT x", "EXPLAIN SELECT nope",
                  "EXPLAIN DELETE FROM nope", "EXPLAIN (LEAKAGE) GRANT x",
                  "EXPLAIN (ANALYZE, FORMAT mermaid) SELECT 1"):  # fmt: skip
        with pytest.raises(louver.Error):
            con.execute(wrong)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_is_duckdbs(twin: Twin, tmp_path: Path, form: str) -> None:
    """Another DuckDB imports it, and holds the same; the server learns nothing of it."""
    con = twin.louver
    con.execute("CREATE SCHEMA IF NOT EXISTS side")
    con.execute("CREATE TABLE IF NOT EXISTS side.parent (i INT ENC PRIMARY KEY, s VARCHAR ENC)")
    con.execute("INSERT OR IGNORE INTO side.parent VALUES (8317401, 'an-axolotl'), (2, NULL)")
    con.execute("CREATE TABLE IF NOT EXISTS side.child (i INT ENC REFERENCES side.parent (i))")
    con.execute("CREATE OR REPLACE VIEW w AS SELECT a FROM t")
    folder = tmp_path / form
    con.execute(f"EXPORT DATABASE '{folder}' (FORMAT {form})")
    other = duckdb.connect()
    other.execute(f"IMPORT DATABASE '{folder}'")
    for query in ("FROM t", "FROM side.parent ORDER BY i", "FROM side.child", "FROM w"):
        assert sorted(other.execute(query).fetchall()) == sorted(con.execute(query).fetchall())
    assert not twin.recorded.holds(b"axolotl", b"8317401", str(folder).encode())
    with pytest.raises(louver.Error) as caught:
        con.execute("EXPORT DATABASE")
    assert caught.value.code == "duckdb.parser"
    con.execute("SELECT count(*) FROM t").fetchall()


def test_settings_are_taken_or_refused(twin: Twin) -> None:
    con = twin.louver
    names = [
        name for (name,) in twin.plain.execute("SELECT name FROM duckdb_settings()").fetchall()
    ]
    for name in settings._AT_HOME:
        assert name in names
        con.execute(f"RESET {name}")
    for name in ("temp_directory", "lock_configuration", "autoload_known_extensions",
                 "python_enable_replacements", "secret_directory", "enable_logging"):  # fmt: skip
        assert name in names
        with pytest.raises(louver.NotSupportedError, match=name) as caught:
            con.execute(f"SET {name} = false")
        assert caught.value.code == "setting.refused"
    for name in ("dbgen", "start_ui", "enable_logging"):
        with pytest.raises(louver.Error):
            con.execute(f"CALL {name}()")
