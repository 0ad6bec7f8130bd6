"""A plaintext database is encrypted within itself: nothing is lost at any point, and no plaintext
is left.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

import louver
from louver._rust import postgres
from tests.client.harness import answers, key_file, run
from tests.local_postgres import moving
from tests.local_postgres.in_place import SECRETS, encrypt, seen, state
from tests.postgres import servers
from tests.postgres.moving import Database


@pytest.fixture
def shop() -> Database:
    return Database()


def test_a_database_and_back(shop: Database, tmp_path: Path) -> None:
    shop.run(moving.RICH)
    before = moving.definitions(shop)
    views = ("few", '"Sales dept".fewer')
    rows = {table: shop.texts(table) for table in (*moving.TABLES, *views)}
    (body,) = answers(encrypt(shop, tmp_path, "--yes"))
    assert body["tables"] == {
        "Group": 3, "odd": 3003, "Sales dept.nothing": 0, "hen": 2, "egg": 2, "tree": 2,
    }  # fmt: skip
    assert not any("Still there" in notice for notice in body["notices"])
    with louver.connect(shop.url, keys=key_file()) as con:
        for table, texts in rows.items():
            done = con.execute(f"SELECT x::text FROM (SELECT * FROM {table}) AS x ORDER BY 1")
            assert [text for (text,) in done.fetchall()] == texts, table
    back = Database()
    run("-u", shop.url, "export", "--to", back.url, folder=tmp_path)
    assert moving.definitions(back) == before
    for table, texts in rows.items():
        assert back.texts(table) == texts, table


TANGLED = """
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE SCHEMA empty;
CREATE TYPE a.level AS ENUM ('low', 'high');
CREATE DOMAIN a.some AS a.level NOT NULL DEFAULT 'low';
CREATE TYPE b.both AS (l a.level, n integer);
CREATE FUNCTION a.size(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n + 1';
CREATE SEQUENCE b.shared START 50;
CREATE TABLE a.t (k integer PRIMARY KEY, n integer DEFAULT nextval('b.shared'), CONSTRAINT big
    CHECK (a.size(n) > 2));
CREATE TABLE b.t (k integer PRIMARY KEY, n integer DEFAULT nextval('b.shared'), s serial,
    l a.some, p b.both, up integer REFERENCES b.t ON DELETE SET NULL);
ALTER SEQUENCE b.shared OWNED BY b.t.n;
ALTER TABLE a.t ADD CONSTRAINT there FOREIGN KEY (k) REFERENCES b.t DEFERRABLE;
ALTER TABLE b.t ADD CONSTRAINT back FOREIGN KEY (k) REFERENCES a.t DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX same ON a.t (n);
CREATE INDEX same ON b.t (n);
CREATE TABLE t (k integer PRIMARY KEY);
CREATE UNLOGGED TABLE u (k integer);
CREATE VIEW v AS SELECT k FROM a.t;
CREATE VIEW a.w AS SELECT v.k, x.l FROM v JOIN b.t AS x USING (k);
CREATE FUNCTION b.tops() RETURNS SETOF integer LANGUAGE sql STABLE AS 'SELECT 7';
CREATE VIEW b.x AS SELECT tops FROM b.tops();
BEGIN;
INSERT INTO b.t (k, p, up) VALUES (1, '(high,3)', NULL), (2, NULL, 1);
INSERT INTO a.t (k) VALUES (1), (2);
COMMIT;
INSERT INTO t SELECT generate_series(1, 20000);
SELECT nextval('b.shared')
"""


def test_objects_that_depend_on_each_other(shop: Database, tmp_path: Path) -> None:
    shop.run(TANGLED)
    before, names = moving.definitions(shop), ("a.t", "b.t", "public.t", "v", "a.w", "b.x")
    rows = {name: shop.texts(name) for name in names}
    (body,) = answers(encrypt(shop, tmp_path, "--yes"))
    assert len(body["notices"]) == 1
    back = Database()
    run("-u", shop.url, "export", "--to", back.url, folder=tmp_path)
    assert moving.definitions(back) == before
    assert {name: back.texts(name) for name in names} == rows
    with louver.connect(shop.url, keys=key_file()) as con:
        assert con.execute("SELECT nextval('b.shared')").fetchall() == [(55,)]


def test_no_plaintext_is_left(shop: Database, tmp_path: Path) -> None:
    shop.run(SECRETS)
    assert {"pg_catalog.pg_statistic", "pg_catalog.pg_rewrite", "pg_catalog.pg_proc"} <= seen(
        shop, "hush"
    )
    encrypt(shop, tmp_path, "--yes")
    # Schemas and tables keep their names, and tables the names of their keys.
    assert seen(shop, "hush") == {"pg_catalog.pg_namespace"}
    assert shop.run("SELECT count(*) FROM pg_namespace WHERE nspname ~ '^louver_'") == [[0]]
    with louver.connect(shop.url, keys=key_file()) as con:
        sql = "SELECT hush_name, g FROM hush_schema.t WHERE hush_id = 3"
        assert con.execute(sql).fetchall() == [("hush 7", "hush 7hush 14")]
        con.execute("INSERT INTO hush_schema.t (m) VALUES ('hush 2')")
        sql = "SELECT hush_id, n, hush_name FROM hush_schema.t WHERE m = 'hush 2'"
        assert con.execute(sql).fetchall() == [(501, 501, "hush 5")]


@pytest.mark.parametrize("name", servers.binaries())
def test_what_the_server_keeps_can_be_removed(name: str, tmp_path: Path) -> None:
    """What the guide says of PostgreSQL's files, in each version that is here."""
    with servers.started(servers.binaries()[name]) as server:
        other = postgres.Session(str(server.folder), servers.PORT, servers.USER, "postgres")

        def remains() -> set[str]:
            """Where values and definitions are: in files of tables, and in the WAL."""
            command = ["grep", "-rlaE", "hush [0-9]", str(server.folder / "data")]
            files = subprocess.run(command, capture_output=True, text=True, check=False)
            return {Path(path).parent.name for path in files.stdout.splitlines()}

        for sql in SECRETS.split(";\n"):
            other.run([(sql, [])])
        other.run([("CHECKPOINT", [])])
        words = ("encrypt", server.url("postgres"), "--in-place", "--yes")
        run(*words, folder=tmp_path)
        other.run([("CHECKPOINT", [])])
        assert len(remains()) == 2
        assert "pg_wal" in remains()
        other.run([("VACUUM FULL", [])])
        other.run([("CHECKPOINT", [])])
        assert remains() == {"pg_wal"}
        other.run([("ALTER SYSTEM SET wal_recycle = off", [])])
        other.run([("SELECT pg_reload_conf()", [])])
        for _ in range(4):
            time.sleep(0.2)
            other.run([("SELECT pg_switch_wal()", [])])
            other.run([("CHECKPOINT", [])])
        assert remains() == set()
        other.close()
        with louver.connect(server.url("postgres"), keys=key_file()) as con:
            done = con.execute("SELECT count(*), min(hush_name) FROM hush_schema.t")
            assert done.fetchall() == [(500, "hush 7")]


REFUSED = (
    ("CREATE MATERIALIZED VIEW kept AS SELECT k FROM t", "materialized view kept"),
    ("CREATE TABLE parts (k integer) PARTITION BY RANGE (k)", "parts"),
    ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'", "function f"),
    ("CREATE RULE ru AS ON INSERT TO t DO ALSO NOTHING", "rule t.ru"),
    ("SELECT lo_from_bytea(0, 'x')", "large objects"),
    ("CREATE PUBLICATION said FOR TABLE t", "publication said"),
    ("CREATE TEXT SEARCH DICTIONARY words (TEMPLATE = simple)", "words"),
    ("CREATE CAST (mood AS integer) WITH INOUT", "type mood"),
    ("CREATE TABLE row_of (r t)", "table"),
    ("COMMENT ON CONSTRAINT t_pkey ON t IS 'x'", "comment on constraint t_pkey"),
    ("COMMENT ON INDEX t_pkey IS 'x'", "comment on index public.t_pkey"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "name"), REFUSED)
def test_what_is_refused_changes_nothing(
    sql: str, name: str, shop: Database, tmp_path: Path
) -> None:
    shop.run("CREATE TYPE mood AS ENUM ('a');\nCREATE TABLE t (k serial PRIMARY KEY, m mood);\n"
             "INSERT INTO t (m) VALUES ('a');\nCREATE VIEW v AS SELECT k FROM t")  # fmt: skip
    shop.run(sql)
    before = state(shop)
    (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
    assert body["code"] == "source.refused"
    assert name in body["error"]
    assert state(shop) == before
    assert answers(encrypt(shop, tmp_path, code=1))[0]["code"] == "source.refused"


def test_it_has_to_be_confirmed(shop: Database, tmp_path: Path) -> None:
    shop.run(moving.RICH)
    before = state(shop)
    (body,) = answers(encrypt(shop, tmp_path, code=1))
    assert body["code"] == "source.unconfirmed"
    assert "3,012 rows of 6 tables" in body["error"]
    assert state(shop) == before
    given = ("--to", shop.url), ("--table", "odd"), ("--into", "x")
    for words in (*given, ("--leave-out",), ("--dry-run",)):
        assert answers(encrypt(shop, tmp_path, *words, code=2))[0]["code"] == "usage"
    encrypt(shop, tmp_path, "--yes")
    # There is nothing left to do, and nothing to do again.
    (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
    assert body["code"] == "file.database"
    (body,) = answers(encrypt(shop, tmp_path, "--resume"))
    assert body["tables"] == {}
