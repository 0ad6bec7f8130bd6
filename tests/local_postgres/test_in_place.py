"""A plaintext database is encrypted within itself: nothing is lost at any point, and no plaintext
is left.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import louver
from louver._rust import postgres
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import in_place, trial
from tests import shared
from tests.client.harness import Done, answers, key_file, run
from tests.generated import SEED, cases
from tests.local_postgres import moving
from tests.postgres import servers
from tests.postgres.moving import Database


@pytest.fixture
def shop() -> Database:
    return Database()


def encrypt(shop: Database, folder: Path, *words: str, code: int = 0) -> Done:
    return run("encrypt", shop.url, "--in-place", "--json", *words, folder=folder, code=code)


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


SECRETS = """
CREATE SCHEMA hush_schema;
COMMENT ON SCHEMA hush_schema IS 'hush 1';
CREATE TYPE hush_mood AS ENUM ('hush 2', 'fine');
CREATE DOMAIN hush_code AS text CHECK (VALUE <> 'hush 3');
CREATE FUNCTION hush_twice(n integer) RETURNS text LANGUAGE sql AS
    $$SELECT 'hush 4' || n::text$$;
CREATE FUNCTION hush_twice(n text) RETURNS text LANGUAGE sql AS $$SELECT n$$;
CREATE SEQUENCE hush_free;
CREATE TABLE hush_schema.t (hush_id serial PRIMARY KEY, hush_name text DEFAULT 'hush 5',
    m hush_mood, c hush_code, CONSTRAINT hush_rule CHECK (hush_name <> 'hush 6'), n integer DEFAULT
    nextval('hush_free'), g text GENERATED ALWAYS AS (hush_name || 'hush 14') STORED);
CREATE TABLE u (k integer PRIMARY KEY, name text, t integer REFERENCES hush_schema.t);
INSERT INTO hush_schema.t (hush_name, m, c) SELECT 'hush 7', 'fine', 'hush 8'
    FROM generate_series(1, 500);
INSERT INTO u SELECT i, 'hush 9', i FROM generate_series(1, 400) AS i;
CREATE INDEX hush_index ON hush_schema.t (lower(hush_name)) WHERE hush_name <> 'hush 10';
CREATE STATISTICS hush_more ON hush_name, c FROM hush_schema.t;
CREATE VIEW hush_view AS SELECT hush_name, hush_twice('hush 11') FROM hush_schema.t JOIN u ON k = n;
COMMENT ON TABLE u IS 'hush 12';
COMMENT ON COLUMN u.name IS 'hush 13';
ANALYZE hush_schema.t;
ANALYZE u
"""
#: The rows of all that may hold definitions, names and values, as texts.
CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_type", "pg_enum", "pg_proc", "pg_constraint",
    "pg_rewrite", "pg_description", "pg_namespace", "pg_index", "pg_statistic", "pg_statistic_ext",
    "pg_statistic_ext_data", "pg_trigger", "pg_sequence", "pg_policy", "pg_depend",
)  # fmt: skip


def rows_of(name: str) -> str:
    """A subquery, for a sequence has no row as a whole."""
    return f"(SELECT * FROM {name})"


def seen(shop: Database, what: str) -> set[str]:
    """Where a text is in the server's tables of the database, and those of the catalog."""
    places = set()
    tables = [
        f'"{schema}"."{name}"' for schema, name in shop.run(
            "SELECT n.nspname::text, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n"
            " ON n.oid = relnamespace WHERE relkind IN ('r', 'm', 'S') AND nspname !~ '^pg_'"
            " AND nspname <> 'information_schema'"
        )
    ]  # fmt: skip
    for table in (*tables, *(f"pg_catalog.{name}" for name in CATALOGS)):
        sql = f"SELECT count(*) FROM {rows_of(table)} AS x WHERE x::text ~ '{what}'"
        if shop.run(sql) != [[0]]:
            places.add(table)
    return places


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

        def kept() -> set[str]:
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
        assert len(kept()) == 2
        assert "pg_wal" in kept()
        other.run([("VACUUM FULL", [])])
        other.run([("CHECKPOINT", [])])
        assert kept() == {"pg_wal"}
        other.run([("ALTER SYSTEM SET wal_recycle = off", [])])
        other.run([("SELECT pg_reload_conf()", [])])
        for _ in range(4):
            time.sleep(0.2)
            other.run([("SELECT pg_switch_wal()", [])])
            other.run([("CHECKPOINT", [])])
        assert kept() == set()
        other.close()
        with louver.connect(server.url("postgres"), keys=key_file()) as con:
            done = con.execute("SELECT count(*), min(hush_name) FROM hush_schema.t")
            assert done.fetchall() == [(500, "hush 7")]


def state(shop: Database) -> list[str]:
    """Everything that the database declares, with all rows."""
    names = shop.run(
        "SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n"
        " ON n.oid = relnamespace WHERE relkind IN ('r', 'm', 'S', 'v') AND nspname !~ '^pg_'"
        " AND nspname NOT IN ('information_schema', 'louver') ORDER BY 1"
    )
    texts = [f"{name} {shop.texts(rows_of(name))}" for (name,) in names]
    others = shop.run(
        "SELECT tgname::text FROM pg_trigger UNION ALL SELECT polname::text FROM pg_policy UNION"
        " ALL SELECT nspname::text FROM pg_namespace WHERE nspname <> 'louver'"
        " UNION ALL SELECT loid::text FROM pg_largeobject ORDER BY 1"
    )
    return [*moving.definitions(shop), *texts, *(name for (name,) in others)]


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


# ---------------------------------------------------------------------- interruptions


class Moving:
    """A database before, and what it must be in the end."""

    def __init__(self, shop: Database, folder: Path) -> None:
        self.shop, self.folder = shop, folder
        shop.run(moving.RICH)
        self.views = ("few", '"Sales dept".fewer')
        self.definitions = moving.definitions(shop)
        self.rows = {table: shop.texts(table) for table in (*moving.TABLES, *self.views)}

    def plaintext(self) -> set[str]:
        """The tables that are there as plaintext; each with all of its rows."""
        tables = set()
        for schema, name, columns in self.shop.run(
            "SELECT n.nspname::text, c.relname::text, (SELECT string_agg(attname::text, ',')"
            " FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) FROM pg_class AS c"
            " JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relkind = 'r'"
            " AND nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'louver')"
            " AND relname <> 'plan'"
        ):
            if "row_id" in columns.split(","):
                continue
            whole = next(t for t in moving.TABLES if t.rpartition(".")[2].strip('"') == name)
            assert self.shop.texts(f'"{schema}"."{name}"') == self.rows[whole], name
            tables.add(whole)
        return tables

    def encrypted(self) -> set[str]:
        """The tables that are there as ciphertext; each with all of its rows."""
        tables = set()
        with louver.connect(self.shop.url, keys=key_file(), language="postgres") as con:
            names = con.execute(
                "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n"
                " ON n.oid = c.relnamespace WHERE c.relkind = 'r'"
                " AND n.nspname IN ('public', 'Sales dept')"
            )
            for (name,) in names.fetchall():
                whole = next(t for t in moving.TABLES if t.rpartition(".")[2].strip('"') == name)
                done = con.execute(f"SELECT x::text FROM (SELECT * FROM {whole}) AS x ORDER BY 1")
                assert [text for (text,) in done.fetchall()] == self.rows[whole], whole
                tables.add(whole)
        return tables

    def is_one_of_two(self) -> None:
        """Every table is there once."""
        plain, encrypted = self.plaintext(), self.encrypted()
        assert plain | encrypted == set(moving.TABLES)
        assert not plain & encrypted

    def is_done(self) -> None:
        """Everything is encrypted, nothing else is there, and it comes back as it was."""
        assert not self.plaintext()
        assert self.encrypted() == set(moving.TABLES)
        assert self.shop.run("SELECT count(*) FROM pg_namespace WHERE nspname ~ '^louver_'") == [
            [0]
        ]
        back = Database()
        run("-u", self.shop.url, "export", "--to", back.url, folder=self.folder)
        assert moving.definitions(back) == self.definitions
        for table, texts in self.rows.items():
            assert back.texts(table) == texts, table


def process(shop: Database, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    own = {
        **os.environ, "LOUVER_STATE_DIR": str(shared.state(folder / "state")),
        "LOUVER_KEYS": key_file(),
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "louver.trusted.apps.cli",
        "encrypt",
        shop.url,
        "--in-place",
        *words,
    ]
    return subprocess.Popen(
        command, env=own, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_a_killed_process_and_lost_sessions(shop: Database, tmp_path: Path) -> None:
    dice, place, ended = random.Random(SEED), Moving(shop, tmp_path), 0
    for number in range(cases(8)):
        child = process(shop, tmp_path, "--yes", "--resume")
        time.sleep(dice.uniform(0.4, 3.0))
        ended += child.poll() is None
        if number % 2:
            shop.run(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        else:
            child.kill()
        said, _ = child.communicate()
        assert b"Traceback" not in said
        place.is_one_of_two()
    assert ended
    last = process(shop, tmp_path, "--yes", "--resume")
    said, _ = last.communicate()
    assert last.returncode == 0, said
    place.is_done()


def test_an_interruption_before_or_behind_any_commit(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, place, commits, say = random.Random(SEED), Moving(shop, tmp_path), 0, trial.say
    until, before = 0, False

    def interrupted(context: Context, sql: str) -> Any:
        nonlocal commits
        if sql != "COMMIT":
            return say(context, sql)
        commits += 1
        if commits == until and before:
            raise KeyboardInterrupt
        done = say(context, sql)
        if commits == until:
            raise KeyboardInterrupt
        return done

    left, before = 3, True
    while left:
        commits, until, before = 0, dice.randrange(1, min(left, 3) + 1), not before
        with monkeypatch.context() as patch:
            patch.setattr(trial, "say", interrupted)
            encrypt(shop, tmp_path, "--yes", "--resume", code=130)
        place.is_one_of_two()
        begun = "SELECT count(*) FROM pg_namespace WHERE nspname = 'louver_plaintext'"
        left = 0
        if shop.run(begun) == [[1]]:
            (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
            assert body["code"] == "source.begun"
            ((left,),) = shop.run("SELECT count(DISTINCT part) FROM louver_plaintext.plan")
    place.is_done()


def test_another_policy_does_not_go_on(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY, secret text);\nCREATE TABLE u (k integer);\n"
             "INSERT INTO t VALUES (1, 'canary-1')")  # fmt: skip
    policy = tmp_path / "policy.toml"
    policy.write_text('[t]\nsecret = { scheme = "sealed" }\n', encoding="utf-8")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(in_place._Move, "make", interrupted)
        encrypt(shop, tmp_path, "--policy", str(policy), "--yes", code=130)
    (body,) = answers(encrypt(shop, tmp_path, "--resume", code=1))
    assert body["code"] == "source.policy"
    encrypt(shop, tmp_path, "--policy", str(policy), "--resume")
    assert not seen(shop, "canary")
    with louver.connect(shop.url, keys=key_file()) as con:
        assert con.execute("SELECT * FROM t").fetchall() == [(1, "canary-1")]


# ---------------------------------------------------------------------- other clients


def session(shop: Database) -> postgres.Session:
    """Another client."""
    return postgres.Session(str(servers.shared().folder), servers.PORT, servers.USER, shop.name)


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (2)", "SELECT * FROM v"])
def test_tables_in_use_are_refused(sql: str, shop: Database, tmp_path: Path) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY);\nINSERT INTO t VALUES (1);\n"
             "CREATE VIEW v AS SELECT k FROM t")  # fmt: skip
    before = state(shop)
    other = session(shop)
    other.run([("BEGIN", [])])
    other.run([(sql, [])])
    (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
    assert body["code"] == "source.locked"
    other.close()
    assert state(shop) == before
    encrypt(shop, tmp_path, "--yes")


def test_what_others_wrote_by_then_is_there(shop: Database, tmp_path: Path) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY, name text);\nCREATE TABLE u (k integer)")
    written, ends = list[int](), threading.Event()

    def write() -> None:
        other = session(shop)
        for number in range(10**6):
            if ends.is_set():
                break
            try:
                other.run([(f"INSERT INTO public.t VALUES ({number}, 'x')", [])])
            except postgres.ServerError:
                break
            written.append(number)
        other.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        encrypt(shop, tmp_path, "--yes")
    finally:
        ends.set()
        thread.join()
    assert written
    with louver.connect(shop.url, keys=key_file()) as con:
        rows = con.execute("SELECT k FROM t ORDER BY k").fetchall()
    assert rows == [(number,) for number in written]


def test_definitions_that_change_meanwhile(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY)")
    tried = in_place._Place._tried

    def meanwhile(*arguments: Any) -> Any:
        shop.run("CREATE TABLE public.later (k integer)")
        return tried(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(in_place._Place, "_tried", meanwhile)
        (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
    assert body["code"] == "source.changed"
    encrypt(shop, tmp_path, "--yes")
    with louver.connect(shop.url, keys=key_file()) as con:
        assert con.execute("SELECT * FROM t, later").fetchall() == []
