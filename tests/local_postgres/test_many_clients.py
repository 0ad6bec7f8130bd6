"""Several clients on one database: none has an error that plaintext would not have."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.local_postgres import crowd
from tests.local_postgres.twin import PostgresTwin, difference

_SERIAL = "INSERT INTO s (v) VALUES ($1) RETURNING id, lastval(), currval('s_id_seq')"
_numbers = itertools.count()
_AT_ONCE_S = 5.0
"""Within this time a statement that waits for no one has ended, however busy the machine is."""


@pytest.fixture
def twins() -> Iterator[tuple[PostgresTwin, PostgresTwin]]:
    """Two clients of one database, each beside plaintext."""
    first = PostgresTwin()
    first.both("CREATE TABLE s (id serial PRIMARY KEY, v int ENC)")
    first.both("CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY, v int ENC)")
    second = PostgresTwin(beside=first)
    yield first, second
    second.close()
    first.close()


def same(twin: PostgresTwin, *statements: str) -> None:
    """Statements on both."""
    for sql in statements:
        plain, own = twin.both(sql)
        assert not difference(plain, own, ordered=True), (sql, plain, own)


def drawn(twin: PostgresTwin, value: int = 0) -> int:
    """The number of a new row, which is the session's last one."""
    outcome = twin.on_louver(_SERIAL, [value])
    assert outcome.error is None, outcome.error
    assert outcome.rows is not None
    ((number, last, current),) = outcome.rows
    assert number == last == current
    return int(number)


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("layers", [0, 1])
def test_no_one_waits_for_numbers(
    twins: tuple[PostgresTwin, PostgresTwin], ends: str, layers: int
) -> None:
    first, second = twins
    numbers, count = list[int](), 0
    for rounds in range(4):
        first.louver.execute("BEGIN")
        for _ in range(layers):
            first.louver.execute("SAVEPOINT a")
        own = [drawn(first) for _ in range(6 * rounds + 1)]
        begun = time.monotonic()
        others = [drawn(second) for _ in range(2)]
        same(second, "INSERT INTO i (v) VALUES (1)")
        assert time.monotonic() - begun < _AT_ONCE_S
        own += [drawn(first) for _ in range(3)]
        for _ in range(layers):
            first.louver.execute("RELEASE a")
        first.louver.execute(ends)
        numbers += own + others
        count += len(others) + (len(own) if ends == "COMMIT" else 0)
    assert len(numbers) == len(set(numbers)), numbers
    assert first.on_louver("SELECT count(*), count(DISTINCT id) FROM s").rows == [(count, count)]


def test_a_version_follows_on_numbers(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    """What a transaction defines, and opens, after it has drawn."""
    first, second = twins
    insert = "INSERT INTO s (v) VALUES (1), (2), (3) RETURNING *"
    same(first, "BEGIN", insert, insert, "SELECT sum(v) FROM s WHERE v > 1", insert)
    same(first, "CREATE TABLE made (id serial, v int ENC)", "INSERT INTO made (v) VALUES (7)")
    same(first, insert, "SELECT * FROM made", "SELECT lastval(), currval('s_id_seq')", "COMMIT")
    same(first, insert, "SELECT * FROM made", "SELECT * FROM s ORDER BY id")
    first.louver.execute("BEGIN")
    own = drawn(first)
    others = [drawn(second) for _ in range(5)]
    for sql in ("CREATE TABLE later (id serial, v int ENC)", "INSERT INTO later (v) VALUES (7)"):
        assert first.on_louver(sql).error is None, sql
    assert drawn(first) not in (own, *others)
    first.louver.execute("COMMIT")
    assert second.on_louver("SELECT * FROM later").rows == [(1, 7)]


def test_what_is_set_is_set_at_once(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    """As in plaintext: `setval` is no part of the transaction, and not undone with it."""
    first, second = twins
    same(first, "CREATE SEQUENCE q", "BEGIN", "SELECT setval('q', 1000)", "SELECT nextval('q')")
    outcome: Any = second.on_louver("SELECT nextval('q')")
    assert outcome.error is None
    assert outcome.rows[0][0] > 1001
    first.louver.execute("ROLLBACK")
    assert first.on_louver("SELECT currval('q')").rows == [(1001,)]


def test_others_numbers_are_not_the_sessions_last_ones(
    twins: tuple[PostgresTwin, PostgresTwin],
) -> None:
    first, second = twins
    number = drawn(first)
    for _ in range(9):
        drawn(second)
    assert second.on_louver("INSERT INTO i (v) VALUES (1)").error is None
    look = "SELECT lastval(), currval('s_id_seq')"
    assert first.on_louver(look).rows == [(number, number)]
    first.louver.execute("BEGIN")
    assert first.on_louver(look).rows == [(number, number)]
    first.louver.execute("COMMIT")


@pytest.mark.parametrize(
    "before",
    [
        ["SAVEPOINT a", "UPDATE s SET v = 9 WHERE id = 2", "RELEASE a"],
        ["SAVEPOINT a", "SAVEPOINT b", "UPDATE s SET v = 9 WHERE id = 2", "RELEASE a"],
        ["UPDATE s SET v = 9 WHERE id = 2", "SAVEPOINT a"],
        ["SAVEPOINT a", "UPDATE s SET v = 9 WHERE id = 2", "SAVEPOINT b"],
        ["SAVEPOINT a", "UPDATE s SET v = 9 WHERE id = 3", "ROLLBACK TO a"],
        ["SAVEPOINT a", "SELECT 1 / 0", "ROLLBACK TO a", "UPDATE s SET v = 8 WHERE id = 2"],
        ["UPDATE s SET v = 9 WHERE id = 2", "SAVEPOINT a", "DELETE FROM s WHERE id = 3",
         "ROLLBACK TO a", "SAVEPOINT b", "UPDATE s SET v = v + 1 WHERE id = 2", "RELEASE b"],
        ["SAVEPOINT a", "SELECT v FROM s WHERE id = 3"],
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "after", [["COMMIT"], ["ROLLBACK TO a", "UPDATE s SET v = v + 1 WHERE id = 1", "COMMIT"]]
)
def test_savepoints_are_set_again(
    twins: tuple[PostgresTwin, PostgresTwin], before: list[str], after: list[str]
) -> None:
    """A change that lost a race runs again, and a savepoint returns to what it returned to."""
    first, second = twins
    look = "SELECT * FROM s ORDER BY id"
    same(second, "INSERT INTO s (v) VALUES (1), (2), (3)", look)
    same(first, "UPDATE s SET v = v WHERE id = 1", look)
    if "RELEASE a" in before and "ROLLBACK TO a" in after:
        before = [*before, "SAVEPOINT a"]
    same(first, "BEGIN", *before)
    same(second, "UPDATE s SET v = v + 10 WHERE id = 1", "INSERT INTO s (id, v) VALUES (70, 70)")
    same(first, "UPDATE s SET v = v * 2 WHERE id = 1", look)
    same(second, "UPDATE s SET v = v + 10 WHERE id = 70")
    same(first, "UPDATE s SET v = v * 2 WHERE id = 70", *after, look)
    same(second, look)


def test_savepoints_alone_keep_nothing(twins: tuple[PostgresTwin, PostgresTwin]) -> None:
    """Definitions of others stand in nobody's way who has only set savepoints."""
    first, second = twins
    same(first, "BEGIN", "SAVEPOINT a", "SAVEPOINT b")
    assert second.on_louver("CREATE TABLE other (a int ENC)").error is None
    same(first, "INSERT INTO i (v) VALUES (5)", "ROLLBACK TO b", "INSERT INTO i (v) VALUES (6)")
    same(first, "RELEASE a", "COMMIT", "SELECT v FROM i")


@pytest.mark.parametrize("seed", range(2))
def test_a_crowd_has_no_errors_and_adds_up(seed: int) -> None:
    """See `crowd`, of which long runs are made by hand."""
    database = crowd.Crowded(f"crowd_{next(_numbers)}")
    wrong, failed, statements, _ = crowd.crowd(database, clients=3, transactions=6, seed=seed)
    assert not wrong
    assert not failed
    assert statements > 20
