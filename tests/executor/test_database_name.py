"""The database's own name before a schema, or in its place, means what it means in DuckDB."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import louver
from tests.twin import Twin

FORMS = (
    "INSERT INTO {}t VALUES (7, 1)", "INSERT INTO {}t SELECT a + 1, p FROM {}t WHERE a < 3",
    "INSERT INTO {}t (a) VALUES (9) RETURNING a", "UPDATE {}t SET a = a + 10 WHERE p = 1",
    "INSERT OR REPLACE INTO {}k VALUES (1, 5)", "DELETE FROM {}t WHERE a = 7",
    "MERGE INTO {}t USING (SELECT 2 AS a) AS b ON t.a = b.a WHEN MATCHED THEN DELETE",
    "FROM {}t", "SELECT {}t.a FROM {}t WHERE {}t.a > 2", "SELECT sum(a) AS s FROM {}t",
    "DESCRIBE {}t", "SUMMARIZE {}t", "CREATE VIEW {}v AS SELECT a FROM {}t", "FROM {}v",
    "DROP VIEW {}v", "CREATE TABLE {}made (i INT ENC)", "ALTER TABLE {}made ADD COLUMN j INT",
    "INSERT INTO {}made VALUES (1, 2)", "ALTER TABLE {}made RENAME TO again", "FROM again",
    "DROP TABLE {}again", "CREATE TABLE {}as_query AS SELECT a FROM {}t", "FROM as_query",
    "DROP TABLE {}as_query", "CREATE INDEX ix ON {}t (p)", "DROP INDEX {}ix",
    "CREATE SEQUENCE {}sq", "SELECT nextval('{}sq') AS n", "DROP SEQUENCE {}sq",
    "CREATE MACRO {}m(x) AS x + 1", "SELECT {}m(a) AS n FROM {}t", "DROP MACRO {}m",
    "COMMENT ON TABLE {}t IS 'x'", "TRUNCATE {}t", "FROM t",
)  # fmt: skip
BEFORE = ("memory.", "memory.main.", "MEMORY.", '"memory"."Main".')


@pytest.fixture(scope="module")
def twin(open_module_twin: Callable[..., Twin]) -> Twin:
    twin = open_module_twin()
    twin.run("CREATE SCHEMA side")
    twin.run("CREATE TABLE t (a INT ENC, p INT ENC)")
    twin.run("CREATE TABLE k (a INT ENC PRIMARY KEY, p INT)")
    twin.run("CREATE TABLE side.t (a INT ENC, p INT ENC)")
    twin.run("INSERT INTO side.t VALUES (100, 100)")
    return twin


@pytest.mark.parametrize("path", ["", "side"])
@pytest.mark.parametrize("before", BEFORE)
def test_every_form(twin: Twin, before: str, path: str) -> None:
    twin.run(f"SET search_path = '{path}'" if path else "RESET search_path")
    twin.run("INSERT INTO main.t VALUES (1, 1), (2, 2), (3, 3)")
    for form in FORMS:
        twin.either(form.replace("{}", before))
    twin.run("FROM main.t")
    twin.run("FROM side.t")
    twin.run("DELETE FROM main.t")


def test_other_databases_are_none(twin: Twin) -> None:
    for sql in ("INSERT INTO other.main.t VALUES (1, 1)", "FROM other.main.t", "FROM system.main.t",
                "DELETE FROM other.main.t", "INSERT INTO temp.main.t VALUES (1, 1)",
                "UPDATE system.main.t SET a = 1", "INSERT INTO memory.nowhere.t VALUES (1, 1)",
                "CREATE TABLE other.main.u (i INT)", "DROP TABLE other.main.t"):  # fmt: skip
        assert twin.either(sql) is None, sql


@pytest.mark.parametrize("before", BEFORE)
def test_the_flow_rule(twin: Twin, before: str) -> None:
    con = twin.louver
    con.execute("RESET search_path; CREATE TABLE IF NOT EXISTS bare (i INT)")
    for sql in (f"INSERT INTO bare SELECT a FROM {before}t",
                f"INSERT INTO {before}bare SELECT a FROM k",
                f"UPDATE {before}bare SET i = (SELECT max(a) FROM {before}t)"):  # fmt: skip
        with pytest.raises(louver.LeakageRefused):
            con.execute(sql)
    con.execute(f"INSERT INTO {before}bare SELECT i FROM {before}bare")
