"""ATTACH of plain DuckDB files: read beside the database, at home alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import louver
from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.wire.messages import Message, Statement
from tests.generated import SOAK
from tests.inside import context_of
from tests.recorded import RecordedSession
from tests.twin import Twin

CANARY = b"a-wombat-in-the-file"
IN_FILE = (
    "CREATE TABLE t (a INT, b VARCHAR, age INT, note VARCHAR)",
    "CREATE SCHEMA s", "CREATE TABLE s.u (k INT PRIMARY KEY, v VARCHAR)",
    "INSERT INTO s.u VALUES (1, 'one'), (3, 'three')",
    "CREATE VIEW v AS SELECT a, note FROM t", "CREATE VIEW w AS SELECT upper(b) AS b FROM t",
    "CREATE TABLE staff (z INT)", "CREATE VIEW beyond AS FROM staff",
    "CREATE VIEW behind AS FROM beyond", "DROP TABLE staff",
    "CREATE VIEW about AS SELECT table_name FROM duckdb_tables()",
    "CREATE MACRO m(i) AS i + 1", "CREATE MACRO rows() AS TABLE FROM t",
    "CREATE TYPE mood AS ENUM ('sad', 'glad')", "CREATE TABLE felt (m mood, l INT[])",
    "INSERT INTO felt VALUES ('glad', [1, 2])",
    'CREATE TABLE "odd "" name" ("A b" INT)', 'INSERT INTO "odd "" name" VALUES (1)',
)  # fmt: skip
TABLES = (
    "CREATE TABLE staff (id INT, name VARCHAR ENC, salary BIGINT ENC, age INT)",
    "INSERT INTO staff SELECT i, 'n' || i, i * 100, i % 7 FROM range(20) r(i)",
    "CREATE TABLE plain (id INT, v VARCHAR)", "CREATE TABLE vault (id INT ENC, v VARCHAR ENC)",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM x.t", "FROM x.main.t", "SELECT x.t.a, staff.id FROM x.t, staff WHERE a = id",
    "SELECT x.s.u.v FROM x.s.u JOIN staff ON k = id", "FROM X.V", "FROM x.w", "FROM x.felt",
    'SELECT "A b" FROM x."odd "" name"', "SELECT 'sad'::x.mood AS m",
    "SELECT s.name, t.note FROM staff AS s JOIN x.t ON t.b = s.name AND t.a > 1 ORDER BY 1",
    "SELECT t.age, name FROM x.t JOIN staff ON t.a = staff.id WHERE staff.age > 2 AND t.age < 9",
    "SELECT id FROM staff WHERE EXISTS (SELECT 1 FROM x.t WHERE b = name AND age > 2)",
    "SELECT id FROM staff WHERE age > (SELECT min(a) + 1 FROM x.t)",
    "SELECT id FROM staff WHERE salary > (SELECT max(a) * 100 FROM x.t)",
    "SELECT id FROM staff WHERE id IN (SELECT a FROM x.t WHERE age < 3)",
    "SELECT id FROM staff WHERE name IN (SELECT b FROM x.t) ORDER BY id",
    "SELECT id FROM staff WHERE age = ANY (SELECT k FROM x.s.u)",
    "SELECT id FROM staff ORDER BY id LIMIT (SELECT min(k) FROM x.s.u)",
    "SELECT sum(salary) AS s FROM staff GROUP BY age HAVING count(*) > (SELECT min(k) FROM x.s.u)",
    "SELECT count(*) AS n FROM x.t LEFT JOIN staff USING (age)",
    "SELECT a, (SELECT sum(salary) FROM staff WHERE id = a) AS s FROM x.t",
    "SELECT a, b FROM x.t UNION ALL SELECT id, name FROM staff",
    "WITH q AS (SELECT max(a) AS m FROM x.t) SELECT id FROM staff, q WHERE age < m",
    "SELECT CASE WHEN (SELECT count(*) FROM x.t) > 4 THEN salary ELSE age END AS c FROM staff",
    "PIVOT x.s.u ON k USING max(v)", "SUMMARIZE x.s.u",
    "SELECT t.a, d.database_name FROM x.t, duckdb_databases() AS d",
)  # fmt: skip
SCHEMA = (
    "SELECT * EXCLUDE (column_types) FROM (SHOW ALL TABLES)",
    "SHOW DATABASES", "SHOW TABLES", "SHOW TABLES FROM x", "DESCRIBE x.t",
    "SHOW x.t", "PRAGMA table_info('x.t')", "DESCRIBE SELECT * FROM x.t, staff",
    "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables",
    "SELECT table_catalog, column_name, data_type FROM information_schema.columns",
    "SELECT database_name, schema_name, table_name, sql FROM duckdb_tables() WHERE NOT temporary",
    "SELECT database_name, path, type, readonly FROM duckdb_databases()",
    "SELECT database_name, view_name, sql FROM duckdb_views() WHERE NOT internal",
    "SELECT database_name, constraint_text FROM duckdb_constraints()",
)  # fmt: skip
CHANGES = (
    "INSERT INTO plain SELECT a, note FROM x.t", "INSERT INTO vault SELECT a, b FROM x.t",
    "INSERT INTO plain SELECT a, 'k' || row_number() OVER (ORDER BY a) FROM x.t",
    "INSERT INTO plain SELECT k, v FROM x.s.u ORDER BY k",
    "INSERT INTO vault SELECT id, name FROM staff JOIN x.t ON a = id",
    "UPDATE plain SET v = t.b FROM x.t WHERE t.a = plain.id",
    "UPDATE vault SET v = (SELECT max(v) FROM x.s.u) WHERE id IN (SELECT a FROM x.t)",
    "DELETE FROM plain WHERE id IN (SELECT k FROM x.s.u)",
    "DELETE FROM vault USING x.s.u WHERE k = id",
    "MERGE INTO plain USING x.t ON plain.id = t.a WHEN MATCHED THEN UPDATE SET v = t.note"
    " WHEN NOT MATCHED THEN INSERT VALUES (t.a, t.b)",
    "CREATE TABLE made AS SELECT t.note, s.salary FROM x.t JOIN staff AS s ON s.name = t.b",
    "CREATE TABLE felt AS FROM x.felt", "CREATE TEMP TABLE beside AS SELECT a, b FROM x.t",
    "INSERT INTO plain SELECT a, b FROM beside",
    "BEGIN", "INSERT INTO vault SELECT k, v FROM x.s.u", "ROLLBACK",
)  # fmt: skip
READ_BACK = ("plain", "vault", "made", "felt", "beside")
REFUSED = (
    "INSERT INTO x.t (a) VALUES (1)", "INSERT OR REPLACE INTO x.s.u VALUES (1, 'a')",
    "WITH q AS (SELECT 1 AS a) INSERT INTO x.t (a) FROM q", "UPDATE x.t SET a = 1",
    "DELETE FROM x.t", "TRUNCATE x.t", "COPY x.t FROM 'some.csv'", "DROP TABLE x.t",
    "MERGE INTO x.t USING plain ON true WHEN MATCHED THEN DELETE",
    "DROP SCHEMA x.s", "ALTER TABLE x.t ADD COLUMN q INT",
    "CREATE TABLE x.n (a INT)", "CREATE TABLE x.n AS SELECT 1 AS a", "CREATE SCHEMA x.more",
    "CREATE VIEW x.n AS SELECT 1 AS a", "CREATE INDEX i ON x.t (a)", "COMMENT ON TABLE x.t IS 'c'",
    "CREATE VIEW n AS FROM x.t", "CREATE TEMP VIEW n AS FROM x.t",
    "CREATE MACRO n() AS TABLE FROM x.t",
    "CREATE TYPE n AS ENUM (SELECT b FROM x.t)", "CREATE TABLE n (m x.mood)",
    "CREATE TABLE n (a INT REFERENCES x.s.u (k))", "SET VARIABLE n = (SELECT max(a) FROM x.t)",
    "EXPORT DATABASE x TO 'somewhere'", "VACUUM x.t", "USE x.main", "CALL x.rows()",
    "EXECUTE p((SELECT max(a) FROM x.t))",
)  # fmt: skip
OF_PROTECTED = (
    "SELECT id, name FROM staff JOIN x.t ON a = id",
    "SELECT a, b FROM x.t WHERE a IN (SELECT salary FROM staff)",
    "SELECT a, b FROM x.t JOIN staff ON b = name",
    "SELECT x.salary, 'k' FROM staff AS x",
    "SELECT count(*), 'k' FROM x.t, staff WHERE a < salary",
    "SELECT (SELECT max(salary) FROM staff), b FROM x.t",
    "SELECT t.salary, '' FROM (FROM staff) AS t, x.t AS u",
    "WITH t AS (SELECT salary AS a, name AS b FROM staff) SELECT a, b FROM t",
    "SELECT a, note FROM x.v",
    "SELECT x.main.t.a, current_query() FROM x.t",
)


def filled(path: Path, rows: int, step: int = 1) -> Path:
    """A DuckDB file; two of them differ in the rows of `t` alone."""
    with duckdb.connect(path) as file:
        for sql in IN_FILE:
            file.execute(sql)
        file.execute(
            f"INSERT INTO t SELECT i * {step}, 'n' || i, i, '{CANARY.decode()}-' || i"
            f" FROM range({rows}) r(i)"
        )
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("beside") / "x.duckdb", 6)


@pytest.fixture
def twin(open_twin: Callable[..., Twin], file: Path) -> Twin:
    twin = open_twin()
    twin.own_errors = True
    twin.fill(*TABLES, f"ATTACH '{file}' (READ_ONLY)")
    return twin


@pytest.fixture
def con(tmp_path: Path, key_file: Path, file: Path) -> Iterator[Connection]:
    with louver.connect(f"duckdb:////{tmp_path}/mine.duckdb", keys=key_file) as connection:
        for sql in (*TABLES, f"ATTACH DATABASE '{file}' AS x"):
            connection.execute(sql)
        yield connection


def refused(connection: Connection, sql: str) -> str:
    with pytest.raises(errors.Error) as caught:
        connection.execute(sql)
    return caught.value.code


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql).fetchall()


def test_queries_give_what_duckdb_gives(twin: Twin) -> None:
    for sql in (*QUERIES, *SCHEMA):
        twin.run(sql)
    twin.run("PREPARE p AS SELECT name FROM staff JOIN x.t ON a = id WHERE staff.age < $1")
    twin.run("EXECUTE p(3)")
    assert twin.louver.execute("EXPLAIN SELECT * FROM x.t, staff").fetchall()


def test_changes_out_of_a_file(twin: Twin) -> None:
    for sql in CHANGES:
        twin.run(sql)
    for table in READ_BACK:
        twin.run(f"SELECT * FROM {table} ORDER BY ALL")
    twin.run("DESCRIBE made")
    tables = context_of(twin.louver).catalog.tables
    assert all(column.encrypted for column in tables["main", "made"].columns)
    # As of a file that read_csv reads: whoever wants them protected says so.
    assert not any(column.encrypted for column in tables["main", "felt"].columns)


def test_home_is_made_anew_with_its_files(twin: Twin) -> None:
    twin.run("CREATE VIEW n AS SELECT id FROM staff")
    twin.run("BEGIN")
    twin.run("CREATE TABLE gone (a INT)")
    twin.run("ROLLBACK")
    twin.run("SELECT count(*) AS n FROM n JOIN x.t ON a = id")
    context_of(twin.louver).local.renew(context_of(twin.louver).catalog)
    twin.run("SELECT count(*) AS n FROM n JOIN x.t ON a = id")
    for sql in ("ALTER TABLE plain ADD COLUMN t INT", "COMMENT ON TABLE plain IS 'c'"):
        twin.run(sql)
    twin.run("SELECT table_name, comment FROM duckdb_tables()")


@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
def test_no_message_depends_on_the_file(tmp_path: Path, key_file: Path, profile: str) -> None:
    """Two worlds whose files differ: every query asks the server for the same."""
    worlds = []
    for name, count, step in (("one", 6, 1), ("two", 700, 7)):
        (tmp_path / name).mkdir()
        path = filled(tmp_path / name / "x.duckdb", count, step)
        watched = RecordedSession(tmp_path / name / "mine.duckdb", key_file, profile)
        for sql in (*TABLES, f"ATTACH '{path}'"):
            watched.session.execute(sql)
        worlds.append(watched)
    secret = "SELECT id FROM staff JOIN x.t ON a = id AND note = 'hidden-condition' AND a > 918273"
    drawn = QUERIES if profile == "sealed" else QUERIES[1 :: 3 if SOAK == 1 else 1]
    for sql in (*drawn, secret, "CREATE TEMP TABLE n AS SELECT a FROM x.t",
                "SELECT count(*) FROM staff WHERE id IN (FROM n)"):  # fmt: skip
        sent = []
        for watched in worlds:
            before = len(watched.tap.sent())
            watched.session.execute(sql)
            sent.append([value(message) for message in watched.tap.sent()[before:]])
        assert sent[0] == sent[1], sql
    for watched in worlds:
        assert not watched.holds(CANARY, b"hidden-condition", b"918273", b"x.duckdb")
        watched.session.close()


def value(message: Message) -> object:
    """A message but for pseudonyms, and for the length of what is sealed."""
    if not isinstance(message, Statement):
        return type(message).__name__
    constants = [c if isinstance(c, int) else type(c).__name__ for c in message.constants]
    return re.sub(r"[0-9a-f]{12}", "", message.sql), constants


def test_a_file_is_only_read(con: Connection) -> None:
    before = rows(con, "SHOW ALL TABLES")
    for sql in REFUSED:
        assert refused(con, sql) == "attach.read_only", sql
    assert rows(con, "SHOW ALL TABLES") == before
    assert rows(con, "SELECT count(*) FROM x.t") == [(6,)]


def test_refused_over_many_rows_too(con: Connection) -> None:
    for sql in ("INSERT INTO x.t (a) VALUES (?)", "INSERT INTO x.s.u SELECT ?, 'a'"):
        with pytest.raises(errors.Error) as caught:
            con.executemany(sql, [(1,), (2,)])
        assert caught.value.code == "attach.read_only"
    with pytest.raises(errors.Error) as caught:
        con.executemany("INSERT INTO vault SELECT z, 'a' FROM x.beyond WHERE z > ?", [(1,), (2,)])
    assert caught.value.code == "attach.object"


def test_a_name_means_one_thing(con: Connection, file: Path) -> None:
    for name in ("x", "X", "main", "memory", "temp", "information_schema", "louver_a"):
        assert refused(con, f"ATTACH '{file}' AS {name}") == "attach.name"
    con.execute(f"ATTACH IF NOT EXISTS '{file}' AS x")
    con.execute("CREATE SCHEMA more")
    assert refused(con, f"ATTACH '{file}' AS more") == "attach.name"
    for sql in ("CREATE SCHEMA x", 'CREATE SCHEMA IF NOT EXISTS "X"', "CREATE OR REPLACE SCHEMA x"):
        assert refused(con, sql) == "attach.read_only"
    con.execute("CREATE TABLE schema AS FROM x.s.u")
    for sql in ("USE x", "SET schema = 'x'", "SET search_path = 'main,x.main'"):
        con.execute("SET search_path = 'main'")
        assert refused(con, sql) == "sql.unsupported"
        assert rows(con, "SELECT current_schema(), current_database()") == [("main", "memory")]
        con.execute("USE more")
        con.execute("USE main")
    con.execute("DETACH DATABASE IF EXISTS x")
    con.execute("DETACH IF EXISTS x")
    assert refused(con, "DETACH x") == "attach.unknown"
    assert refused(con, "FROM x.t") == "duckdb.catalog"
    con.execute("CREATE SCHEMA x")


def test_what_is_no_duckdb_file(con: Connection, tmp_path: Path, file: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no database")
    missing = tmp_path / "nothing"
    for path in (other, tmp_path, missing, ":memory:", "", f"sqlite:{file}", "postgres:a"):
        assert refused(con, f"ATTACH '{path}' AS y") == "attach.file"
    assert not missing.exists()
    assert refused(con, f"ATTACH '{tmp_path}/mine.duckdb' AS y") == "attach.same"
    for options in ("TYPE sqlite", "READ_ONLY false", "ENCRYPTION_KEY 'k'", "READ_WRITE"):
        assert refused(con, f"ATTACH '{file}' AS y ({options})") == "sql.unsupported"
    for rest in ("AS", "(", "AS (READ_ONLY)", "AS y READ_ONLY"):
        assert refused(con, f"ATTACH '{file}' {rest}") == "sql.syntax"
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(file.read_bytes()[:12] + bytes(5000))
    assert refused(con, f"ATTACH '{broken}' AS y").startswith("duckdb.")
    assert rows(con, "SHOW DATABASES") == [("memory",), ("x",)]
    con.execute(f"ATTACH '{file}' AS y (TYPE duckdb, READ_ONLY)")
    con.execute("BEGIN")
    for sql in ("DETACH y", f"ATTACH '{file}' AS z"):
        assert refused(con, sql) == "sql.unsupported"
    con.execute("ROLLBACK")
    con.detach("y")
    con.attach(str(file), "y")
    assert rows(con, "SELECT count(*) FROM y.t") == [(6,)]


def test_what_may_look_outside_of_the_file(con: Connection) -> None:
    """DuckDB finds a view's names in this database where the file has none, and temporary tables
    first: then rows of protected tables would come out of a view that nothing is known of.
    """
    for sql in ("FROM x.beyond", "FROM x.behind", "FROM x.about", "SELECT x.m(1)", "FROM x.rows()",
                "SELECT * FROM query('FROM x.beyond')", "FROM query_table('x.beyond')",
                "INSERT INTO vault SELECT z, 'a' FROM x.beyond"):  # fmt: skip
        assert refused(con, sql) == "attach.object"
    for definition, gone in (
        ("TEMP TABLE t (a INT)", "TABLE temp.t"),
        ("TABLE t (a INT)", "TABLE t"),
        ("MACRO a(x) AS x", "MACRO a"),
        ("TEMP VIEW t AS SELECT 1 AS a", "VIEW t"),
    ):
        con.execute(f"CREATE {definition}")
        assert refused(con, "FROM x.v") == "attach.object"
        assert rows(con, "SELECT count(*) FROM x.t") == [(6,)]
        con.execute(f"DROP {gone}")
    assert len(rows(con, "FROM x.v")) == 6


def test_names_that_are_texts(con: Connection, tmp_path: Path, file: Path) -> None:
    """A name may be put together, so any view of the file may be meant."""
    con.execute("DETACH x")
    con.execute("CREATE MACRO f(n) AS TABLE FROM query_table(n)")
    con.execute("CREATE TEMP TABLE t AS SELECT salary AS a, name AS note FROM staff")
    con.execute(f"ATTACH '{file}' AS x")
    for sql in ("FROM f('x.v')", "INSERT INTO plain FROM f('x.v')", "FROM query_table('x.t')",
                "CREATE TABLE n AS FROM f('x.' || chr(118))"):  # fmt: skip
        assert refused(con, sql) == "attach.object"
    assert refused(con, "SET VARIABLE n = (SELECT max(a) FROM f('x.t'))") == "attach.read_only"
    assert refused(con, "CREATE VIEW n AS FROM query_table('x.t')") == "attach.read_only"
    con.execute("DETACH x")
    with duckdb.connect(tmp_path / "bare.duckdb") as database:
        database.execute("CREATE TABLE t AS SELECT 5 AS a")
    con.execute(f"ATTACH '{tmp_path}/bare.duckdb' AS x")
    assert rows(con, "FROM query_table('x.t')") == [(5,)]
    con.execute("DROP MACRO f")


def test_plain_columns_take_values_of_the_file_alone(con: Connection) -> None:
    con.execute("CREATE TEMP TABLE n (id VARCHAR, v VARCHAR)")
    for sql in OF_PROTECTED:
        assert refused(con, f"INSERT INTO plain {sql}") == "leak.flow", sql
        con.execute(f"INSERT INTO n {sql}")
        assert refused(con, "INSERT INTO plain SELECT id::INT, v FROM n") == "leak.flow", sql
        con.execute("CREATE OR REPLACE TEMP TABLE n (id VARCHAR, v VARCHAR)")


def test_a_file_that_is_lost(con: Connection, tmp_path: Path, key_file: Path, file: Path) -> None:
    """One that is removed, or whose name a schema gets: then no statement takes it for another."""
    copied = tmp_path / "copied.duckdb"
    copied.write_bytes(file.read_bytes())
    con.execute(f"ATTACH '{copied}' AS y")
    with louver.connect(f"duckdb:////{tmp_path}/mine.duckdb", keys=key_file) as other:
        copied.rename(tmp_path / "moved.duckdb")
        other.execute("CREATE SCHEMA x")
        other.execute("CREATE TABLE x.t (a INT)")
        for sql in (
            "FROM x.t",
            "DELETE FROM x.t",
            "FROM y.t",
            "INSERT INTO plain SELECT a, b FROM y.t",
        ):
            assert refused(con, sql) == "attach.lost"
        assert len(rows(con, "FROM staff")) == 20
        (tmp_path / "moved.duckdb").rename(copied)
        other.execute("CREATE TABLE again (a INT)")
        assert rows(con, "FROM again") == []
        assert len(rows(con, "FROM y.t")) == 6
    con.execute("DETACH x")
    assert rows(con, "FROM x.t") == []


def test_beside_another_connection(
    con: Connection, tmp_path: Path, key_file: Path, file: Path
) -> None:
    with louver.connect(f"duckdb:////{tmp_path}/far.duckdb", keys=key_file) as far:
        far.execute("CREATE TABLE f (i INT ENC, w VARCHAR ENC)")
        far.execute("INSERT INTO f VALUES (1, 'one'), (9, 'nine')")
    con.execute(f"ATTACH 'duckdb:////{tmp_path}/far.duckdb' AS far")
    assert refused(con, f"ATTACH '{file}' AS far") == "attach.name"
    assert refused(con, f"ATTACH '{tmp_path}/far.duckdb' AS y") == "attach.same"
    assert rows(con, "SELECT w, b FROM far.f, x.t WHERE i = a") == [("one", "n1")]
    both = "INTO plain SELECT a, b FROM x.t, far.f WHERE i = a"
    assert refused(con, f"INSERT {both}") == "leak.flow"
    con.execute("INSERT INTO vault SELECT a, w FROM x.t, far.f WHERE i = a")
    assert rows(con, "FROM vault") == [(1, "one")]
    con.execute("DETACH far")
    assert len(rows(con, "FROM x.t")) == 6


def test_export_leaves_files_out(con: Connection, tmp_path: Path) -> None:
    con.execute(f"EXPORT DATABASE '{tmp_path}/folder'")
    text = "".join(part.read_text() for part in (tmp_path / "folder").glob("*.sql"))
    assert "staff" in text
    assert "felt" not in text
    assert CANARY not in b"".join(p.read_bytes() for p in (tmp_path / "folder").iterdir())
