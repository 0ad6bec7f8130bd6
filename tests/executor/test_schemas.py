"""Several schemas: names without one mean what they mean in DuckDB, in every statement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import louver
from louver.trusted.executor import seen_state
from louver.trusted.vault.catalog import Catalog
from tests.generated import cases, generator
from tests.inside import context_of
from tests.twin import Twin

PATHS = (
    "USE s", "USE r", "USE main", "USE memory.s", "SET schema = 's'", "SET search_path = 'r,s'",
    "SET search_path = 's,main'", "RESET search_path", "RESET schema", "USE gone",
    "SET SESSION schema TO r", "SET search_path = ''", "PRAGMA search_path = 'r'",
)  # fmt: skip
STATEMENTS = (
    "CREATE TABLE IF NOT EXISTS t (a INT ENC, b VARCHAR ENC)",
    "CREATE TABLE x AS SELECT a FROM t", "DROP TABLE IF EXISTS x", "DROP TABLE s.x",
    "CREATE OR REPLACE VIEW v AS SELECT max(a) AS m FROM t", "DROP VIEW v",
    "CREATE OR REPLACE VIEW s.w AS SELECT a FROM t", "CREATE OR REPLACE VIEW x AS SELECT 1 AS a",
    "CREATE OR REPLACE MACRO m() AS (SELECT sum(a) FROM t)", "DROP MACRO m",
    "CREATE SCHEMA IF NOT EXISTS gone", "DROP SCHEMA gone CASCADE",
    "INSERT INTO t VALUES (7, 'seven'), (8, NULL)", "INSERT INTO t (a) SELECT a + 1 FROM main.t",
    "INSERT INTO r.t SELECT * FROM t", "UPDATE t SET a = a + 1 WHERE b = 'seven'",
    "UPDATE s.t SET b = 'joined' FROM t AS t2 WHERE t2.a = s.t.a", "DELETE FROM t WHERE a > 30",
    "DELETE FROM main.t WHERE a IN (SELECT a FROM t WHERE a > 9)", "COMMENT ON TABLE t IS 'said'",
    "MERGE INTO t USING s.t AS o ON t.a = o.a WHEN MATCHED THEN UPDATE SET b = 'met'",
    "ALTER TABLE t ADD COLUMN more INT ENC", "ALTER TABLE t DROP COLUMN more",
    "ALTER TABLE x RENAME TO y", "DROP TABLE y", "CREATE INDEX IF NOT EXISTS i ON t (a)",
    "CREATE TABLE numbered (a INT ENC DEFAULT nextval('q'))", "INSERT INTO numbered DEFAULT VALUES",
    "INSERT INTO s.numbered DEFAULT VALUES", "DROP TABLE numbered", "TRUNCATE x",
    "BEGIN", "COMMIT", "ROLLBACK",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM t", "FROM x", "FROM v", "FROM s.w", "SELECT m()", "FROM numbered", "DESCRIBE t",
    "SELECT current_schema(), current_database()", "FROM (SHOW TABLES)", "SELECT currval('q')",
    "SELECT t.a, o.b FROM t JOIN main.t AS o USING (a) WHERE t.a > 1",
    "SELECT b, count(*) AS n FROM t GROUP BY b", "SELECT a FROM t WHERE a = (SELECT m FROM v)",
    "WITH t AS (SELECT 1 AS k) FROM t", "SELECT sum(a) AS n FROM s.t WHERE a < 8",
    "SELECT table_schema, table_name FROM information_schema.tables",
)  # fmt: skip


@pytest.fixture(scope="module")
def twin(open_module_twin: Callable[..., Twin]) -> Twin:
    twin = open_module_twin()
    for schema in ("s", "r"):
        twin.run(f"CREATE SCHEMA {schema}")
    for index, schema in enumerate(("main", "s", "r")):
        twin.run(f"CREATE TABLE {schema}.t (a INT ENC, b VARCHAR ENC)")
        twin.run(f"INSERT INTO {schema}.t VALUES ({index}, 'of {schema}'), (8, 'eight')")
        twin.run(f"CREATE SEQUENCE {schema}.q START {index + 1}00")
    return twin


def test_drawn_statements(twin: Twin) -> None:
    random = generator("schemas")
    for _ in range(cases(12)):
        twin.either(random.choice(PATHS))
        for sql in random.choices(STATEMENTS, k=2):
            try:
                twin.louver.execute(sql)
                failed = ""
            except louver.LeakageRefused:
                continue
            except louver.Error as error:
                failed = str(error)
            try:
                twin.plain.execute(sql.replace(" ENC", ""))
                assert not failed, f"{sql}: {failed}"
            except duckdb.Error:
                assert failed, sql
            if failed:
                # Louver ends a transaction for some errors that DuckDB lets it survive.
                twin.either("ROLLBACK")
        for query in random.choices(QUERIES, k=2):
            twin.either(query)
    twin.either("ROLLBACK")
    twin.run("USE main")
    assert not twin.recorded.holds(b"search_path", b"USE ")


def test_rebuilt_and_read_again(twin: Twin) -> None:
    twin.run("USE s")
    for statement in ("CREATE TYPE mood AS ENUM ('sad', 'glad')", "CREATE TABLE kept (m mood ENC)",
                      "CREATE VIEW seen AS SELECT m FROM kept", "INSERT INTO kept VALUES ('sad')",
                      "CREATE MACRO all_of() AS TABLE SELECT * FROM kept"):  # fmt: skip
        twin.run(statement)
    context = context_of(twin.louver)
    seen_state.adopt(context, Catalog.from_json(context.catalog.to_json()), schema_changed=True)
    for query in ("FROM kept", "FROM seen", "FROM all_of()", "SELECT current_schema()"):
        twin.run(query)
    twin.run("USE main")
    seen_state.adopt(context, Catalog.from_json(context.catalog.to_json()), schema_changed=True)
    for query in ("FROM s.kept", "FROM s.seen", "FROM kept", "SELECT current_schema()"):
        twin.either(query)


def test_a_change_may_read_its_own_name_elsewhere(twin: Twin) -> None:
    twin.run("CREATE VIEW r.same AS SELECT a FROM s.t")
    for sql in ("CREATE TABLE same (a INT ENC, b VARCHAR ENC)", "INSERT INTO same VALUES (8, 'x')",
                "MERGE INTO same USING r.same AS o ON same.a = o.a"
                " WHEN MATCHED THEN UPDATE SET b = 'met'", "FROM same", "USE r",
                "UPDATE main.t SET b = 'joined' FROM s.t AS o WHERE main.t.a = o.a", "FROM main.t",
                "DELETE FROM t WHERE a IN (SELECT a FROM s.t)", "FROM t", "USE main"):  # fmt: skip
        twin.run(sql)


def test_a_path_outlives_a_rollback_and_its_schema(twin: Twin) -> None:
    for statement in ("BEGIN", "CREATE SCHEMA brief", "USE brief", "CREATE TABLE k (a INT ENC)",
                      "ROLLBACK", "SELECT current_schema()", "CREATE TABLE k (a INT ENC)",
                      "SELECT count(*) AS n FROM t", "USE main"):  # fmt: skip
        twin.either(statement)


def test_defaults_of_referring_tables_draw_from_their_own_schema(twin: Twin) -> None:
    for schema in ("main", "s"):
        twin.run(f"USE {schema}")
        twin.run("CREATE TABLE p (a INT ENC PRIMARY KEY)")
        twin.run("INSERT INTO p VALUES (1)")
        twin.run("CREATE TABLE u (a INT ENC REFERENCES p (a), b INT ENC DEFAULT nextval('q'))")
    twin.run("INSERT INTO main.u (a) VALUES (1)")
    twin.run("USE main")
    twin.run("INSERT INTO s.u (a) VALUES (1)")
    twin.run("FROM s.u")
    twin.run("FROM main.u")
    twin.louver.execute("USE s")
    twin.louver.load("p", pa.table({"a": [2]}))
    assert twin.louver.execute("SELECT max(a) FROM s.p").fetchall() == [(2,)]
    with pytest.raises(louver.Error, match="without its schema"):
        twin.louver.execute("ALTER TABLE main.u ADD COLUMN c INT DEFAULT nextval('q')")
    with pytest.raises(louver.Error, match="information_schema"):
        twin.louver.execute("USE information_schema")
    assert twin.louver.execute("SELECT current_schema()").fetchall() == [("s",)]
    twin.louver.execute("USE main")


def test_the_flow_rule_resolves_as_duckdb_does(twin: Twin) -> None:
    con = twin.louver
    for statement in ("CREATE TABLE main.f (a INT)", "CREATE TABLE s.f (a INT ENC)",
                      "CREATE VIEW s.g AS SELECT a FROM f", "CREATE TABLE main.plain (a INT)",
                      "INSERT INTO plain SELECT a FROM f"):  # fmt: skip
        con.execute(statement)
    with pytest.raises(louver.LeakageRefused):
        con.execute("INSERT INTO plain SELECT a FROM s.g")
    con.execute("USE s")
    for source in ("SELECT a FROM f", "SELECT a FROM g", "SELECT max(a) FROM f"):
        with pytest.raises(louver.LeakageRefused):
            con.execute(f"INSERT INTO plain {source}")
    con.execute("INSERT INTO plain SELECT a FROM main.f")
    con.execute("PREPARE p AS FROM f")
    con.execute("USE main")
    with pytest.raises(louver.Error) as caught:
        con.execute("EXPLAIN EXECUTE p")
    assert caught.value.code == "prepared.path"
    con.execute("PREPARE hidden AS INSERT INTO main.plain FROM f")
    con.execute("USE s")
    con.execute("EXECUTE hidden")
    con.execute("PREPARE shown AS INSERT INTO main.plain FROM f")
    con.execute("USE main")
    with pytest.raises(louver.LeakageRefused):
        con.execute("EXECUTE shown")
    assert con.execute("SELECT current_schema()").fetchall() == [("main",)]


def test_prepared_statements_keep_their_path(tmp_path: Path, key_file: Path) -> None:
    twin = Twin(tmp_path / "twin.duckdb", key_file, own_errors=True)
    for sql in (
        "CREATE SCHEMA s", "CREATE TABLE t (x VARCHAR ENC)", "CREATE TABLE s.t (x VARCHAR ENC)",
        "INSERT INTO t VALUES ('main')", "INSERT INTO s.t VALUES ('s')",
        "PREPARE q AS SELECT x FROM t", "EXECUTE q", "SET search_path='s'", "EXECUTE q",
        "PREPARE q2 AS SELECT x FROM t", "EXECUTE q2", "SET search_path='main'", "EXECUTE q2",
        "PREPARE i AS INSERT INTO t VALUES ($1)", "SET search_path='s'", "EXECUTE i('new')",
        "FROM main.t", "FROM s.t", "SELECT current_setting('search_path') AS p",
        "SET search_path='s,main'", "EXECUTE q", "EXECUTE i(error('no'))",
        "SELECT current_setting('search_path') AS p", "RESET search_path", "DROP TABLE t",
        "EXECUTE q", "DROP SCHEMA s CASCADE", "EXECUTE q2", "FROM q2", "EXECUTE nothing",
        "SELECT current_setting('search_path') AS p",
    ):  # fmt: skip
        twin.either(sql)
    twin.close()
