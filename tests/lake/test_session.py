"""A lake through SQL: what a user does, what the server can see, what the ledger says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import louver
from tests.inside import context_of
from tests.lake.tables import known_key

CANARY, NUMBER = "canary-8f3a", 7_731_946_201


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    known_key(tmp_path / "k.louverkey")
    return tmp_path


@pytest.fixture
def con(folder: Path) -> Iterator[Any]:
    connection = opened(folder)
    yield connection
    connection.close()


def opened(folder: Path, **options: Any) -> Any:
    return louver.connect(f"lake:///{folder}/warehouse", keys=folder / "k.louverkey", **options)


def filled(con: Any, files: int = 10) -> None:
    """A table of ten rows a file, in order of n."""
    con.execute("CREATE TABLE t (n INTEGER, name VARCHAR, price DECIMAL(10,2))")
    con.execute("SET lake_rows_per_file = 10")
    con.execute(f"INSERT INTO t SELECT i, 'n' || i, i / 4 FROM range({10 * files}) r(i)")


def test_what_lies_there_holds_no_plaintext(folder: Path, con: Any) -> None:
    con.execute(f'CREATE TABLE "t-{CANARY}" ("c-{CANARY}" VARCHAR, number BIGINT)')
    con.execute(f"INSERT INTO \"t-{CANARY}\" VALUES ('v-{CANARY}', {NUMBER})")
    con.execute(f'SELECT * FROM "t-{CANARY}" WHERE number = {NUMBER}').fetchall()
    con.execute(f'UPDATE "t-{CANARY}" SET number = number + 1 WHERE "c-{CANARY}" LIKE \'v-%\'')
    con.execute(f'ALTER TABLE "t-{CANARY}" ADD COLUMN "d-{CANARY}" INTEGER')
    con.close()
    files = [path for path in (folder / "warehouse").rglob("*") if path.is_file()]
    assert len(files) > 10
    needles = [CANARY.encode(), str(NUMBER).encode(), NUMBER.to_bytes(8, "little")]
    needles += [NUMBER.to_bytes(8, "big"), b"canary", (NUMBER ^ 1 << 63).to_bytes(8, "little")]
    for path in files:
        data = path.read_bytes()
        assert not [needle for needle in needles if needle in data], path


def test_files_are_skipped_and_the_ledger_says_what_was_shown(con: Any) -> None:
    filled(con)
    con.execute("SELECT sum(price) FROM t WHERE n BETWEEN 31 AND 38").fetchall()
    (fetch,) = con.lake.fetched()
    assert (fetch.files_kept, fetch.files_total) == (1, 10)
    facts = con.leakage().arrow().to_pylist()
    tokens = [fact for fact in facts if fact["kind"] == "eds.token"]
    assert len(tokens) == 1
    assert tokens[0]["columns"] == ["n"]
    length = len(con.leakage())
    con.execute("SELECT sum(price) FROM t WHERE n BETWEEN 31 AND 38").fetchall()
    assert len(con.leakage()) == length
    con.execute("SELECT sum(price) FROM t WHERE n BETWEEN 31 AND 39").fetchall()
    assert len(con.leakage()) == length + 1
    share = con.lake.opened()["t", "n"]
    assert 0.06 < share < 0.13


def test_explain_tells_the_price_first_and_the_files_afterwards(con: Any) -> None:
    filled(con)
    before = len(con.leakage())
    sql = "SELECT name FROM t WHERE n < 12 AND NOT name >= 'n5'"
    explanation = con.sql(sql).explain(leakage=True)
    assert "c1 IN $1 AND c2 IN $2" in explanation.replace("\n         ", " ")
    assert explanation.count("meet token") == 2
    assert len(con.leakage()) == before
    analyzed = con.execute(f"EXPLAIN ANALYZE {sql}").fetchall()[0][1]
    assert "2 of 10 kept, 0 of them in vain" in analyzed
    assert "fetched" in analyzed
    assert con.sql(sql).explain(leakage=True).count("known already") >= 2


def test_ceilings_keep_columns_out_of_the_index(con: Any) -> None:
    con.execute("CREATE TABLE t (n INTEGER ENC MAY REVEAL size, m INTEGER)")
    con.execute("SET lake_rows_per_file = 1; INSERT INTO t VALUES (1, 1), (2, 2)")
    assert con.execute("SELECT m FROM t WHERE n = 1").fetchall() == [(1,)]
    assert con.lake.fetched()[0].files_kept == 2
    # To choose files by m would show which rows of n a query reads.
    assert con.execute("SELECT n FROM t WHERE m = 1").fetchall() == [(1,)]
    assert con.lake.fetched()[0].files_kept == 2
    assert con.execute("SELECT count(*) FROM t WHERE m = 1").fetchall() == [(1,)]
    assert con.lake.fetched()[0].files_kept == 1
    levels = {fact["level"] for fact in con.leakage().arrow().to_pylist() if "n" in fact["columns"]}
    assert levels == {"size"}
    with pytest.raises(louver.Error, match="USING"):
        con.execute("CREATE TABLE u (n INTEGER ENC USING sdb)")


def test_changes_transactions_and_time_travel(folder: Path, con: Any) -> None:
    filled(con, 3)
    con.execute("BEGIN")
    con.execute("DELETE FROM t WHERE n < 5")
    con.execute("INSERT INTO t VALUES (100, 'x', 1)")
    con.execute("UPDATE t SET name = 'y' WHERE n = 100")
    con.execute("DELETE FROM t WHERE n = 29")
    assert con.execute("SELECT count(*), max(n) FROM t").fetchall() == [(25, 100)]
    other = opened(folder)
    assert other.execute("SELECT count(*), max(n) FROM t").fetchall() == [(30, 29)]
    con.execute("ROLLBACK")
    assert con.execute("SELECT count(*), max(n) FROM t").fetchall() == [(30, 29)]
    con.execute("BEGIN; DELETE FROM t WHERE n < 5; INSERT INTO t VALUES (100, 'x', 1); COMMIT")
    assert con.execute("SELECT count(*), max(n) FROM t").fetchall() == [(26, 100)]
    assert other.execute("SELECT count(*), max(n) FROM t").fetchall() == [(26, 100)]
    first = con.lake.history("t").to_pylist()[0]["snapshot_id"]
    con.execute(f"SET lake_snapshot = {first}")
    assert con.execute("SELECT count(*), max(n) FROM t WHERE n >= 0").fetchall() == [(30, 29)]
    with pytest.raises(louver.Error) as raised:
        con.execute("DELETE FROM t")
    assert raised.value.code == "lake.past"
    con.execute("RESET lake_snapshot")
    con.execute("TRUNCATE t")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    other.close()


def test_a_transaction_changes_one_table(con: Any) -> None:
    con.execute("CREATE TABLE a (n INTEGER); CREATE TABLE b (n INTEGER)")
    con.execute("BEGIN; INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)")
    with pytest.raises(louver.Error) as raised:
        con.execute("COMMIT")
    assert raised.value.code == "lake.transaction"
    assert con.execute("SELECT count(*) FROM a").fetchall() == [(0,)]


def test_tables_are_made_changed_and_dropped(folder: Path, con: Any) -> None:
    filled(con, 2)
    con.execute("CREATE TABLE u AS SELECT n, price * 2 AS p FROM t WHERE n < 3")
    assert con.execute("FROM u ORDER BY n").fetchall()[2][0] == 2
    con.execute("ALTER TABLE u ADD COLUMN later VARCHAR")
    files = con.lake.history("u").num_rows
    con.execute("INSERT INTO u VALUES (9, 1, 'new')")
    assert con.execute("SELECT n FROM u WHERE later = 'new'").fetchall() == [(9,)]
    assert con.execute("SELECT count(*) FROM u WHERE later IS NULL").fetchall() == [(3,)]
    con.execute("ALTER TABLE u ADD COLUMN given INTEGER DEFAULT 5")
    assert con.execute("SELECT DISTINCT given FROM u").fetchall() == [(5,)]
    con.execute("ALTER TABLE u RENAME COLUMN p TO q; ALTER TABLE u DROP COLUMN later")
    con.execute("ALTER TABLE u RENAME TO w; ALTER TABLE w ALTER COLUMN n TYPE BIGINT")
    assert con.execute("SELECT n FROM w WHERE n > 1 ORDER BY n").fetchall() == [(2,), (9,)]
    con.execute("CREATE VIEW v AS SELECT n FROM w WHERE n < 9")
    con.execute("CREATE TABLE keyed (k INTEGER PRIMARY KEY, x INTEGER CHECK (x > 0))")
    con.execute("INSERT INTO keyed VALUES (1, 1)")
    for bad in ("INSERT INTO keyed VALUES (1, 2)", "INSERT INTO keyed VALUES (2, 0)"):
        with pytest.raises(louver.IntegrityError):
            con.execute(bad)
    con.execute("INSERT INTO keyed VALUES (1, 7) ON CONFLICT DO UPDATE SET x = 7")
    con.close()
    again = opened(folder)
    assert again.execute("SELECT count(*) FROM v").fetchall() == [(3,)]
    assert again.execute("FROM keyed").fetchall() == [(1, 7)]
    assert files == 1
    again.execute("DROP VIEW v; DROP TABLE w; DROP TABLE t")
    left = [p for p in (folder / "warehouse/louver").glob("t*") if list(p.rglob("*.parquet"))]
    assert len(left) == 1
    again.close()


def test_keys_that_were_read_choose_the_files_of_another_table(con: Any) -> None:
    filled(con)
    open_ = "ENC MAY REVEAL equality"
    con.execute(f"CREATE TABLE s (k INTEGER {open_}, w VARCHAR {open_})")
    con.execute("INSERT INTO s SELECT i * 10, 'w' || i FROM range(10) r(i)")
    sql = "SELECT t.name FROM t JOIN s ON t.n = s.k WHERE s.w IN ('w2', 'w7') ORDER BY ALL"
    assert con.execute(sql).fetchall() == [("n20",), ("n70",)]
    counts = {fetch.table: fetch.files_kept for fetch in con.lake.fetched()}
    assert counts["t"] == 2
    sql = "SELECT count(*) FROM t WHERE n IN (SELECT k FROM s WHERE w = 'w3')"
    assert con.execute(sql).fetchall() == [(1,)]
    assert {fetch.table: fetch.files_kept for fetch in con.lake.fetched()}["t"] == 1
    # Where equality may not show, one range holds all keys.
    con.execute("CREATE TABLE u (k INTEGER, w VARCHAR); INSERT INTO u FROM s")
    sql = "SELECT count(*) FROM t JOIN u ON t.n = u.k WHERE u.w IN ('w2', 'w7')"
    assert con.execute(sql).fetchall() == [(2,)]
    assert {fetch.table: fetch.files_kept for fetch in con.lake.fetched()}["t"] == 6
    sql = "SELECT count(*) FROM t LEFT JOIN s ON t.n = s.k AND s.w = 'w3'"
    assert con.execute(sql).fetchall() == [(100,)]


def test_a_lake_joins_with_another_connection(folder: Path, con: Any) -> None:
    filled(con)
    con.close()
    main = louver.connect(f"duckdb:///{folder}/d.duckdb", keys=folder / "k.louverkey")
    main.execute("CREATE TABLE s (k INTEGER ENC, w VARCHAR ENC)")
    main.execute("INSERT INTO s VALUES (11, 'a'), (95, 'b')")
    main.execute(f"ATTACH 'lake:///{folder}/warehouse' AS lake")
    sql = "SELECT s.w, x.name FROM s JOIN lake.t AS x ON x.n = s.k WHERE s.w = 'b'"
    assert main.execute(sql).fetchall() == [("b", "n95")]
    assert "x" not in main.sql(sql).columns
    explanation = main.sql(sql).explain(leakage=True)
    assert "READ" in explanation
    assert "lake.t" in explanation
    main.execute("CREATE TABLE copy AS SELECT n FROM lake.t WHERE n < 2")
    assert main.execute("SELECT count(*) FROM copy").fetchall() == [(2,)]
    facts = context_of(main).attached["lake"].ledger.facts()
    assert any(fact.kind == "eds.token" for fact in facts)
    assert not any(fact.kind == "eds.token" for fact in context_of(main).ledger.facts())
    main.execute("DETACH lake")
    with pytest.raises(louver.Error):
        main.execute("FROM lake.t")
    main.close()


def test_settings_of_lakes(folder: Path, con: Any) -> None:
    filled(con)
    con.execute("SET lake_pruning = off")
    before = len(con.leakage())
    assert con.execute("SELECT n FROM t WHERE n = 3").fetchall() == [(3,)]
    assert con.lake.fetched()[0].files_kept == 10
    assert all(fact["kind"] != "eds.token" for fact in con.leakage().arrow().to_pylist()[before:])
    con.execute("RESET lake_pruning; SET lake_plan_only = on")
    assert con.execute("SELECT n FROM t WHERE n = 3").fetchall() == []
    con.execute("RESET lake_plan_only")
    (files,) = con.lake.files("SELECT n FROM t WHERE n = 3")
    assert len(files.paths) == 1
    con.execute("SET lake_index = off; CREATE TABLE bare (n INTEGER)")
    con.execute("SET lake_rows_per_file = 1; INSERT INTO bare VALUES (1), (2)")
    assert con.execute("SELECT n FROM bare WHERE n = 2").fetchall() == [(2,)]
    for bad in (
        "SET lake_filter = 'round 16384'", "SET lake_filter = 'basic 1000'",
        "SET lake_filter = 'register-blocked 16384'", "SET lake_encryption = 'aes'",
        "SET lake_nulls = 'perhaps'", "SET lake_rows_per_file = 0",
        "SET lake_snapshot = 'yesterday'", "SET lake_pruning = perhaps",
    ):  # fmt: skip
        with pytest.raises(louver.ProgrammingError):
            con.execute(bad)
    database = louver.connect(f"duckdb:///{folder}/d.duckdb", keys=folder / "k.louverkey")
    with pytest.raises(louver.Error) as raised:
        database.execute("SET lake_pruning = off")
    assert raised.value.code == "lake.only"
    with pytest.raises(louver.Error):
        _ = database.lake
    database.close()


def test_every_type_comes_back(con: Any) -> None:
    # Enums need a type of their own name first; Louver has no GEOMETRY.
    left = "small_enum, medium_enum, large_enum, geometry"
    sql = f"SELECT * EXCLUDE ({left}) FROM test_all_types()"
    plain = duckdb.connect()
    table = plain.execute(sql).to_arrow_table()
    con.execute("SET lake_rows_per_file = 1")
    con.execute(f"CREATE TABLE a AS {sql}")
    assert con.execute("SELECT count(*) FROM a").fetchall() == [(table.num_rows,)]
    for name in table.column_names:
        expected = plain.execute(f'SELECT "{name}"::VARCHAR FROM ({sql})').fetchall()
        assert sorted(map(repr, con.execute(f'SELECT "{name}"::VARCHAR FROM a').fetchall())) == (
            sorted(map(repr, expected))
        ), name


def test_keys_hold_among_writers(folder: Path, con: Any) -> None:
    con.execute("CREATE TABLE k (n INTEGER PRIMARY KEY, x INTEGER); INSERT INTO k VALUES (1, 1)")
    other = opened(folder)
    con.execute("BEGIN; INSERT INTO k VALUES (3, 3)")
    other.execute("INSERT INTO k VALUES (3, 33)")
    with pytest.raises(louver.Error) as raised:
        con.execute("COMMIT")
    assert raised.value.code == "lake.conflict"
    for writer in (con, other):
        with pytest.raises(louver.IntegrityError):
            writer.execute("INSERT INTO k VALUES (3, 0)")
    assert con.execute("FROM k ORDER BY n").fetchall() == [(1, 1), (3, 33)]
    con.execute("DELETE FROM k WHERE n = 3; INSERT INTO k VALUES (3, 4)")
    other.execute("DELETE FROM k WHERE n = 3; INSERT INTO k VALUES (3, 5), (4, 4)")
    with pytest.raises(louver.IntegrityError):
        con.execute("INSERT INTO k VALUES (4, 0)")
    assert con.execute("FROM k ORDER BY n").fetchall() == [(1, 1), (3, 5), (4, 4)]
    other.close()


def test_a_transaction_reads_one_snapshot(folder: Path, con: Any) -> None:
    filled(con, 1)
    other = opened(folder)
    con.execute("BEGIN")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(10,)]
    other.execute("DELETE FROM t WHERE n < 3")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(10,)]
    con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(7,)]
    with pytest.raises(louver.Error):
        con.execute("INSERT INTO t SELECT error('stop') FROM t")
    other.execute("DELETE FROM t")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    other.close()


def test_keys_show_nothing_of_columns_under_a_lower_ceiling(con: Any) -> None:
    filled(con, 3)
    con.execute("CREATE TABLE s (k INTEGER, sec INTEGER ENC MAY REVEAL size, w INTEGER)")
    con.execute("INSERT INTO s SELECT i, i, i FROM range(30) r(i)")
    sql = "SELECT t.name FROM t JOIN s ON t.n = s.k WHERE s.sec = 3"
    assert con.execute(sql).fetchall() == [("n3",)]
    assert {fetch.table: fetch.files_kept for fetch in con.lake.fetched()}["t"] == 3
    assert not [fact for fact in con.leakage().arrow().to_pylist() if fact["kind"] == "eds.token"]
    con.execute("CREATE TABLE o (k INTEGER, w INTEGER); INSERT INTO o SELECT k, w FROM s")
    sql = "SELECT t.name FROM t JOIN o ON t.n = o.k WHERE o.w = 3"
    explanation = con.sql(sql).explain(leakage=True)
    assert "(keys read of o)" in explanation
    assert "may hold n of rows of o" in explanation
    assert con.execute(sql).fetchall() == [("n3",)]
    assert {fetch.table: fetch.files_kept for fetch in con.lake.fetched()}["t"] == 1


def test_a_past_state_locks_nothing_up(con: Any) -> None:
    con.execute("CREATE TABLE p (n INTEGER); CREATE TABLE e (n INTEGER); CREATE VIEW v AS FROM e")
    con.execute("INSERT INTO p VALUES (1); INSERT INTO e VALUES (2); INSERT INTO e VALUES (3)")
    first = con.lake.history("e").to_pylist()[0]["snapshot_id"]
    con.execute(f"SET lake_snapshot = {first}")
    assert con.execute("FROM v").fetchall() == [(2,)]
    con.execute("BEGIN; SELECT * FROM e; COMMIT")
    with pytest.raises(louver.Error) as raised:
        con.execute("FROM p")
    assert raised.value.code == "lake.snapshot"
    con.execute("RESET lake_snapshot; INSERT INTO e VALUES (4)")
    assert con.execute("SELECT count(*) FROM v").fetchall() == [(3,)]


def test_lists_of_one_and_small_unsigned_types(con: Any) -> None:
    con.execute("CREATE TABLE u (a UTINYINT, b USMALLINT, c UINTEGER, s VARCHAR)")
    con.execute("SET lake_rows_per_file = 1; INSERT INTO u VALUES (1, 1, 1, 'x'), (255, 9, 9, 'y')")
    for where, count in (
        ("s IN ('x')", 1), ("NOT (s NOT IN ('x'))", 1), ("255 >= a", 2), ("a > 300", 0),
        ("b < 9", 1), ("c >= -1", 2), ("a = 255 AND c IN (9)", 1), ("b BETWEEN 2 AND 70000", 1),
    ):  # fmt: skip
        assert con.execute(f"SELECT count(*) FROM u WHERE {where}").fetchall() == [(count,)], where
