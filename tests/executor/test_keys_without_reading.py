"""Keys that the server's unique index decides: what is read, what is said, what is given up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import louver
from louver import errors
from louver.trusted.vault.catalog import Table
from tests.inside import context_of
from tests.twin import Twin, outcome_of


def table_of(connection: Any, name: str = "t") -> Table:
    twin = isinstance(connection, Twin)
    context = connection.session.context if twin else context_of(connection)
    table: Table | None = context.catalog.table("main", name)
    assert table is not None
    return table


@pytest.fixture
def con(tmp_path: Path, key_file: Path) -> Any:
    connection = louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file)
    yield connection
    connection.close()


def rows_read(connection: Any) -> int:
    return int(context_of(connection).engine.traffic.rows_in)


@pytest.mark.parametrize("columns", ["PRIMARY KEY (a)", "UNIQUE (b, a)", "UNIQUE (p)"])
def test_an_insert_reads_as_much_of_a_full_table_as_of_an_empty_one(con: Any, columns: str) -> None:
    con.execute(f"CREATE TABLE t (a BIGINT ENC, b TEXT ENC, p BIGINT, {columns})")
    counts = []
    for number in (1, 2, 3):  # the first one also learns what the others repeat
        before = rows_read(con)
        con.execute("INSERT INTO t VALUES (?, 'x', ?)", [-number, -number])
        con.executemany(
            "INSERT INTO t VALUES (?, 'y', ?)", [[-number * 10 - i] * 2 for i in (1, 2)]
        )
        counts.append(rows_read(con) - before)
        if number == 2:
            con.execute("INSERT INTO t SELECT range, 'z', range FROM range(3000)")
    assert counts[1] == counts[2] <= counts[0]
    with pytest.raises(errors.IntegrityError, match="Duplicate key"):
        con.execute("INSERT INTO t VALUES (7, 'z', 7)")


CASES = {
    "a INT {} PRIMARY KEY, b TEXT {}": ("(1, 'x')", "(1, 'y')"),
    "a INT {}, b TEXT {}, UNIQUE (b, a)": ("(1, 'x')", "(1, 'x')"),
    "a INT {} UNIQUE, b TEXT {} PRIMARY KEY": ("(1, 'x')", "(1, 'x')"),
    'a DOUBLE {} UNIQUE, "odd ""name" TEXT {} UNIQUE': ("('nan', 'x')", "(-1, 'x')"),
    "a DECIMAL(30, 2) {} UNIQUE, b BLOB {}": ("(1.5, 'x')", "(1.50, 'y')"),
    "a TIMESTAMPTZ {} UNIQUE, b UUID {}": ("('2020-01-01 00:00:00+00', NULL)",) * 2,
}


@pytest.mark.parametrize("enc", ["ENC", ""])
@pytest.mark.parametrize("columns", CASES)
def test_the_message_is_that_of_duckdb(twin: Twin, columns: str, enc: str) -> None:
    first, second = CASES[columns]
    twin.fill(f"CREATE TABLE t ({columns.replace('{}', enc)})")
    twin.run(f"INSERT INTO t VALUES {first}")
    assert table_of(twin).tags
    for sql in (
        f"INSERT INTO t VALUES {second}",
        f"INSERT INTO t SELECT * FROM (VALUES {second}) v",
        f"INSERT OR IGNORE INTO t VALUES {second}",
    ):
        expected, actual = outcome_of(twin.plain, sql), outcome_of(twin.louver, sql)
        assert str(actual.error).startswith(str(expected.error))
    twin.run("DELETE FROM t")
    twin.run(f"INSERT INTO t VALUES {second}")
    twin.run("SELECT * FROM t")


def test_rows_of_one_transaction_are_told_as_duckdb_tells_them(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (a INT ENC PRIMARY KEY, b INT ENC)", "INSERT INTO t VALUES (1, 1)")
    for number in (1, 2):
        twin.fill("BEGIN", "INSERT INTO t VALUES (2, 2)")
        sql = f"INSERT INTO t VALUES ({number}, 3)"
        expected, actual = outcome_of(twin.plain, sql), outcome_of(twin.louver, sql)
        assert isinstance(expected.error, duckdb.ConstraintException)
        assert str(actual.error).startswith(str(expected.error))
        twin.fill("ROLLBACK")
    twin.fill("BEGIN")
    for value in range(3):
        twin.fill(f"UPDATE t SET b = {value} WHERE a = 1", "DELETE FROM t WHERE a = 1")
        twin.fill(f"INSERT INTO t VALUES (1, {value})")
    twin.fill("COMMIT")
    twin.run("SELECT * FROM t")


def test_keys_of_a_load_are_told_with_their_values(con: Any) -> None:
    con.execute("CREATE TABLE t (a BIGINT ENC PRIMARY KEY, b TEXT ENC)")
    con.load("t", pa.table({"a": list(range(100_000)), "b": ["x"] * 100_000}))
    for numbers in ([200_000, 77_000], [200_000, 200_001, 200_000]):
        with pytest.raises(errors.IntegrityError) as raised:
            con.load("t", pa.table({"a": numbers, "b": ["y"] * len(numbers)}))
        assert ("77000" if len(numbers) == 2 else "200000") in str(raised.value)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (100_000,)


def test_a_null_is_no_key_and_is_not_seen(con: Any) -> None:
    con.execute("CREATE TABLE t (a INT ENC, b INT ENC, UNIQUE (a, b))")
    con.execute("INSERT INTO t VALUES (NULL, 1), (NULL, 1), (1, NULL), (1, 2)")
    con.execute("INSERT INTO t VALUES (NULL, 1), (1, NULL)")
    (stored,) = table_of(con).tags
    context = context_of(con)
    count = f'SELECT count(DISTINCT "{stored}") FROM "main"."t"'
    assert context.engine.query(louver.wire.messages.Statement(count)).column(0)[0].as_py() == 6


def test_a_key_that_two_clients_write_at_once_is_refused_once(
    tmp_path: Path, key_file: Path
) -> None:
    url = f"duckdb:///{tmp_path}/x.duckdb"
    clients = [louver.connect(url, keys=key_file) for _ in range(2)]
    clients[0].execute("CREATE TABLE t (a INT ENC PRIMARY KEY)")
    for number in range(10):
        results: list[str] = []

        def write(client: Any, number: int = number, results: list[str] = results) -> None:
            try:
                client.execute("INSERT INTO t VALUES (?)", [number])
                results.append("stored")
            except errors.IntegrityError as error:
                results.append(str(error))

        threads = [threading.Thread(target=write, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results.count("stored") == 1
        assert any("uplicate key" in text and str(number) in text for text in results)
    for client in clients:
        assert client.execute("SELECT count(*) FROM t").fetchone() == (10,)
        client.close()


@pytest.mark.parametrize(
    "columns",
    ["a INT ENC MAY REVEAL size PRIMARY KEY, b INT", "a INT ENC PRIMARY KEY, b INT ENC MAY REVEAL "
     "size", "a BIT ENC UNIQUE, b INT", "a TEXT COLLATE NOCASE UNIQUE, b INT"],
)  # fmt: skip
def test_there_are_no_tags_below_access_and_none_without_codes(con: Any, columns: str) -> None:
    con.execute(f"CREATE TABLE t ({columns})")
    assert not table_of(con).tags


def test_tags_go_with_a_ceiling(con: Any) -> None:
    con.execute("CREATE TABLE t (a INT ENC UNIQUE, b INT ENC, p INT UNIQUE)")
    con.execute("INSERT INTO t VALUES (1, 1, 1)")
    stored = list(table_of(con).tags)
    assert len(stored) == 2
    con.execute("ALTER TABLE t ALTER COLUMN b MAY REVEAL size")
    assert not table_of(con).tags
    listed = ", ".join(stored)
    statement = louver.wire.messages.Statement(f"SELECT {listed} FROM t")
    shown = context_of(con).engine.query(statement)
    assert shown.to_pylist() == [dict.fromkeys(stored)]
    require_keys(con)


@pytest.mark.parametrize("sql", ["p SET ENC", "a DROP ENC"])
def test_keys_have_other_tags_under_other_protection(con: Any, sql: str) -> None:
    con.execute("CREATE TABLE t (a INT ENC UNIQUE, b INT ENC, p INT UNIQUE)")
    con.execute("INSERT INTO t VALUES (1, 1, 1)")
    stored, context = list(table_of(con).tags), context_of(con)
    rows = context.engine.query(louver.wire.messages.Statement("SELECT * FROM t")).to_pylist()
    con.execute(f"ALTER TABLE t ALTER COLUMN {sql}")
    assert len(table_of(con).tags) == 2
    assert not set(table_of(con).tags) & set(stored)
    now = context.engine.query(louver.wire.messages.Statement("SELECT * FROM t")).to_pylist()
    assert not {now[0][tag] for tag in table_of(con).tags} & {rows[0][tag] for tag in stored}
    assert not set(now[0]) & set(stored) or {now[0].get(tag) for tag in stored} == {None}
    require_keys(con)


def require_keys(con: Any) -> None:
    """Rows with the first row's keys are refused, another one is not."""
    for row in ("(1, 2, 2)", "(2, 2, 1)"):
        with pytest.raises(errors.IntegrityError, match="Duplicate key"):
            con.execute(f"INSERT INTO t VALUES {row}")
    con.execute("INSERT INTO t VALUES (2, 2, 2)")


def test_a_table_that_is_changed_keeps_its_keys(twin: Twin) -> None:
    twin.fill(
        "CREATE TABLE t (a INT ENC PRIMARY KEY, b INT ENC, p INT, q INT ENC)",
        "INSERT INTO t VALUES (1, 1, 1, 1)",
        "ALTER TABLE t RENAME TO s",
    )
    for sql in ("ALTER TABLE s ADD COLUMN z INT ENC", "ALTER TABLE s DROP COLUMN b"):
        outcome_of(twin.plain, sql)
        outcome_of(twin.louver, sql)
        assert table_of(twin, "s").tags
        sql = "INSERT INTO s (a) VALUES (1)"
        expected, actual = outcome_of(twin.plain, sql), outcome_of(twin.louver, sql)
        assert str(actual.error).startswith(str(expected.error))
    twin.reopen()
    assert str(outcome_of(twin.louver, sql).error).startswith(str(expected.error))


def test_the_ledger_says_what_tags_show(con: Any) -> None:
    con.execute("CREATE TABLE t (a INT ENC, b INT ENC, c INT ENC, p INT UNIQUE, UNIQUE (a, b))")
    con.execute("INSERT INTO t VALUES (1, 2, 3, 4)")
    facts = con.leakage().arrow().to_pylist()
    (row,) = [fact for fact in facts if fact["kind"] == "key.rest"]
    assert (row["columns"], row["level"]) == (["a", "b"], "access")
    assert "comes back" in row["reveals"]
