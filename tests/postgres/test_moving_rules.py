"""Databases that are brought over: rules that stay, rules that are named, targets, one state."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import louver
from louver.trusted.executor import server_source
from tests.client.harness import answers, key_file, run
from tests.postgres.moving import Database, Encrypt, opened


def test_foreign_keys_in_a_circle_and_to_the_table_itself(
    source: Database, target: Database, encrypt: Encrypt
) -> None:
    source.run("""CREATE TABLE a (k integer PRIMARY KEY, b integer, up integer REFERENCES a);
        CREATE TABLE b (k integer PRIMARY KEY, a integer REFERENCES a);
        ALTER TABLE a ADD CONSTRAINT back FOREIGN KEY (b) REFERENCES b;
        INSERT INTO a VALUES (1, NULL, NULL), (2, NULL, 1);
        INSERT INTO b VALUES (1, 2)""")
    notices = " ".join(answers(encrypt("--json"))[0]["notices"])
    assert "a.back" in notices
    assert "b_a_fkey" not in notices
    with opened(target) as con:
        for wrong in ("a VALUES (3, 7, 9)", "b VALUES (2, 9)"):
            with pytest.raises(louver.IntegrityError):
                con.execute(f"INSERT INTO {wrong}")
        con.execute("INSERT INTO a VALUES (3, 7, 1)")


def test_partitions_children_and_domains(
    source: Database, target: Database, encrypt: Encrypt
) -> None:
    source.run("""CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
        CREATE TABLE p (k integer, d positive NOT NULL) PARTITION BY RANGE (k);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
        CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
        CREATE TABLE parent (a integer);
        CREATE TABLE child (b integer) INHERITS (parent);
        CREATE VIEW all_of_it AS SELECT a FROM parent;
        INSERT INTO p VALUES (1, 1), (11, 2);
        INSERT INTO parent VALUES (1);
        INSERT INTO child VALUES (2, 3)""")
    done = answers(encrypt("--json"))[0]
    assert done["tables"] == {"p": 2, "parent": 1, "child": 1}
    notices = " ".join(done["notices"])
    assert "p.d" in notices
    # Of a parent that has its children's rows there, nothing that reads it is brought along.
    assert "inheritance (each table has its own rows): parent" in notices
    assert "view: all_of_it" in notices
    with opened(target) as con:
        assert con.execute("SELECT * FROM p ORDER BY k").fetchall() == [(1, 1), (11, 2)]
        assert con.execute("SELECT * FROM child").fetchall() == [(2, 3)]


def test_sequences_go_on(source: Database, target: Database, encrypt: Encrypt) -> None:
    source.run("""CREATE SEQUENCE fresh START 5;
        CREATE SEQUENCE down INCREMENT -2 MINVALUE -9 MAXVALUE -1 START -1;
        CREATE SEQUENCE used MAXVALUE 2;
        CREATE SEQUENCE again MAXVALUE 2 CYCLE;
        SELECT nextval('down');
        SELECT nextval('used'), nextval('again') FROM generate_series(1, 2)""")
    assert "used" in " ".join(answers(encrypt("--json"))[0]["notices"])
    with opened(target) as con:
        drawn = con.execute("SELECT nextval('fresh'), nextval('down'), nextval('again')")
        assert drawn.fetchone() == (5, -3, 1)


def test_texts_of_other_types_have_no_keys(
    source: Database, target: Database, encrypt: Encrypt
) -> None:
    """Numbers that are equal may be different texts: a unique key would not be one any more."""
    source.run("CREATE TABLE t (n numeric PRIMARY KEY);\nINSERT INTO t VALUES (1.50)")
    assert "t_pkey" in " ".join(answers(encrypt("--json", "--as-text"))[0]["notices"])
    with opened(target) as con:
        assert con.execute("SELECT n FROM t").fetchall() == [("1.50",)]


def test_all_tables_are_of_one_state(
    source: Database, target: Database, encrypt: Encrypt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other clients write meanwhile is in no table."""
    source.run("""CREATE TABLE a (k integer);
        CREATE TABLE b (k integer);
        INSERT INTO a VALUES (1);
        INSERT INTO b VALUES (1)""")
    census = server_source._census

    def interrupted(*given: object) -> object:
        sizes = census(*given)  # type: ignore[arg-type]
        other = threading.Thread(
            target=source.run, args=("INSERT INTO a VALUES (2);\nDELETE FROM b",)
        )
        other.start()
        other.join()
        return sizes

    monkeypatch.setattr(server_source, "_census", interrupted)
    assert answers(encrypt("--json"))[0]["tables"] == {"a": 1, "b": 1}
    with opened(target) as con:
        assert con.execute("SELECT a.k, b.k FROM a, b").fetchall() == [(1, 1)]


@pytest.mark.parametrize("scheme", ["duckdb", "lake"])
def test_other_targets(scheme: str, source: Database, tmp_path: Path) -> None:
    source.run("""CREATE TABLE t (k integer PRIMARY KEY, s text, i interval, d date);
        INSERT INTO t SELECT i, 's' || i, i * interval '1 day', DATE '2020-01-01' + i
        FROM generate_series(1, 500) AS g(i);
        CREATE VIEW v AS SELECT s FROM t WHERE k = 7""")
    url = f"{scheme}:///{tmp_path}/target"
    run("encrypt", source.url, "--to", url, folder=tmp_path)
    with louver.connect(url, keys=key_file()) as con:
        assert con.execute("SELECT count(*), sum(k) FROM t").fetchone() == (500, 125250)
        assert con.execute("SELECT s FROM v").fetchall() == [("s7",)]


def test_a_row_that_is_lost_is_noticed(
    source: Database, target: Database, encrypt: Encrypt, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.run("CREATE TABLE t (k integer);\nINSERT INTO t VALUES (1), (2)")
    cast = server_source._cast
    monkeypatch.setattr(server_source, "_cast", lambda *given: cast(*given).slice(1))
    assert answers(encrypt("--json", code=1))[0]["code"] == "source.count"
    assert target.run("SELECT count(*) FROM pg_tables WHERE tablename = 't'") == [[0]]


def test_long_rows_are_fetched_few_at_a_time(
    source: Database, target: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 MB in rows of 64 kB: no batch is above twice what is meant."""
    source.run("""CREATE TABLE t (k integer, s text);
        INSERT INTO t SELECT i, repeat(md5(i::text), 2048) FROM generate_series(1, 512) AS g(i)""")
    from louver.untrusted.engines.postgres import open_url

    engine = open_url(source.url, read_only=True)
    engine.begin()
    sizes = [batch.nbytes for batch in server_source._batches(engine, "SELECT k, s FROM t")]
    engine.close()
    assert sum(sizes) > 32 << 20
    assert max(sizes) <= 2 * server_source._FETCHED_BYTES


def test_what_an_export_leaves_is_named(target: Database, back: Database, tmp_path: Path) -> None:
    with opened(target) as con:
        con.execute("""CREATE TABLE t (k INTEGER PRIMARY KEY, s TEXT ENC CHECK (s LIKE 'a%'),
            g INTEGER GENERATED ALWAYS AS (k + 1), CHECK (k < 10))""")
        con.execute("CREATE MACRO plus(x) AS x + 1")
        con.execute("CREATE VIEW few AS SELECT s FROM t WHERE k = 1")
        con.execute("CREATE VIEW up AS SELECT upper(s) AS u FROM t")
        con.execute("CREATE VIEW others AS SELECT s FROM t ANTI JOIN (FROM t) AS u ON t.k = u.g")
        con.execute("CREATE INDEX by_rest ON t ((k % 10))")
        con.execute(
            "CREATE SCHEMA s; CREATE TABLE s.u (k INTEGER UNIQUE, a INTEGER REFERENCES s.u (k))"
        )
        con.execute("INSERT INTO t (k, s) VALUES (1, 'ab'); INSERT INTO s.u VALUES (1, NULL)")
    done = answers(run("-u", target.url, "export", "--to", back.url, "--json", folder=tmp_path))[0]
    assert done["tables"] == {"t": 1, "s.u": 1}
    notices = " ".join(done["notices"])
    for name in ("macro: plus", "view: up, others", "t.g", "constraint: t CHECK", "by_rest"):
        assert name in notices, name
    assert back.run("SELECT s FROM few") == [["ab"]]
    from louver._rust.postgres import ServerError

    for wrong in ("t VALUES (1, 'x')", "t VALUES (10, 'x')", "s.u VALUES (2, 9)"):
        with pytest.raises(ServerError):
            back.run(f"INSERT INTO {wrong}")


def test_nothing_goes_beside_ciphertext(target: Database, back: Database, tmp_path: Path) -> None:
    """A database of Louver's gets no plaintext by an export, however its address is spelled."""
    with opened(target) as con, opened(back) as other:
        con.execute("CREATE TABLE t (k INTEGER ENC CHECK (k <> 77665544))")
        other.execute("CREATE TABLE u (k INTEGER ENC)")
    for url in (back.url, target.url.replace("&port", "/&port", 1)):
        refusal = answers(
            run("-u", target.url, "export", "--to", url, "--json", folder=tmp_path, code=1)
        )[0]
        assert refusal["code"] == "file.database"
    assert back.run("SELECT count(*) FROM pg_tables WHERE tablename = 't'") == [[0]]


@pytest.mark.parametrize("protection", ["", "ENC USING onion MAY REVEAL access"])
def test_a_table_that_is_protected_otherwise_is_not_taken_as_done(
    source: Database, target: Database, encrypt: Encrypt, protection: str
) -> None:
    source.run("CREATE TABLE t (a integer);\nINSERT INTO t VALUES (1)")
    with opened(target) as con:
        con.execute(f"CREATE TABLE t (a INTEGER {protection}); INSERT INTO t VALUES (1)")
    assert answers(encrypt("--json", "--resume", code=1))[0]["code"] == "file.object"
