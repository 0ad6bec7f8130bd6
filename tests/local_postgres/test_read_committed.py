"""READ COMMITTED: what the statements of a transaction see of others' work, beside plaintext."""

from __future__ import annotations

import threading
import time
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


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE t SET n = n + 1 WHERE id = 1",
        "DELETE FROM t WHERE id = 1 AND n >= 10",
        "INSERT INTO t VALUES (1, 1, 'b') ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
        "SELECT n FROM t WHERE id = 1 FOR UPDATE",
        "UPDATE t SET n = n + 1 WHERE n < 25",
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        ["UPDATE t SET n = 0 WHERE id = 3"],
        ["INSERT INTO t VALUES (7, 70, 'g'), (8, 80, 'h')", ALL, "DELETE FROM t WHERE id = 7"],
        ["SELECT s FROM t WHERE id = 2 FOR UPDATE", "UPDATE t SET s = s || 'x' WHERE id = 2"],
        ["DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (3, 33, 'z') RETURNING *"],
    ],
)
def test_a_later_change_waits_and_goes_on(
    twins: tuple[PostgresTwin, PostgresTwin], change: str, before: list[str]
) -> None:
    """What a transaction has changed it changes again, before the change that was outrun."""
    first, second = twins
    same(first, "CREATE TABLE u(id integer ENC)", "INSERT INTO t VALUES (0, -9, ''), (99, 999, '')")
    for twin in twins:  # each has its numbers for rows, and what is opened is open
        same(twin, "UPDATE t SET n = n + 1 WHERE n < 15", "UPDATE t SET n = n - 1 WHERE n < 15")
        same(twin, ALL)
    same(second, "BEGIN", *before, "INSERT INTO u VALUES (1)")
    same(first, "UPDATE t SET n = n + 4 WHERE id = 1", "INSERT INTO t VALUES (6, 5, 'new')")
    same(second, change, ALL, "UPDATE t SET n = n + 1 WHERE id = 6", ALL, "COMMIT", ALL)
    same(first, ALL, "SELECT * FROM u")


def test_what_cannot_be_repeated_has_lost(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    """What the transaction changed before ends otherwise now: it is its user's to run again."""
    first, second = twins
    second.louver.execute("BEGIN")
    second.louver.execute("UPDATE t SET n = n + 1 WHERE id = 3")
    engine = second.louver._session.context.engine
    first.louver.execute("UPDATE t SET n = 11 WHERE id = 1")
    own = engine._journal.steps
    statement, reply = own[-1]
    own[-1] = statement, ("UPDATE 5", *reply[1:]) if reply else ("UPDATE 5", [], [])
    with pytest.raises(errors.Error) as caught:
        second.louver.execute("UPDATE t SET n = n + 1 WHERE id = 1")
    assert caught.value.sqlstate == "40001"
    with pytest.raises(errors.Error) as caught:
        second.louver.execute(ALL)
    assert caught.value.sqlstate == "25P02"
    second.louver.execute("ROLLBACK")
    rows = second.louver.execute("SELECT id, n FROM t ORDER BY id").fetchall()
    assert rows == [(1, 11), (2, 20), (3, 30)]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_other_levels_have_lost(twins: tuple[PostgresTwin, PostgresTwin], level: str) -> None:
    first, second = twins
    same(second, f"BEGIN ISOLATION LEVEL {level}", "UPDATE t SET n = 0 WHERE id = 3")
    same(first, "UPDATE t SET n = 11 WHERE id = 1")
    same(second, "UPDATE t SET n = n + 1 WHERE id = 1", "ROLLBACK", ALL)


def test_many_clients_move_between_rows(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    """Transactions of several changes in ever the same order lose nothing and never fail."""
    first, _ = twins
    first.louver.execute("UPDATE t SET n = -1000 WHERE id = 1")
    first.louver.execute("UPDATE t SET n = 1060 WHERE id = 2")
    first.louver.execute("UPDATE t SET n = 30 WHERE id IN (1, 2)")
    raised, here = list[errors.Error](), threading.Barrier(4)

    def move(number: int) -> None:
        keys = str(shared.key_file())
        try:
            with louver.connect(first.url, keys=keys, language="postgres") as connection:
                connection.execute("UPDATE t SET s = 'here' WHERE id = 3")
                here.wait()
                for _ in range(8):
                    connection.execute("BEGIN")
                    ((held,),) = connection.execute(KEY, [1]).fetchall()
                    amount = held % 3 + number
                    connection.execute("UPDATE t SET n = n - $1 WHERE id = 1", [amount])
                    connection.execute("UPDATE t SET n = n + $1 WHERE id = 2", [amount])
                    connection.execute("UPDATE t SET s = 'moved' WHERE id = 3")
                    connection.execute("COMMIT")
        except errors.Error as error:
            raised.append(error)

    threads = [threading.Thread(target=move, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []
    assert first.on_louver("SELECT sum(n) FROM t").rows == [(90,)]


@pytest.mark.parametrize(
    "upsert",
    [
        "INSERT INTO t VALUES (5, 0, '') ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
        "INSERT INTO t VALUES (5, 0, ''), (6, 0, '') ON CONFLICT DO NOTHING RETURNING id",
        "INSERT INTO t SELECT 5, 0, '' ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
    ],
)
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_a_key_that_is_not_seen_yet(
    twins: tuple[PostgresTwin, PostgresTwin], upsert: str, level: str
) -> None:
    """Another one has written it since: no duplicate, but a race."""
    first, second = twins
    same(second, "UPDATE t SET n = n WHERE id = 3", ALL)
    same(second, f"BEGIN ISOLATION LEVEL {level}", ALL, "UPDATE t SET n = 31 WHERE id = 3")
    same(first, "INSERT INTO t VALUES (5, 50, 'e')")
    same(second, upsert, ALL, "COMMIT", ALL)


@pytest.mark.parametrize("insert", [
    "INSERT INTO t VALUES (NULL, 1, 'z') ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (1, 1, 'z') ON CONFLICT (id) DO UPDATE SET id = 2",
])  # fmt: skip
def test_what_rows_at_hand_break_is_no_race(
    twins: tuple[PostgresTwin, PostgresTwin], insert: str
) -> None:
    first, _ = twins
    same(first, "BEGIN", "INSERT INTO t VALUES (7, 7, 'g')")
    begun = time.monotonic()
    same(first, insert, "ROLLBACK")
    assert time.monotonic() - begun < 10  # it is not tried again and again


@pytest.mark.parametrize("read", [
    "WITH x AS (SELECT n FROM t) SELECT count(*) FROM x", "TABLE t", "VALUES (1)", "(SELECT 1)",
])  # fmt: skip
def test_what_reads_keeps_no_state(twins: tuple[PostgresTwin, PostgresTwin], read: str) -> None:
    """Whatever a query begins with, the next one sees what others have committed since."""
    first, second = twins
    same(second, "BEGIN", read)
    same(first, "UPDATE t SET n = 77 WHERE id = 1")
    same(second, ALL, read, ALL, "COMMIT")
