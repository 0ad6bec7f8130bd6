"""Ceiling `size`: a change does not show which rows it touched, or it is refused."""

from __future__ import annotations

from typing import Any

import pytest

import louver
from louver.trusted.vault import tile_forms
from louver.wire.messages import Statement
from tests.inside import context_of

ROWS = 40
CHANGES = 4
"""So often an updated row would have to come last by chance."""


def counted(con: Any) -> list[tuple[str, int]]:
    """The columns that decided how many rows came or went, and by how many conditions."""
    ledger = context_of(con).ledger
    facts = [fact for fact in ledger.facts() if fact.kind == "rows.counted"]
    return [(fact.columns[0], ledger.conditions(fact)) for fact in facts]


def order(con: Any) -> list[int]:
    """The values of the first column, in the order of the server's row numbers."""
    sql = "SELECT row_id FROM t ORDER BY row_id"
    numbers = context_of(con).engine.query(Statement(sql)).column(0).to_pylist()
    rows = context_of(con).storage.batches(context_of(con).catalog.table("main", "t"))
    ids = {row["louver_row_id"]: row["id"] for batch in rows for row in batch.to_pylist()}
    return [ids[number] for number in numbers]


@pytest.mark.parametrize(
    "extra",
    [
        "v INT ENC MAY REVEAL size UNIQUE",
        "v INT[] ENC MAY REVEAL size",
        "v INT ENC MAY REVEAL size",
    ],
)
def test_an_updated_row_does_not_come_last(open_connection: Any, extra: str) -> None:
    con = open_connection()
    con.execute(f"CREATE TABLE t (id INT ENC MAY REVEAL size, {extra})")
    listed = "[range]" if "[]" in extra else "range"
    con.execute(f"INSERT INTO t SELECT range, {listed} FROM range({ROWS})")
    change = "UPDATE t SET v = {} WHERE id = 7".format("[{}]" if "[]" in extra else "{}")
    if "[]" in extra:
        # A list has lengths, so who replaces one shows which row it was.
        with pytest.raises(louver.LeakageRefused):
            con.execute(change.format(1000))
        change = "UPDATE t SET id = 7 WHERE id = 7 OR v = [-1, {}]"
    places = []
    for number in range(CHANGES):
        con.execute(change.format(1000 + number))
        places.append(order(con).index(7))
    assert places != [ROWS - 1] * CHANGES
    assert places != [7] * CHANGES
    assert sorted(order(con)) == list(range(ROWS))
    assert context_of(con).ledger.level("t", "id") == "size"


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM t WHERE id = 7",
        "UPDATE t SET x = 'a longer one than this was before' WHERE id = 7",
        "UPDATE t SET p = 1 WHERE id = 7",
        "MERGE INTO t USING (SELECT 7 AS k) AS s ON t.id = s.k WHEN MATCHED THEN DELETE",
    ],
)
def test_what_lengths_and_plain_values_would_tell_is_refused(
    open_connection: Any, change: str
) -> None:
    con = open_connection()
    con.execute("CREATE TABLE t (id INT ENC MAY REVEAL size, x TEXT ENC MAY REVEAL size, p INT)")
    con.execute("INSERT INTO t SELECT range, repeat('x', 5 * range::INT), 0 FROM range(20)")
    with pytest.raises(louver.LeakageRefused) as caught:
        con.execute(change)
    assert caught.value.code == "leak.refused"
    assert con.execute("SELECT count(*), count(DISTINCT x) FROM t").fetchall() == [(20, 20)]
    assert context_of(con).ledger.level("t", "id") == "size"
    # What a plain column chooses is public, and what touches every row chooses none.
    con.execute("UPDATE t SET id = id + 1")
    con.execute("DELETE FROM t WHERE p = 0")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_rows_of_fixed_length_are_deleted_unseen(open_connection: Any) -> None:
    con = open_connection()
    con.execute("CREATE TABLE t (id INT ENC MAY REVEAL size, v DECIMAL(30,2) ENC MAY REVEAL size)")
    con.execute(f"INSERT INTO t SELECT range, range FROM range({ROWS})")
    con.execute("DELETE FROM t WHERE v = 7")
    assert counted(con) == [("v", 1)]
    assert sorted(order(con)) == [n for n in range(ROWS) if n != 7]
    assert order(con) != [n for n in range(ROWS) if n != 7]
    assert context_of(con).ledger.level("t", "id") == "size"


def test_lengths_of_copied_rows_would_tell_which_were_taken(open_connection: Any) -> None:
    con = open_connection()
    con.execute("CREATE TABLE t (id INT ENC MAY REVEAL size, x TEXT ENC MAY REVEAL size)")
    con.execute("INSERT INTO t SELECT range, repeat('x', 5 * range::INT) FROM range(20)")
    con.execute("CREATE TABLE texts (x TEXT ENC MAY REVEAL size)")
    con.execute("CREATE TABLE numbers (id INT ENC MAY REVEAL size)")
    with pytest.raises(louver.LeakageRefused) as caught:
        con.execute("INSERT INTO texts SELECT x FROM t WHERE id = 7")
    assert caught.value.code == "leak.refused"
    con.execute("INSERT INTO texts SELECT x FROM t")
    assert counted(con) == []
    con.execute("INSERT INTO numbers SELECT id FROM t WHERE id > 12")
    for number in range(10):
        con.execute(f"INSERT INTO numbers SELECT id FROM t WHERE id > {number + 50}")
    assert counted(con) == [("id", 11)]
    con.execute("CREATE TABLE made AS SELECT id FROM t WHERE id > 15")
    assert sorted(counted(con)) == [("id", 1), ("id", 11)]
    with pytest.raises(louver.LeakageRefused):
        con.execute("CREATE TABLE texts2 AS SELECT x FROM t WHERE id = 7")
    assert con.execute("SELECT count(*) FROM texts").fetchall() == [(20,)]
    assert con.execute("SELECT count(*) FROM numbers").fetchall() == [(7,)]
    assert context_of(con).ledger.level("t", "id") == "size"


def test_where_a_wide_sum_runs_depends_on_no_value(open_connection: Any) -> None:
    con = open_connection()
    plans = []
    for number in (1, 10**36):
        con.execute("CREATE OR REPLACE TABLE t (p INT, v DECIMAL(38,0) ENC WITH (sum = 'masked'),"
                    " h HUGEINT ENC WITH (sum = 'masked'),"
                    " d DECIMAL(20,2) ENC WITH (sum = 'masked'))")  # fmt: skip
        con.execute(f"INSERT INTO t VALUES (1, {number}, {number}, 1), (2, 3, 4, 5)")
        queries = [f"SELECT sum({column}) FROM t WHERE p > 0" for column in "vhd"]
        plans.append(["sum(" in con.sql(sql).remote_sql()[0] for sql in queries])
        assert [con.execute(sql).fetchall()[0][0] for sql in queries] == [number + 3, number + 4, 6]
    assert plans == [[False, False, True]] * 2


@pytest.mark.parametrize(
    "change",
    [
        "INSERT OR IGNORE INTO t VALUES {}",
        "INSERT OR REPLACE INTO t VALUES {}",
        "INSERT INTO t VALUES {} ON CONFLICT (v) DO UPDATE SET w = 1",
        "MERGE INTO t USING (VALUES {}) AS n(id, v, w) ON t.v = n.v"
        " WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.v, n.w)",
        "UPDATE t SET v = n.v FROM (VALUES {}) AS n(id, v, w) WHERE t.v = -n.id",
    ],
)
def test_rows_of_conflicts_come_in_no_order_of_keys(open_connection: Any, change: str) -> None:
    """DuckDB takes new rows in an order that follows the hashes of ENC keys."""
    orders = set()
    con = open_connection()
    for world in range(6):
        con.execute("DROP TABLE IF EXISTS t")
        con.execute("CREATE TABLE t (id INT, v BIGINT ENC UNIQUE, w BIGINT ENC)")
        if change.startswith("UPDATE"):
            listed = ", ".join(f"({n}, -{n}, 0)" for n in range(1, 9))
            con.execute(f"INSERT INTO t VALUES {listed}")
        rows = ", ".join(f"({n}, {7919 * n * (world + 1) % 10_007}, 0)" for n in range(1, 9))
        con.execute(change.format(rows))
        orders.add(tuple(order(con)))
    assert len(orders) == 1


@pytest.mark.parametrize(
    ("query", "sorted_by_length"),
    [
        ("SELECT DISTINCT a FROM t", True),
        ("SELECT a FROM t GROUP BY a", True),
        ("SELECT x.a FROM t AS x JOIN t AS y ON x.a = y.a", True),
        ("SELECT a FROM t", False),
        ("SELECT DISTINCT a FROM t ORDER BY a", False),
    ],
)
def test_joined_and_grouped_rows_come_in_no_order_of_hashes(
    open_connection: Any, query: str, sorted_by_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tile_forms, "ROWS", 1 << 40)  # no value's length shows in a tile
    con = open_connection()
    con.execute("CREATE TABLE t (a TEXT ENC); CREATE TABLE u (a TEXT ENC)")
    con.execute("INSERT INTO t SELECT i || repeat('x', i % 40) FROM range(5000) r(i)")
    con.execute(f"INSERT INTO u {query}")
    (stored,) = context_of(con).catalog.table("main", "u").column("a").stored.values()
    sql = f"SELECT octet_length({stored}) AS n FROM u ORDER BY row_id"
    lengths = context_of(con).engine.query(Statement(sql)).column(0).to_pylist()
    assert len(lengths) == 5000
    assert (lengths == sorted(lengths)) == sorted_by_length


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES ({}, 5), ({}, 9) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
        "INSERT OR REPLACE INTO t VALUES ({}, 5), ({}, 9)",
        "MERGE INTO t USING (VALUES ({}, 5), ({}, 9)) AS s(k, w) ON t.id = s.k"
        " WHEN MATCHED THEN UPDATE SET v = w WHEN NOT MATCHED THEN INSERT VALUES (k, w)",
    ],
)
def test_a_row_that_gets_what_it_had_goes_like_any_other(open_connection: Any, change: str) -> None:
    con = open_connection()
    con.execute("CREATE TABLE t (id INT ENC PRIMARY KEY, v INT ENC MAY REVEAL size)")
    con.execute("INSERT INTO t VALUES (1, 5), (2, 6)")
    seen = []
    for old in (1, 2, 77):
        # The first row has the value that it is given, the second another, the third is new.
        before = set(order_of_numbers(con))
        con.execute(change.format(old, old + 100))
        seen.append(before.isdisjoint(order_of_numbers(con)))
    assert seen == [True] * 3


def order_of_numbers(con: Any) -> list[int]:
    """The server's row numbers."""
    row_ids = context_of(con).engine.query(Statement("SELECT row_id FROM t")).column(0).to_pylist()
    return [int(number) for number in row_ids]
