"""READ COMMITTED: what the statements of a transaction see of others' work, beside plaintext."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver import errors
from tests import shared
from tests.local_postgres.twin import PostgresTwin, difference

ALL = "SELECT * FROM t ORDER BY id"
KEY = "SELECT n FROM t WHERE id = $1"


@pytest.fixture
def twins() -> Iterator[tuple[PostgresTwin, PostgresTwin]]:
    """Two clients of one database, each beside plaintext."""
    first = PostgresTwin()
    first.both("CREATE TABLE t(id integer ENC PRIMARY KEY, n bigint ENC, s text)")
    first.both("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")
    second = PostgresTwin(beside=first)
    yield first, second
    second.close()
    first.close()


def same(twin: PostgresTwin, *statements: str) -> None:
    """Statements on both."""
    for sql in statements:
        plain, own = twin.both(sql)
        assert not difference(plain, own, ordered=True), (sql, plain, own)


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("read", [ALL, "SELECT sum(n), count(*) FROM t WHERE n > 10"])
def test_a_statement_sees_what_was_committed(
    twins: tuple[PostgresTwin, PostgresTwin], level: str, read: str
) -> None:
    first, second = twins
    same(first, f"BEGIN ISOLATION LEVEL {level}")
    for number in range(4, 8):
        same(second, f"INSERT INTO t VALUES ({number}, {number}, 'x')")
        same(first, read, read, "SHOW transaction_isolation")
        same(second, f"UPDATE t SET n = n + {number} WHERE id = 1", "DELETE FROM t WHERE id = 2")
        same(first, read)
    same(first, "COMMIT", read)


def test_a_look_up_that_is_known_sees_it(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    first, second = twins
    for number in range(3):  # the text is known from the second time on
        assert not difference(*first.both(KEY, [1])), number
    same(first, "BEGIN")
    for number in range(5):
        same(second, f"UPDATE t SET n = {number} WHERE id = 1")
        assert not difference(*first.both(KEY, [1])), number
    same(first, "ROLLBACK")


def test_definitions_of_others_are_seen(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    first, second = twins
    same(first, "BEGIN", ALL)
    same(first, "COMMIT")
    same(first, "BEGIN")
    second.both("ALTER TABLE t ADD COLUMN more integer ENC DEFAULT 5")
    same(first, ALL, "SELECT more FROM t WHERE id = 1", "UPDATE t SET more = 6 WHERE id = 1", ALL)
    same(first, "COMMIT")
    same(second, ALL)


def test_a_change_sees_it_too(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    first, second = twins
    same(first, "BEGIN", ALL)
    same(second, "UPDATE t SET n = n + 1 WHERE id = 1", "INSERT INTO t VALUES (9, 90, 'i')")
    same(first, "UPDATE t SET n = n * 2 WHERE n > 10", ALL, "COMMIT")
    same(second, ALL)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE t SET n = n + 1 WHERE id = 1",
        "DELETE FROM t WHERE id = 1 AND n >= 10",
        "INSERT INTO t VALUES (1, 1, 'b') ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
        "SELECT n FROM t WHERE id = 1 FOR UPDATE",
        "UPDATE t SET n = n + 1 WHERE id IN (SELECT id FROM t WHERE n < 15)",
        "MERGE INTO t USING (VALUES (1)) AS v(i) ON t.id = v.i WHEN MATCHED THEN UPDATE SET n = 0",
    ],
)
@pytest.mark.parametrize("before", [[], [ALL], ["SELECT 1"]])
def test_a_change_waits_and_goes_on(
    twins: tuple[PostgresTwin, PostgresTwin], change: str, before: list[str]
) -> None:
    """One holds the row, the other waits for it, and then changes what the first one has left."""
    first, second = twins
    same(first, "BEGIN", "UPDATE t SET n = n + 4 WHERE id = 1")
    same(second, "BEGIN", *before)
    outcomes = dict[str, Any]()
    waiting = [
        threading.Thread(target=lambda: outcomes.update(plain=second.on_plain(change))),
        threading.Thread(target=lambda: outcomes.update(own=second.on_louver(change))),
    ]
    for thread in waiting:
        thread.start()
        thread.join(0.3)
    same(first, "COMMIT")
    for thread in waiting:
        thread.join(20)
    assert not difference(outcomes["plain"], outcomes["own"]), outcomes
    same(second, ALL, "COMMIT", ALL)


def test_many_clients_count(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    """Transactions that read, and then change one row, lose nothing and need no second try."""
    first, _ = twins
    raised = list[errors.Error]()

    def count() -> None:
        keys = str(shared.key_file())
        try:
            with louver.connect(first.url, keys=keys, language="postgres") as connection:
                for _ in range(10):
                    connection.execute("BEGIN")
                    connection.execute(KEY, [2]).fetchall()
                    connection.execute("UPDATE t SET n = n + 1 WHERE id = $1", [2])
                    connection.execute("COMMIT")
        except errors.Error as error:
            raised.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []
    assert first.on_louver(KEY, [2]).rows == [(60,)]


def test_what_a_transaction_changed_stays_with_it(
    twins: tuple[PostgresTwin, PostgresTwin],
) -> None:
    first, second = twins
    same(first, "BEGIN", ALL, "INSERT INTO t VALUES (5, 50, 'e')", ALL, "SAVEPOINT a")
    same(first, "DELETE FROM t WHERE id = 1", ALL, "ROLLBACK TO a", ALL)
    same(second, ALL)
    same(first, "ROLLBACK", ALL)
    same(first, "BEGIN", "SAVEPOINT a", ALL, "INSERT INTO t VALUES (6, 60, 'f')", "RELEASE a")
    same(first, "COMMIT")
    same(second, ALL)


def test_sequences_and_temporary_tables(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    first, second = twins
    same(first, "CREATE SEQUENCE s", "CREATE TEMP TABLE u(a integer)")
    same(first, "BEGIN", ALL, "SELECT nextval('s')", ALL, "SELECT nextval('s')", "COMMIT")
    same(first, "BEGIN", "INSERT INTO u VALUES (1)", ALL, "SELECT * FROM u", "ROLLBACK")
    same(first, "SELECT * FROM u", "SELECT nextval('s')")
    same(first, "BEGIN", "CREATE TEMP TABLE v(a integer)", ALL, "INSERT INTO v VALUES (3)")
    same(second, "UPDATE t SET n = 11 WHERE id = 1")
    same(first, "SELECT * FROM v", "COMMIT", "SELECT * FROM v", ALL)
