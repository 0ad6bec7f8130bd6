"""INSERT with a way out for conflicts reads the rows that have the keys of the new ones, and does
what plaintext DuckDB does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import louver
from louver import errors
from louver.trusted.executor.change import sending, upserting
from louver.wire.messages import Statement
from tests.generated import cases
from tests.inside import context_of
from tests.twin import Twin, outcome_of

TABLES = {
    "one": "CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC, c INT ENC DEFAULT 5)",
    "two": "CREATE TABLE t (a INT ENC UNIQUE, b TEXT ENC, c INT ENC DEFAULT 5 UNIQUE)",
    "both": "CREATE TABLE t (a INT ENC, b TEXT ENC, c INT ENC CHECK (c < 90), UNIQUE (b, a))",
    "primary": "CREATE TABLE t (a INT ENC, b TEXT ENC, c INT ENC, PRIMARY KEY (a, c), UNIQUE (b))",
    "plain": "CREATE TABLE t (a INT PRIMARY KEY, b TEXT ENC NOT NULL, c INT)",
    "many": "CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC UNIQUE, c INT ENC UNIQUE)",
}
TARGETS = {"one": "(a)", "two": "(c)", "both": "(a, b)", "primary": "(a, c)", "plain": "(a)",
           "many": "(b)"}  # fmt: skip
VERBS = (
    "INSERT INTO t",
    "INSERT OR REPLACE INTO t",
    "INSERT OR IGNORE INTO t",
    "INSERT INTO t AS x",
)
ACTIONS = (
    "ON CONFLICT DO NOTHING",
    "ON CONFLICT {target} DO NOTHING",
    "ON CONFLICT {target} DO UPDATE SET b = excluded.b",
    "ON CONFLICT {target} DO UPDATE SET b = b || '+', c = excluded.c + 20 WHERE excluded.a > 2",
    "ON CONFLICT {target} DO UPDATE SET a = excluded.a + 30",
    "ON CONFLICT DO UPDATE SET c = c + 1",
)


def filled(key_file: Path, table: str, profile: str, rows: int = 12) -> Twin:
    twin = Twin(":memory:", key_file, profile)
    twin.fill(TABLES[table])
    twin.fill(f"INSERT INTO t SELECT i, 'v' || i, i + 7 FROM range({rows}) r(i)")
    return twin


def statement_of(dice: Random, table: str) -> str:
    """An upsert of a few rows, of which some conflict."""
    verb, way = dice.choice(VERBS), dice.choice(ACTIONS).format(target=TARGETS[table])
    listed = dice.choice(["", "", " (a, b, c)", " (c, b, a)", " (a, b)", " (b)"])
    names = listed.strip(" ()").split(", ") if listed else ["a", "b", "c"]
    # Of new rows that conflict under several keys DuckDB keeps any (test_conflicts), and of those
    # with NULL in one of them now and then none.
    several = len(TABLES[table].split("UNIQUE")) + ("PRIMARY" in TABLES[table]) > 2
    least = several and ("NOTHING" in way or "IGNORE" in verb)

    def value(name: str) -> str:
        number = dice.choice([dice.randrange(14), dice.randrange(14), 40 + dice.randrange(40)])
        if dice.random() < 0.08 and not least:
            # Without a type it is a number, and then DuckDB compares all texts as numbers.
            return "NULL::VARCHAR" if name == "b" else "NULL"
        return f"'v{number}'" if name == "b" else str(number + 7 * (name == "c"))

    count = 1 if least else dice.choice([1, 1, 2, 3])
    rows = [", ".join(map(value, names)) for _ in range(count)]
    source = "VALUES " + ", ".join(f"({row})" for row in rows)
    if dice.random() < 0.3:
        source = f"SELECT * FROM ({source}) AS given"
    if dice.random() < 0.2:
        source = source.replace("'v", "lower('V", 1).replace("')", "'))", 1).replace("',", "'),", 1)
    way = "" if " OR " in verb else way
    returning = dice.choice(["", "", "RETURNING *", "RETURNING b, c AS more"])
    return " ".join(filter(None, [verb + listed, source, way, returning]))


@settings(
    max_examples=cases(20),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 1 << 40),
    table=st.sampled_from(list(TABLES)),
    profile=st.sampled_from(["sealed", "cryptdb"]),
)
def test_any_upsert(key_file: Path, seed: int, table: str, profile: str) -> None:
    dice, twin = Random(seed), filled(key_file, table, profile)
    try:
        for _ in range(8):
            sql = statement_of(dice, table)
            refused = outcome_of(twin.louver, f"EXPLAIN (LEAKAGE) {sql}").error
            if isinstance(refused, errors.LeakageRefused):
                continue
            # Which of two errors DuckDB meets first depends on where rows are kept.
            twin.either(sql, only_rows=True)
            twin.run("SELECT * FROM t")
    finally:
        twin.close()


@pytest.fixture
def con(tmp_path: Path, key_file: Path) -> Iterator[Any]:
    with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as connection:
        yield connection


STATEMENTS = (
    "INSERT INTO t VALUES (3, 'v3', 1), (?, 'new', 2) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (4, 'x', 1), (?, 'y', 2) ON CONFLICT (a) DO UPDATE SET c = t.c + 1",
    "INSERT OR REPLACE INTO t VALUES (5, 'v5', 1), (?, 'z', 2)",
    "INSERT OR IGNORE INTO t (b, a) SELECT 'q', x FROM (VALUES (6), (?)) AS v(x)",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_rows_read_do_not_grow_with_the_table(con: Any, sql: str) -> None:
    con.execute("CREATE TABLE t (a BIGINT ENC PRIMARY KEY, b TEXT ENC, c INT ENC)")
    counts = []
    for number in (1, 2):
        con.execute(
            "INSERT INTO t SELECT i, 'v' || i, 0 FROM range(?, ?) r(i)",
            [20 * (number - 1), 20 if number == 1 else 4000],
        )
        before = context_of(con).engine.traffic.rows_in
        con.execute(sql, [-number])
        counts.append(context_of(con).engine.traffic.rows_in - before)
    assert counts[1] <= counts[0] <= 4  # the second one asks for no version of the catalog


def test_a_large_batch_reads_the_rows_that_it_meets(con: Any) -> None:
    con.execute("CREATE TABLE t (a BIGINT ENC PRIMARY KEY, b TEXT ENC)")
    con.execute("INSERT INTO t SELECT i, 'v' || i FROM range(3000) r(i)")
    con.execute("CREATE TABLE s (a BIGINT ENC, b TEXT ENC)")
    con.execute("INSERT INTO s SELECT i, 'w' || i FROM range(2000, 5000) r(i)")
    before = context_of(con).engine.traffic.rows_in
    con.execute("INSERT INTO t SELECT * FROM s ON CONFLICT DO UPDATE SET b = excluded.b || '!'")
    assert context_of(con).engine.traffic.rows_in - before < 4100
    rows = con.execute("SELECT count(*), count(*) FILTER (b LIKE 'w%!') FROM t").fetchall()
    assert rows == [(5000, 1000)]


def test_values_are_not_sent(twin: Twin) -> None:
    twin.fill(TABLES["primary"], "INSERT INTO t VALUES (1, 'secret words', 4711)")
    sent = twin.sent()
    for sql in (
        "INSERT INTO t VALUES (1, 'other words', 4711) ON CONFLICT (a, c) DO NOTHING",
        "INSERT INTO t VALUES (2, 'secret words', 1) ON CONFLICT (b) DO UPDATE SET c = 4712",
    ):
        twin.run(sql)
    messages = [m for m in twin.tap.sent()[sent:] if isinstance(m, Statement)]
    assert any(" IN ($1" in message.sql for message in messages)
    for word in (b"words", b"4711", b"4712"):
        assert not any(word in repr(message).encode() for message in messages)


def test_the_ledger_says_which_rows_were_asked_for(con: Any) -> None:
    con.execute("CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC)")
    con.execute("INSERT INTO t VALUES (1, 'x')")
    con.execute("INSERT INTO t VALUES (1, 'y') ON CONFLICT DO NOTHING")
    facts = [row for row in con.leakage().arrow().to_pylist() if row["kind"] == "rows"]
    assert [(row["columns"], row["level"]) for row in facts] == [(["a", "b"], "access")]


def test_below_access_all_rows_are_read(twin: Twin) -> None:
    hidden = "ENC MAY REVEAL size"
    twin.fill(f"CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT {hidden}, c INT {hidden})")
    twin.fill("INSERT INTO t SELECT i, 'v', 1 FROM range(10) r(i)")
    before = twin.tap.traffic.rows_in
    twin.run("INSERT INTO t VALUES (3, 'w', 2), (11, 'w', 2) ON CONFLICT DO NOTHING")
    assert twin.tap.traffic.rows_in - before >= 10
    twin.run("SELECT * FROM t")


UPSERT = "INSERT INTO t VALUES (3, 'w', 2) ON CONFLICT (a) DO UPDATE SET b = 'changed'"


def lying(twin: Twin, monkeypatch: pytest.MonkeyPatch, lie: Any) -> None:
    """From now on the server answers look-ups by tags as ``lie`` has it."""
    real = twin.tap.query

    def answered(statement: Statement) -> Any:
        return real(lie(statement)) if " IN ($" in statement.sql else real(statement)

    monkeypatch.setattr(twin.tap, "query", answered)


def test_a_row_that_was_not_asked_for_is_refused(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = filled(key_file, "one", "sealed")
    lying(twin, monkeypatch, lambda s: replace(s, sql=s.sql + " OR true"))
    with pytest.raises(errors.VerificationError, match="not asked for"):
        twin.session.execute(UPSERT)
    monkeypatch.undo()
    twin.run("SELECT * FROM t")
    twin.close()


def test_the_servers_index_refuses_the_key_of_a_row_that_it_left_out(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = filled(key_file, "one", "sealed")
    lying(twin, monkeypatch, lambda s: replace(s, sql=s.sql + " LIMIT 0"))
    with pytest.raises(errors.IntegrityError, match='Duplicate key "a: 3"'):
        twin.session.execute(UPSERT)
    monkeypatch.undo()
    twin.run("SELECT * FROM t")
    twin.run(UPSERT)
    twin.close()


def test_upserts_of_a_transaction_see_its_rows(twin: Twin) -> None:
    twin.fill(TABLES["many"], "INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)")
    twin.fill("BEGIN", "INSERT INTO t VALUES (3, 'z', 3)", "UPDATE t SET b = 'q' WHERE a = 1")
    for sql in (
        "INSERT INTO t VALUES (3, 'k', 9) ON CONFLICT (a) DO UPDATE SET b = 'seen'",
        "INSERT INTO t VALUES (7, 'q', 8), (8, 'n', 10) ON CONFLICT DO NOTHING",
    ):
        twin.run(sql)
        twin.run("SELECT * FROM t")
    twin.fill("ROLLBACK")
    twin.run("INSERT INTO t VALUES (3, 'q', 3) ON CONFLICT DO NOTHING")
    twin.run("SELECT * FROM t")


def test_sequences_are_drawn_once(twin: Twin) -> None:
    twin.fill(
        "CREATE SEQUENCE s", TABLES["plain"], "INSERT INTO t VALUES (1, 'x', 1)",
        "INSERT INTO t VALUES (nextval('s'), 'new', 2) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (nextval('s'), 'new', 2) ON CONFLICT DO NOTHING",
        "INSERT OR REPLACE INTO t VALUES (nextval('s'), 'more', nextval('s'))",
    )  # fmt: skip
    twin.run("SELECT * FROM t")
    twin.run("SELECT nextval('s')")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1, 2) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES ('x', 'y', 1) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1, 'y', lower(9)) ON CONFLICT (a) DO NOTHING",
        "INSERT INTO t VALUES (1, 'y', 1) ON CONFLICT (b) DO NOTHING",
        "INSERT INTO t VALUES (1, 'y', 1), (1, 'z', 1) ON CONFLICT (a) DO UPDATE SET c = 1",
        "INSERT INTO t SELECT 1, 'y', missing ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1, 'y', 1) ON CONFLICT (a) DO UPDATE SET a = 9",
    ],
)
def test_errors_are_those_of_duckdb(twin: Twin, sql: str) -> None:
    twin.fill(TABLES["one"], "INSERT INTO t VALUES (1, 'x', 1), (9, 'q', 2)")
    twin.both(sql)
    twin.run("SELECT * FROM t")


def test_types_with_codes(twin: Twin) -> None:
    twin.fill(
        "CREATE TABLE t (d DATE ENC, u UUID ENC, n DECIMAL(9,2) ENC, m TEXT ENC, PRIMARY KEY (d, u)"
        ", UNIQUE (n, m))",
        "INSERT INTO t VALUES ('2020-01-01', '00000000-0000-0000-0000-000000000001', 1.5, 'x')",
        "INSERT INTO t VALUES ('2020-01-01', '00000000-0000-0000-0000-000000000001', 2, 'y')"
        " ON CONFLICT (d, u) DO UPDATE SET m = 'both'",
        "INSERT OR IGNORE INTO t VALUES ('2020-01-02', uuid(), 1.50, 'both')",
    )
    twin.run("SELECT * FROM t")


def test_literals_are_keys_without_the_local_engine(twin: Twin, monkeypatch: Any) -> None:
    evaluated: list[str] = []
    real = upserting._evaluated

    def noted(context: Any, item: Any, source: Any) -> Any:
        evaluated.append(item.words.plain)
        return real(context, item, source)

    monkeypatch.setattr(upserting, "_evaluated", noted)
    twin.fill(
        "CREATE TABLE t (a SMALLINT ENC, b TEXT ENC, c INT ENC, PRIMARY KEY (a, b), UNIQUE (c))",
        "INSERT INTO t VALUES (-1, 'it''s', 1), (2, 'a\\b', 2)",
    )
    # DuckDB now and then leaves out a row with NULL in one of two keys (ON CONFLICT DO NOTHING).
    known = [
        "INSERT INTO t VALUES (-1, 'it''s', 5) ON CONFLICT (a, b) DO UPDATE SET c = 6",
        "INSERT INTO t (b, a, c) VALUES ('a\\b', 2, 3), ('é', - 3, 4) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (4, 'x', NULL) ON CONFLICT (c) DO UPDATE SET b = 'y'",
        "INSERT OR IGNORE INTO t VALUES (NULL, 'x', 1)",
        "INSERT OR IGNORE INTO t VALUES (40000, 'x', 1)",
        "INSERT OR IGNORE INTO t VALUES (1, 'x')",
    ]
    for sql in known:
        twin.either(sql)
        twin.run("SELECT * FROM t")
    twin.either("INSERT OR IGNORE INTO t VALUES (?, ?, ?)", [2, "a\\b", 77])
    assert {sql for sql in evaluated if "40000" not in sql and "'x')" not in sql} == set()
    for sql in (
        "INSERT OR IGNORE INTO t VALUES ('02', 'a\\b', 78)",
        "INSERT OR IGNORE INTO t VALUES (2.0, 'a\\b', 78)",
        "INSERT OR IGNORE INTO t VALUES ((2), 'a\\b', 1e2)",
    ):
        evaluated.clear()
        twin.run(sql)
        twin.run("SELECT * FROM t")
        assert evaluated


def test_a_key_that_another_client_wrote_meanwhile_is_met(
    tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"duckdb:///{tmp_path}/x.duckdb"
    with (
        louver.connect(url, keys=key_file) as first,
        louver.connect(url, keys=key_file) as second,
    ):
        first.execute("CREATE TABLE t (a INT ENC PRIMARY KEY, b INT ENC)")
        real, raced = sending.sent, list[int]()

        def outrun(*passed: Any) -> Any:
            if not raced:
                raced.append(1)
                second.execute("INSERT INTO t VALUES (1, 10)")
            return real(*passed)

        monkeypatch.setattr(sending, "sent", outrun)
        for expression in ("b + 1", "b + abs(1)"):
            sql = f"INSERT INTO t VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = {expression}"
            first.execute(sql)
            assert first.execute("SELECT * FROM t").fetchall() == [(1, 11)]
            second.execute("DELETE FROM t")
            raced.clear()
