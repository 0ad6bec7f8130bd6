"""A plaintext database comes over in PostgreSQL's language, and back just as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
from louver.trusted.executor.local.postgres.plaintext import SourceTable
from louver.trusted.executor.postgres import encrypting
from tests.client.harness import Done, answers, key_file, run
from tests.local_postgres import moving
from tests.postgres.moving import Database


@pytest.fixture
def source() -> Database:
    return Database()


@pytest.fixture
def target() -> Database:
    return Database()


def encrypt(source: Database, target: Database, folder: Path, *words: str, code: int = 0) -> Done:
    return run("encrypt", source.url, "--to", target.url, *words, folder=folder, code=code)


def test_all_that_is_declared_comes_along(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run(moving.RICH)
    (body,) = answers(encrypt(source, target, tmp_path, "--json"))
    assert body["tables"] == {
        "Group": 3, "odd": 3003, "Sales dept.nothing": 0, "hen": 2, "egg": 2, "tree": 2,
    }  # fmt: skip
    assert "notices" not in body
    with louver.connect(target.url, keys=key_file()) as con:
        for table in (*moving.TABLES, "few", '"Sales dept".fewer'):
            rows = con.execute(f"SELECT x::text FROM (SELECT * FROM {table}) AS x ORDER BY 1")
            assert [text for (text,) in rows.fetchall()] == source.texts(table), table
    back = Database()
    done = answers(run("-u", target.url, "export", "--to", back.url, "--json", folder=tmp_path))
    assert done[0]["tables"] == body["tables"]
    assert moving.definitions(back) == moving.definitions(source)
    for table in (*moving.TABLES, "few", '"Sales dept".fewer'):
        assert back.texts(table) == source.texts(table), table


REFUSED = """
CREATE TABLE p (a integer PRIMARY KEY, b text COLLATE "C", c text, d integer DEFAULT 7,
    r int4range, EXCLUDE USING gist (r WITH &&), CONSTRAINT few CHECK (a < 100));
CREATE TABLE child (e integer) INHERITS (p);
CREATE TABLE parts (k integer, v text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE ref (a integer, CONSTRAINT loose FOREIGN KEY (a) REFERENCES p);
INSERT INTO p VALUES (1, 'x', 'y', 3, '[1,2]');
INSERT INTO child VALUES (2, 'x', 'y', 3, '[1,2]', 9);
INSERT INTO parts VALUES (3, 'three'), (4, 'four');
INSERT INTO ref VALUES (1);
ALTER TABLE ref ADD CONSTRAINT unsure CHECK (a > 5) NOT VALID;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE FUNCTION odd_one(integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 > 0
; END';
CREATE TABLE odd_ones (a integer CHECK (odd_one(a)), b integer DEFAULT abs(-3));
INSERT INTO odd_ones VALUES (1);
CREATE TRIGGER tr BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION f();
CREATE RULE ru AS ON INSERT TO ref DO ALSO NOTHING;
ALTER TABLE ref ENABLE ROW LEVEL SECURITY;
CREATE POLICY po ON ref USING (a > 0);
CREATE MATERIALIZED VIEW kept AS SELECT a FROM p;
CREATE VIEW fine AS SELECT a, c FROM p;
CREATE VIEW calls AS SELECT odd_one(a) FROM odd_ones
"""
NAMES = (
    "trigger p.tr", "rule ref.ru", "policy ref.po", "row security ref", "materialized view kept",
    "partitions (all rows go into one table) parts", "inheritance (each table has its own rows)"
    " child", "constraint that is not valid ref.unsure", "function f", "function odd_one",
    "view calls",
)  # fmt: skip


def test_what_is_refused_is_said_before_anything_is_stored(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run(REFUSED)
    (body,) = answers(encrypt(source, target, tmp_path, "--json", code=1))
    assert body["code"] == "source.refused"
    lines = [line.strip() for line in body["error"].splitlines()[1:]]
    for name in (*NAMES, "table p", "table odd_ones", "table ref"):
        assert any(line.startswith(f"{name}: ") for line in lines), (name, lines)
    assert target.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [[0]]
    with louver.connect(target.url, keys=key_file()) as con:
        names = con.execute("SELECT relname FROM pg_class WHERE relname IN ('p', 'parts', 'fine')")
        assert names.fetchall() == []


def test_what_is_refused_can_be_left_out(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run(REFUSED)
    words = ("--json", "--leave-out", "--drop-collations")
    (body,) = answers(encrypt(source, target, tmp_path, *words))
    assert body["tables"] == {"child": 1, "odd_ones": 1, "p": 1, "parts": 2, "ref": 1}
    notices = " ".join(body["notices"])
    for name in (*NAMES, "constraint p.p_r_excl", "constraint odd_ones.odd_ones_a_check"):
        assert name in notices, name
    assert "few" not in notices
    assert "loose" not in notices
    with louver.connect(target.url, keys=key_file()) as con:
        assert con.execute("SELECT * FROM parts ORDER BY k").fetchall() == [
            (3, "three"),
            (4, "four"),
        ]
        assert con.execute("SELECT a, c, d, e FROM child").fetchall() == [(2, "y", 3, 9)]
        assert con.execute("SELECT a FROM fine").fetchall() == [(1,)]
        con.execute("INSERT INTO odd_ones (a) VALUES (-1)")
        assert con.execute("SELECT b FROM odd_ones WHERE a = -1").fetchall() == [(3,)]
        for wrong in ("INSERT INTO p (a) VALUES (100)", "INSERT INTO ref VALUES (9)"):
            with pytest.raises(louver.IntegrityError):
                con.execute(wrong)


def test_some_tables(source: Database, target: Database, tmp_path: Path) -> None:
    source.run(moving.RICH)
    words = ("--json", "--table", "hen")
    assert answers(encrypt(source, target, tmp_path, *words, code=1))[0]["code"] == "file.parent"
    assert answers(encrypt(source, target, tmp_path, *words, "--table", "egg"))[0]["tables"] == {
        "hen": 2, "egg": 2,
    }  # fmt: skip
    with louver.connect(target.url, keys=key_file()) as con:
        assert con.execute("SELECT * FROM hen ORDER BY id").fetchall() == [(1, 7), (2, 8)]
        with pytest.raises(louver.IntegrityError):
            con.execute("UPDATE hen SET egg = 99")
    # Another time the others, but not what is there.
    (body,) = answers(encrypt(source, target, tmp_path, "--json", code=1))
    assert body["code"] == "table.exists"
    (body,) = answers(encrypt(source, target, tmp_path, "--json", "--resume"))
    assert set(body["tables"]) == {"Group", "odd", "Sales dept.nothing", "tree"}
    back = Database()
    run("-u", target.url, "export", "--to", back.url, folder=tmp_path)
    assert moving.definitions(back) == moving.definitions(source)


@pytest.mark.parametrize("at", [1, 2, 4])
def test_it_goes_on_after_an_interruption(
    at: int, source: Database, target: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.run(moving.RICH)
    fill, filled = encrypting.Move.fill, list[str]()

    def interrupted(self: encrypting.Move, table: SourceTable) -> None:
        filled.append(table.name)
        if len(filled) == at:
            raise KeyboardInterrupt
        fill(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(encrypting.Move, "fill", interrupted)
        encrypt(source, target, tmp_path, "--json", code=130)
    with louver.connect(target.url, keys=key_file()) as con:
        rows = con.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname = 'odd'")
        assert len(rows.fetchall()) == ("odd" in filled[:-1])
    (body,) = answers(encrypt(source, target, tmp_path, "--json", "--resume"))
    assert set(body["tables"]).isdisjoint(() if at == 1 else filled[:1])
    back = Database()
    run("-u", target.url, "export", "--to", back.url, folder=tmp_path)
    assert moving.definitions(back) == moving.definitions(source)
    for table in moving.TABLES:
        assert back.texts(table) == source.texts(table), table


def test_a_policy_says_what_is_encrypted(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run("CREATE TABLE t (id integer PRIMARY KEY, secret text, open text);\n"
               "INSERT INTO t VALUES (1, 'canary-1', 'seen-2')")  # fmt: skip
    policy = tmp_path / "policy.toml"
    policy.write_text('[t]\nsecret = { scheme = "sealed" }\n', encoding="utf-8")
    encrypt(source, target, tmp_path, "--policy", str(policy))
    (text,) = target.texts("t")
    assert "seen-2" in text
    assert "canary-1" not in text
    assert b"canary-1".hex() not in text


def test_values_that_cannot_be_held_are_refused(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run("CREATE TABLE t (n numeric(5,2), ts timestamp, wide numeric);\n"
               "INSERT INTO t VALUES ('NaN', NULL, 'NaN'), (1, '294276-12-31', 2)")  # fmt: skip
    (body,) = answers(encrypt(source, target, tmp_path, "--json", code=1))
    assert body["code"] == "source.values"
    assert "t.n (NaN: 1 rows)" in body["error"]
    assert "t.ts" in body["error"]
    assert "wide" not in body["error"]


def test_an_export_that_fails_leaves_nothing(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run("CREATE TABLE a (k integer PRIMARY KEY);\nCREATE TABLE b (k integer);\n"
               "CREATE VIEW v AS SELECT k FROM a")  # fmt: skip
    encrypt(source, target, tmp_path)
    back = Database()
    back.run("CREATE TABLE v (x integer)")
    words = ("-u", target.url, "export", "--json", "--to")
    (body,) = answers(run(*words, back.url, folder=tmp_path, code=1))
    assert body["code"] == "server.exists"
    assert back.run("SELECT relname FROM pg_class WHERE relname IN ('a', 'b')") == []
    for url in (target.url, f"{target.url}&application_name=other"):
        (body,) = answers(run(*words, url, folder=tmp_path, code=1))
        assert body["code"] in ("source.same", "file.database")
    (body,) = answers(encrypt(target, source, tmp_path, "--json", code=1))
    assert body["code"] == "file.database"
    (body,) = answers(encrypt(source, source, tmp_path, "--json", code=1))
    assert body["code"] == "source.same"


def test_a_dry_run_estimates_and_stores_nothing(
    source: Database, target: Database, tmp_path: Path
) -> None:
    source.run(moving.RICH)
    (body,) = answers(encrypt(source, target, tmp_path, "--dry-run", "--json"))
    estimates = {item["table"]: item for item in body["estimates"]}
    assert estimates["odd"]["rows"] == 3003
    assert estimates["odd"]["bytes"] > 100_000
    assert target.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'louver'") == [[0]]
