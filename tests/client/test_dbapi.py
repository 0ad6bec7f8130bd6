"""PEP 249, point by point."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import louver
from tests.client.harness import connection


@pytest.fixture(scope="module")
def con() -> Iterator[louver.Connection]:
    with connection() as database:
        database.execute(
            "CREATE TABLE t (i INT ENC USING sdb, s TEXT ENC, d DECIMAL(9,2) ENC, b BLOB ENC,"
            " day DATE ENC, f DOUBLE)"
        )
        yield database


@pytest.fixture
def cursor(con: louver.Connection) -> louver.Cursor:
    con.execute("DELETE FROM t")
    cursor = con.cursor()
    cursor.execute(
        "INSERT INTO t VALUES (1, 'one', 1.50, 'a'::BLOB, '2013-01-01', 0.5),"
        " (2, 'two', -2.25, ''::BLOB, NULL, NULL), (NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    return cursor


def test_the_module() -> None:
    assert (louver.apilevel, louver.threadsafety, louver.paramstyle) == ("2.0", 1, "qmark")
    assert louver.Date(2013, 1, 2) == datetime.date(2013, 1, 2)
    assert louver.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert louver.Timestamp(2013, 1, 2, 3, 4, 5) == datetime.datetime(2013, 1, 2, 3, 4, 5)
    assert louver.DateFromTicks(0) == datetime.date.fromtimestamp(0)
    assert louver.TimeFromTicks(0) == datetime.datetime.fromtimestamp(0).time()
    assert louver.TimestampFromTicks(0) == datetime.datetime.fromtimestamp(0)
    assert louver.Binary(b"x") == b"x"


def test_exceptions_are_on_the_connection_too(con: louver.Connection) -> None:
    for name in ("Warning", "Error", "InterfaceError", "DatabaseError", "DataError",
                 "OperationalError", "IntegrityError", "InternalError", "ProgrammingError",
                 "NotSupportedError"):  # fmt: skip
        assert getattr(con, name) is getattr(louver, name)


def test_description(cursor: louver.Cursor) -> None:
    assert cursor.description is None
    assert cursor.rowcount == 3
    described = cursor.execute("SELECT i, s, d, b, day FROM t").description or []
    assert [column[0] for column in described] == ["i", "s", "d", "b", "day"]
    assert all(len(column) == 7 for column in described)
    kinds = [louver.NUMBER, louver.STRING, louver.NUMBER, louver.BINARY, louver.DATETIME]
    assert [column[1] for column in described] == kinds
    assert described[0][1] != louver.STRING
    assert louver.NUMBER == "DECIMAL(9,2)"
    assert louver.NUMBER != louver.STRING


def test_fetching(cursor: louver.Cursor) -> None:
    cursor.execute("SELECT i, d, day FROM t ORDER BY i")
    assert cursor.rowcount == 3
    assert cursor.rownumber == 0
    assert cursor.fetchone() == (1, Decimal("1.50"), datetime.date(2013, 1, 1))
    assert cursor.arraysize == 1
    assert cursor.fetchmany() == [(2, Decimal("-2.25"), None)]
    assert cursor.fetchmany(5) == [(None, None, None)]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    assert cursor.fetchmany(2) == []
    assert [row[0] for row in cursor.execute("SELECT i FROM t ORDER BY i")] == [1, 2, None]
    assert cursor.execute("SELECT i FROM t WHERE false").fetchall() == []


def test_many_rows_come_in_order(con: louver.Connection) -> None:
    cursor = con.execute("SELECT i FROM range(40000) r(i)")
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany(20_000)[-1] == (20_000,)
    assert [row[0] for row in cursor] == list(range(20_001, 40_000))
    assert con.execute("SELECT i FROM range(40000) r(i)").fetchall()[-1] == (39_999,)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT s FROM t WHERE i = ? AND s = ?", [2, "two"]),
        ("SELECT s FROM t WHERE i = $1 AND s = $2", (2, "two")),
        ("SELECT s FROM t WHERE s = $2 AND i = $1", (2, "two")),
        ("SELECT s FROM t WHERE i = :i AND s = :s", {"s": "two", "i": 2}),
        ("SELECT s FROM t WHERE i = $i AND s = $s", {"s": "two", "i": 2}),
    ],
)
def test_placeholders(cursor: louver.Cursor, sql: str, values: object) -> None:
    assert cursor.execute(sql, values).fetchall() == [("two",)]  # type: ignore[arg-type]


def test_too_few_values(cursor: louver.Cursor) -> None:
    with pytest.raises(louver.ProgrammingError) as raised:
        cursor.execute("SELECT s FROM t WHERE i = ? AND s = ?", [2])
    assert raised.value.code == "parameter.count"


@pytest.mark.parametrize(
    ("sql", "values", "excess"),
    [
        ("SELECT s FROM t WHERE i = 2", [7], "1"),
        ("SELECT s FROM t WHERE i = ?", [2, 7, 8], "2, 3"),
        ("SELECT s FROM t WHERE i = $1", (2, 7), "2"),
        ("SELECT s FROM t WHERE i = :i", {"i": 2, "other": 7}, "other"),
    ],
)
def test_a_value_that_no_placeholder_takes(
    con: louver.Connection, cursor: louver.Cursor, sql: str, values: Any, excess: str
) -> None:
    """Somebody forgot a placeholder, and has perhaps written a value into the text instead."""
    asks: tuple[Callable[..., object], ...] = (cursor.execute, con.sql)
    for ask in asks:
        with pytest.raises(louver.ProgrammingError, match=f"takes: {excess}") as raised:
            ask(sql, values)
        assert raised.value.code == "parameter.excess"
    with pytest.raises(louver.ProgrammingError, match="takes: 2"):
        cursor.executemany("INSERT INTO t (i) VALUES (?)", [(1,), (2, 3)])


def test_a_text_is_no_list_of_values(cursor: louver.Cursor) -> None:
    with pytest.raises(louver.ProgrammingError) as raised:
        cursor.execute("SELECT s FROM t WHERE s = ?", "x")
    assert raised.value.code == "parameter.kind"


def test_each_statement_of_a_text_takes_the_values_that_it_needs(cursor: louver.Cursor) -> None:
    text = "DELETE FROM t; INSERT INTO t (i) VALUES ($1); SELECT i + $1 + $2 FROM t"
    assert cursor.execute(text, [2, 3]).fetchall() == [(7,)]


def test_executemany_into_a_union(con: louver.Connection) -> None:
    con.execute("CREATE TABLE u (a UNION(i INTEGER, s VARCHAR) ENC)")
    con.executemany("INSERT INTO u VALUES (?)", [(7,), (1,), (None,)])
    con.executemany("INSERT INTO u VALUES (?)", [("x",)])
    assert con.execute("SELECT a.i, a.s FROM u ORDER BY ALL").fetchall() == [
        (1, None), (7, None), (None, "x"), (None, None)
    ]  # fmt: skip


def test_executemany(con: louver.Connection, cursor: louver.Cursor) -> None:
    cursor.executemany("INSERT INTO t (i, s) VALUES (?, ?)", [(n, f"n{n}") for n in range(10, 60)])
    assert cursor.rowcount == 50
    assert con.execute("SELECT count(*) FROM t WHERE i >= 10").fetchone() == (50,)
    cursor.executemany("DELETE FROM t WHERE i = ?", [(10,), (11,)])
    assert cursor.rowcount == 2
    with pytest.raises(louver.DataError):
        cursor.executemany("INSERT INTO t (i) VALUES (?)", [(100,), ("no number",)])
    assert con.execute("SELECT count(*) FROM t WHERE i = 100").fetchone() == (0,)


def test_transactions(con: louver.Connection, cursor: louver.Cursor) -> None:
    con.commit()
    con.rollback()
    con.begin()
    cursor.execute("UPDATE t SET s = 'changed' WHERE i = 1")
    assert cursor.rowcount == 1
    con.rollback()
    assert cursor.execute("SELECT s FROM t WHERE i = 1").fetchone() == ("one",)
    cursor.execute("BEGIN")
    cursor.execute("DELETE FROM t WHERE i = 1")
    con.commit()
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_with_commits_or_rolls_back() -> None:
    con = connection()
    with con:
        con.execute("CREATE TABLE u (a INT)")
    assert con.closed
    other = connection()

    def fail() -> None:
        with other:
            other.begin()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert other.closed


def test_without_rows_there_is_nothing_to_fetch(cursor: louver.Cursor) -> None:
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall, cursor.arrow):
        with pytest.raises(louver.InterfaceError) as raised:
            fetch()
        assert raised.value.code == "cursor.empty"


def test_closed_things_say_so() -> None:
    con = connection()
    cursor = con.execute("SELECT 1")
    relation = con.sql("SELECT 2")
    cursor.close()
    with pytest.raises(louver.InterfaceError) as raised:
        cursor.fetchone()
    assert raised.value.code == "cursor.closed"
    con.close()
    con.close()
    for act in (con.cursor, con.commit, con.rollback, con.leakage, relation.fetchall):
        with pytest.raises(louver.InterfaceError) as raised:
            act()
        assert raised.value.code == "connection.closed"


def test_arrow_and_frames(cursor: louver.Cursor) -> None:
    cursor.execute("SELECT i, s FROM t ORDER BY i")
    assert cursor.arrow().column_names == ["i", "s"]
    assert cursor.fetch_arrow_table().num_rows == 3
    assert list(cursor.df().columns) == ["i", "s"]
    assert cursor.pl().columns == ["i", "s"]


def test_interrupt(con: louver.Connection) -> None:
    def stop() -> None:
        while not done.wait(0.05):
            con.interrupt()

    done = threading.Event()
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises((louver.OperationalError, KeyboardInterrupt)):
            con.execute("SELECT sum(a.i * b.i) FROM range(1000000) a(i), range(1000000) b(i)")
    finally:
        done.set()
        thread.join()
    assert con.execute("SELECT 1").fetchone() == (1,)
