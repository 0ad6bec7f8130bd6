"""Plaintext databases of real servers: brought over encrypted, and written back just as they were.

The server itself compares: a table that came back has the same rows, as its own text of them says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import louver
from tests import shared
from tests.client.harness import answers, key_file, run
from tests.postgres.moving import Database, Encrypt, opened

_PATIENCE_S = 60.0
ODD = """
CREATE SCHEMA "Sales dept";
CREATE TYPE "Sales dept".mood AS ENUM ('sad', 'it''s', 'ok');
CREATE TABLE "Group" ("select" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    "it's" varchar(60) NOT NULL, "a.b" text UNIQUE);
CREATE TABLE odd (id serial PRIMARY KEY, parent bigint REFERENCES "Group", n smallint, i integer,
    r real, d double precision, dec numeric(12, 3), t text, c char(5), b bytea, u uuid, day date,
    ts timestamp, tz timestamptz, hour time, span interval, yes boolean, m "Sales dept".mood);
CREATE TABLE "Sales dept".nothing (a integer, b text);
INSERT INTO "Group" ("it's", "a.b") VALUES ('', ''), ('O''Brien "q"', E'two\\nlines\\\\'),
    ('ü', NULL);
INSERT INTO odd (parent, n, i, r, d, dec, t, c, b, u, day, ts, tz, hour, span, yes, m) VALUES
    (1, -32768, -2147483648, 'NaN', 'NaN', -999999999.999, '', 'ab', '', gen_random_uuid(),
     'infinity', 'infinity', 'infinity', '00:00', '-1 year 2 mons -3 days 04:05:06.000001', true,
     'it''s'),
    (2, 32767, 2147483647, '-Infinity', 'Infinity', 0.001, 'NULL', '     ', '\\x00ff',
     '00000000-0000-0000-0000-000000000000', '-infinity', '-infinity', '-infinity',
     '23:59:59.999999', '0', false, 'sad'),
    (NULL, 0, 0, '-0', 1e-310, 0, E'\\t\\\\.', NULL, NULL, NULL, '0044-03-15 BC',
     '4713-01-01 00:00:00 BC', '294246-12-31 00:00:00+00', NULL, '178 years', NULL, 'ok'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL);
INSERT INTO odd (parent, i, t) SELECT 1 + i % 3, i, repeat(md5(i::text), 1 + i % 7)
    FROM generate_series(1, 3000) AS g(i);
INSERT INTO odd (t) VALUES (repeat('long ', 1000000));
CREATE INDEX odd_i ON odd (i, day);
CREATE VIEW few AS SELECT o.id, o.t AS text, g."it's" FROM odd o
    JOIN "Group" g ON g."select" = o.parent WHERE o.i < 10 AND o.yes IS NULL;
COMMENT ON TABLE odd IS 'it''s odd';
COMMENT ON COLUMN "Group"."a.b" IS 'a comment';
"""
TABLES = ('public."Group"', "public.odd", '"Sales dept".nothing')


def test_odd_values_and_names_come_back_as_they_were(
    source: Database, target: Database, back: Database, encrypt: Encrypt, tmp_path: Path
) -> None:
    source.run(ODD)
    (body,) = answers(encrypt("--json"))
    assert body["tables"] == {"Group": 3, "odd": 3005, "Sales dept.nothing": 0}
    assert "notices" not in body
    with opened(target) as con:
        assert con.execute("SELECT count(*), count(DISTINCT t) FROM odd").fetchone() == (3005, 3004)
        assert con.execute("SELECT count(*) FROM few").fetchone() == (9,)
        assert con.execute("SELECT isinf(day) FROM odd WHERE id <= 2").fetchall() == [(True,)] * 2
        con.execute("INSERT INTO odd (n) VALUES (7)")
        assert con.execute("SELECT id FROM odd WHERE n = 7").fetchone() == (3006,)
        with pytest.raises(louver.IntegrityError):
            con.execute("INSERT INTO odd (id) VALUES (1)")
        with pytest.raises(louver.IntegrityError):
            con.execute("INSERT INTO odd (parent) VALUES (99)")
        with pytest.raises(louver.IntegrityError):
            con.execute("""INSERT INTO "Group" ("it's") VALUES (NULL)""")
        con.execute("DELETE FROM odd WHERE n = 7")
    plain = run("-u", target.url, "export", "--to", back.url, "--json", folder=tmp_path)
    assert answers(plain)[0]["tables"] == body["tables"]
    for table in TABLES:
        # The blanks at the end of char(n) are the only difference.
        expected = [
            text.replace('"ab   "', "ab").replace('"     "', '""') for text in source.texts(table)
        ]
        assert back.texts(table) == expected, table
    assert back.texts("few") == source.texts("few")
    back.run("INSERT INTO odd (n, m) VALUES (1, 'it''s')")
    assert back.run("SELECT max(id) FROM odd") == [[3008]]
    assert back.run("SELECT obj_description('odd'::regclass)") == [["it's odd"]]
    assert back.run("SELECT count(*) FROM pg_indexes WHERE indexname = 'odd_i'") == [[1]]


def test_the_server_has_no_plaintext(source: Database, target: Database, encrypt: Encrypt) -> None:
    source.run("CREATE TABLE secrets (a text);\nINSERT INTO secrets VALUES ('canary-1')")
    encrypt()
    (text,) = target.texts("secrets")
    assert "canary" not in text
    assert b"canary-1".hex() not in text


def test_rules_that_have_no_equal_are_named(
    source: Database, target: Database, encrypt: Encrypt
) -> None:
    source.run("""CREATE TABLE p (a integer PRIMARY KEY, b text CHECK (b ~ '^x'), c text
        CHECK (c = ANY (ARRAY['u', 'v'])), d integer DEFAULT random(0, 9),
        g integer GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0 AND a < 100));
        CREATE UNIQUE INDEX low ON p (lower(b));
        CREATE VIEW up AS SELECT upper(b) FROM p;
        CREATE MATERIALIZED VIEW kept AS SELECT a FROM p;
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW\n; END';
        """.replace("NEW\n;", "NEW;"))  # fmt: skip
    source.run("CREATE TRIGGER tr BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION f()")
    source.run("INSERT INTO p (a, b, c) VALUES (1, 'x', 'u')")
    notices = " ".join(answers(encrypt("--json"))[0]["notices"])
    for name in ("p_b_check", "p.d", "p.g", "low", "up", "kept", "function: f", "p.tr"):
        assert name in notices, name
    assert "p_c_check" not in notices
    with opened(target) as con:
        assert con.execute("SELECT a, b, c, g FROM p").fetchall() == [(1, "x", "u", 2)]
        for wrong in ("(0, 'u')", "(2, 'w')"):
            with pytest.raises(louver.IntegrityError):
                con.execute(f"INSERT INTO p (a, c) VALUES {wrong}")


def test_what_cannot_be_held_is_refused_at_once(
    source: Database, target: Database, encrypt: Encrypt
) -> None:
    source.run("""CREATE TABLE a (j jsonb, x integer[], n numeric, ok text);
        CREATE TABLE b (p point, ok text);
        INSERT INTO a VALUES ('{"k": [1]}', '{1,2}', 1.50, 'yes');
        """)
    refusal = answers(encrypt("--json", code=1))[0]
    assert refusal["code"] == "source.types"
    for column in ("a.j (jsonb)", "a.x (integer[])", "a.n (numeric)", "b.p (point)"):
        assert column in refusal["error"]
    assert target.run("SELECT count(*) FROM pg_tables WHERE tablename IN ('a', 'b')") == [[0]]
    encrypt("--as-text")
    with opened(target) as con:
        expected = ('{"k": [1]}', "{1,2}", "1.50", "yes")
        assert con.execute("SELECT * FROM a").fetchall() == [expected]


def test_values_that_cannot_be_held_are_refused_at_once(
    source: Database, target: Database, encrypt: Encrypt
) -> None:
    source.run("""CREATE TABLE a (n numeric(5, 2), t time);
        CREATE TABLE b (ts timestamp, i interval);
        INSERT INTO a VALUES ('NaN', '24:00:00'), (1, '01:00');
        INSERT INTO b VALUES ('294260-01-01', '3000000 hours')""")
    refusal = answers(encrypt("--json", code=1))[0]
    assert refusal["code"] == "source.values"
    for column in ("a.n (NaN: 1 rows)", "a.t (24:00:00: 1 rows)", "b.ts (", "b.i ("):
        assert column in refusal["error"]
    assert target.run("SELECT count(*) FROM pg_tables WHERE tablename IN ('a', 'b')") == [[0]]


def test_names_that_are_one_here_are_refused(source: Database, encrypt: Encrypt) -> None:
    source.run("""CREATE TABLE t (a integer, "A" integer);
        CREATE TABLE "T" (a integer);
        CREATE SCHEMA main;
        CREATE TABLE main.x (a integer)""")
    refusal = answers(encrypt("--json", code=1))[0]
    assert refusal["code"] == "source.names"
    for name in ("t.a and t.A", "schema main", "T and t"):
        assert name in refusal["error"]


def test_tables_and_policy_and_dry_run(
    source: Database, target: Database, encrypt: Encrypt, tmp_path: Path
) -> None:
    source.run("""CREATE TABLE a (k integer PRIMARY KEY, s text);
        CREATE TABLE b (a integer REFERENCES a, j jsonb);
        INSERT INTO a SELECT i, 's' || i FROM generate_series(1, 100) AS g(i)""")
    (tmp_path / "policy.toml").write_text('[a]\ns = { may_reveal = "equality" }\n')
    assert answers(encrypt("--json", "--table", "b", "--as-text", code=1))[0]["code"] == (
        "file.parent"
    )
    assert answers(encrypt("--json", "--table", "none", code=1))[0]["code"] == "table.missing"
    done = answers(encrypt("--json", "--dry-run", "--table", "a"))[0]
    assert [(e["table"], e["rows"]) for e in done["estimates"]] == [("a", 100)]
    assert target.run("SELECT count(*) FROM pg_tables WHERE tablename = 'a'") == [[0]]
    encrypt("--table", "a", "--policy", "policy.toml")
    with opened(target) as con:
        (row,) = con.execute("DESCRIBE a").fetchall()[:1]
        assert row[0] == "k"
        assert con.execute("SELECT k FROM a WHERE s = 's7'").fetchall() == [(7,)]
    stored = target.run("SELECT attname FROM pg_attribute WHERE attrelid = 'a'::regclass")
    assert ["k"] in stored
    assert ["s"] not in stored


def test_a_schema_of_its_own_in_the_same_database(source: Database, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (a integer);\nINSERT INTO t VALUES (1), (2)")
    words = ("encrypt", source.url, "--to", source.url, "--language", "duckdb")
    refusal = answers(run(*words, "--json", folder=tmp_path, code=1))[0]
    assert refusal["code"] == "source.same"
    run(*words, "--into", "safe", folder=tmp_path)
    with opened(source) as con:
        assert con.execute("SELECT sum(a) FROM safe.t").fetchone() == (3,)
    again = answers(run(*words, "--into", "safe", "--resume", "--json", folder=tmp_path))[0]
    assert again["tables"] == {}


def test_a_run_goes_on_where_another_was_killed(
    source: Database, target: Database, encrypt: Encrypt, tmp_path: Path
) -> None:
    """No table twice, and none half."""
    source.run(";\n".join(
        f"CREATE TABLE t{n} (a integer PRIMARY KEY, b text);\n"
        f"INSERT INTO t{n} SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 8000) g(i)"
        for n in range(8)
    ))  # fmt: skip
    command = [
        sys.executable, "-m", "louver.trusted.apps.cli", "encrypt", source.url, "--to", target.url,
        "--language", "duckdb",
    ]  # fmt: skip
    environment = os.environ | {
        "LOUVER_KEYS": key_file(), "LOUVER_STATE_DIR": str(shared.state(tmp_path / "state")),
    }  # fmt: skip
    process = subprocess.Popen(command, env=environment, cwd=tmp_path)
    end = time.monotonic() + _PATIENCE_S
    there = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    while target.run(there) < [[3]]:
        assert time.monotonic() < end
        assert process.poll() is None, "it was ready before it was killed"
    process.send_signal(signal.SIGKILL)
    process.wait(_PATIENCE_S)
    while target.run("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")[
        0
    ] != [1]:
        assert time.monotonic() < end
        time.sleep(0.05)
    ((complete,),) = target.run(there)
    assert 3 <= complete < 8
    for (name,) in target.run("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"):
        assert target.run(f"SELECT count(*) FROM {name}") == [[8000]]
    refusal = answers(encrypt("--json", code=1))[0]
    assert refusal["code"] == "table.exists"
    done = answers(encrypt("--json", "--resume"))[0]
    assert len(done["tables"]) == 8 - complete
    with opened(target) as con:
        for number in range(8):
            count = con.execute(f"SELECT count(*), count(DISTINCT b) FROM t{number}").fetchone()
            assert count == (8000, 8000)


def test_a_table_that_changed_meanwhile_is_not_taken_as_done(
    source: Database, encrypt: Encrypt
) -> None:
    source.run("CREATE TABLE t (a integer);\nINSERT INTO t VALUES (1)")
    encrypt()
    source.run("INSERT INTO t VALUES (2)")
    refusal = answers(encrypt("--json", "--resume", code=1))[0]
    assert refusal["code"] == "source.count"
    source.run("DELETE FROM t WHERE a = 2;\nALTER TABLE t ADD COLUMN b integer")
    assert answers(encrypt("--json", "--resume", code=1))[0]["code"] == "file.object"


def test_wrong_input(source: Database, target: Database, encrypt: Encrypt, tmp_path: Path) -> None:
    def code(*words: str, exit_code: int = 1) -> str:
        return str(
            json.loads(run(*words, "--json", folder=tmp_path, code=exit_code).stdout)["code"]
        )

    opened(target).close()
    assert code("encrypt", "mysql://h/d", "--to", target.url) == "url.scheme"
    nowhere = source.url.replace(source.name, "nowhere")
    assert code("encrypt", nowhere, "--to", target.url) == "server.denied"
    assert code("encrypt", "plain.duckdb", "--into", "s", exit_code=2) == "usage"
    assert code("export", exit_code=2) == "usage"
    assert code("export", "f.duckdb", "--to", target.url, exit_code=2) == "usage"
    assert code("-u", target.url, "export", "--to", "mysql://h/d") == "url.scheme"
    source.run("CREATE TABLE t (a integer)")
    encrypt()
    assert code("-u", target.url, "export", "--to", target.url) == "source.same"
    # A table of that name is there: nothing of the export stays.
    assert code("-u", target.url, "export", "--to", source.url) == "server.exists"
    wrong = ("encrypt", target.url, "--to", source.url, "--language", "duckdb")
    assert code(*wrong) == "file.database"
    assert source.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [[1]]


def test_an_export_refuses_types_all_at_once(
    target: Database, back: Database, tmp_path: Path
) -> None:
    with opened(target) as con:
        con.execute(
            "CREATE TABLE t (l INTEGER[] ENC, s STRUCT(a INT) ENC, h HUGEINT ENC, v TEXT ENC)"
        )
        con.execute("INSERT INTO t VALUES ([1, NULL], {a: 1}, 170141183460469231731687, 'x')")
    words = ("-u", target.url, "export", "--to", back.url)
    refusal = answers(run(*words, "--json", folder=tmp_path, code=1))[0]
    assert refusal["code"] == "source.types"
    assert "t.l (INTEGER[])" in refusal["error"]
    assert "t.s (STRUCT" in refusal["error"]
    run(*words, "--as-text", folder=tmp_path)
    assert back.texts("t") == ['("[1, NULL]","{\'a\': 1}",170141183460469231731687,x)']
