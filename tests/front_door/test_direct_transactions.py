"""Transactions that run without Python, wholly or until it takes over: the same answers as
PostgreSQL's, statement by statement, and nothing is lost where clients meet.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from louver.trusted.apps.pgproxy import status
from tests.front_door import door as doors
from tests.front_door.door import Door, opened

_ROWS = 300
_COLUMNS = ("id bigint{} PRIMARY KEY", "n bigint{}", "s text{}", "w bigint")
#: Texts, and of what their values are: keys, numbers or texts. The last ones are Python's.
_STATEMENTS = (
    ("SELECT * FROM k WHERE id = %s", "k"),
    ("SELECT n, s FROM k WHERE id = %s", "k"),
    ("SELECT a, b FROM p WHERE id = %s", "k"),
    ("SELECT count(*), sum(b) FROM p WHERE a < %s", "k"),
    ("SELECT a, b FROM p WHERE id = %s FOR UPDATE", "k"),
    ("SELECT b FROM p WHERE id = %s FOR SHARE NOWAIT", "k"),
    ("UPDATE k SET n = n + %s WHERE id = %s", "nk"),
    ("UPDATE k SET s = %s WHERE id = %s", "sk"),
    ("UPDATE p SET b = b + %s WHERE id = %s", "nk"),
    ("INSERT INTO k (id, n, s, w) VALUES (%s, %s, %s, %s)", "insn"),
    ("INSERT INTO p VALUES (%s, %s, %s)", "inn"),
    ("DELETE FROM k WHERE id = %s", "k"),
    ("DELETE FROM p WHERE id = %s", "k"),
    # What follows is not of those that take turns.
    ("UPDATE k SET n = n - %s, s = 's7' WHERE id = %s RETURNING s, n", "nk"),
    ("INSERT INTO k VALUES (%s, %s, %s, %s) RETURNING *", "jnsn"),
    ("DELETE FROM k WHERE id = %s RETURNING id, n, w", "k"),
)
#: The first ones, which are never Python's with values that are there already.
_OF_TURNS = 13
_PLANNED = (
    ("SELECT count(*), sum(n) FROM k WHERE w < %s", "n"),
    ("UPDATE k SET n = n + 1 WHERE w = %s", "n"),
    ("UPDATE p SET a = a + 1 WHERE id = %s RETURNING a, b", "k"),
    ("SAVEPOINT a", ""), ("ROLLBACK TO a", ""), ("RELEASE a", ""),
    ("INSERT INTO k (id, n) VALUES (%s, 1 / (%s - 5))", "in"),
    ("INSERT INTO k VALUES (1, 1, 'x', 1)", ""),
    ("SELECT * FROM missing", ""),
    ("SET LOCAL DateStyle = 'German'", ""),
    ("SELECT now() = transaction_timestamp()", ""),
)  # fmt: skip
_READS = ("SELECT * FROM k ORDER BY id", "SELECT * FROM p ORDER BY id")
_BEGINS = ("BEGIN", "BEGIN", "START TRANSACTION", "BEGIN ISOLATION LEVEL READ COMMITTED")
_ENDS = ("COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "END", "ABORT", "COMMIT AND CHAIN")
_OTHER_BEGINS = ("BEGIN READ ONLY", "BEGIN ISOLATION LEVEL REPEATABLE READ")
Sides = tuple[psycopg.Connection[Any], psycopg.Connection[Any]]


def _filled(con: psycopg.Connection[Any], enc: str) -> None:
    con.execute("DROP TABLE IF EXISTS k, p")
    columns = ", ".join(column.format(enc) for column in _COLUMNS)
    con.execute(f"CREATE TABLE k ({columns})")
    con.execute("CREATE TABLE p (id bigint PRIMARY KEY, a bigint, b bigint)")
    series = f"FROM generate_series(1, {_ROWS}) AS g(i)"
    con.execute(f"INSERT INTO k SELECT i, i, 's' || i, i {series}")
    con.execute(f"INSERT INTO p SELECT i, i, i {series}")


@pytest.fixture(params=[" ENC", ""])
def sides(door: Door, request: pytest.FixtureRequest) -> Iterator[Sides]:
    """Plaintext and the door, with the same tables."""
    with doors.plain() as first, door.connect() as second:
        _filled(first, "")
        _filled(second, request.param)
        yield first, second


def _ran(con: psycopg.Connection[Any], text: str, values: list[object]) -> object:
    prepares = text.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")
    try:
        cursor = con.execute(text, values, prepare=prepares)
        rows = sorted(map(repr, cursor.fetchall())) if cursor.description else None
        state = con.pgconn.transaction_status
        return cursor.statusmessage, rows, state
    except psycopg.Error as error:
        return error.sqlstate, con.pgconn.transaction_status


class _Drawn:
    """Statements with values, of few keys, so that they meet."""

    def __init__(self, seed: int, first: int = 1000) -> None:
        self.draw = random.Random(seed)
        self._next = first

    def new(self) -> int:
        """A key that is nowhere yet."""
        self._next += 1
        return self._next

    def _value(self, what: str) -> object:
        if what in "ij":
            self._next += self.draw.choice((1, 1, 1, 0))  # sometimes a key that is there already
            return self._next
        if what == "s":
            return self.draw.choice(("a", "s7", "", "ä'", None))
        return self.draw.randint(1, 20)

    def statement(self, others: float) -> tuple[str, list[object]]:
        """One of those that need no Python, or of the others."""
        choice = _PLANNED if self.draw.random() < others else _STATEMENTS
        text, values = self.draw.choice(choice)
        return text, [self._value(what) for what in values]


def _known(key: int, values: str) -> list[object]:
    """Values within the bounds of what is there already."""
    return [{"i": key, "j": key + 195, "s": "s7"}.get(what, 5) for what in values]


def _warm(con: psycopg.Connection[Any], first: int = _ROWS + 1) -> None:
    """Have all ways known: what is run in a transaction is looked for at its end."""
    for key in range(first, first + 3):
        con.execute("BEGIN")
        for text, values in _STATEMENTS:
            con.execute(text, _known(key, values), prepare=True)
        con.execute("COMMIT")


@pytest.mark.parametrize("seed", range(3))
def test_random_transactions_are_those_of_postgres(sides: Sides, seed: int) -> None:
    """Each statement's tag, rows, error and state of the transaction."""
    drawn = _Drawn(seed)
    for con in sides:
        _warm(con)
    for _ in range(40):
        others = drawn.draw.choice((0.0, 0.0, 0.1, 0.3))
        begin = drawn.draw.choice(_BEGINS + _OTHER_BEGINS * (others > 0))
        texts = [(begin, list[object]())]
        texts += [drawn.statement(others) for _ in range(drawn.draw.randint(0, 9))]
        end = drawn.draw.choice(_ENDS)
        texts += [(end, [])] + [("ROLLBACK", [])] * ("CHAIN" in end)
        for text, values in texts:
            first, second = (_ran(con, text, values) for con in sides)
            assert first == second, (text, values, texts)
    for read in _READS:
        first, second = (con.execute(read).fetchall() for con in sides)
        assert first == second


@pytest.mark.parametrize("seed", range(3))
def test_transactions_see_what_others_commit(door: Door, seed: int) -> None:
    """Two clients take turns, each in transactions of its own: as at READ COMMITTED, a statement
    sees what was committed before it. One waits for no other: they change rows of their own.
    """
    drawn, states = _Drawn(seed, _ROWS + 20), ["I", "I"]
    with doors.plain() as a, door.connect() as c, door.connect() as d:
        _filled(a, "")
        _filled(c, " ENC")
        first, second = [a, psycopg.connect(a.info.dsn, autocommit=True)], [c, d]
        for at, con in ((0, first[0]), (0, second[0]), (10, first[1]), (10, second[1])):
            _warm(con, _ROWS + 1 + at)
        for _ in range(160):
            who = drawn.draw.randrange(2)
            text, values = _turn(drawn, who, states)
            results = [_ran(con, text, values) for con in (first[who], second[who])]
            assert results[0] == results[1], (who, text, values)
            if second[who].info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                for con in (first[who], second[who]):
                    con.execute("ROLLBACK")
                states[who] = "I"
        for con in (*first, *second):
            con.execute("ROLLBACK")
        for read in _READS:
            assert a.execute(read).fetchall() == c.execute(read).fetchall()
        first[1].close()


def _turn(drawn: _Drawn, who: int, states: list[str]) -> tuple[str, list[object]]:
    if states[who] == "I":
        states[who] = "T"
        return "BEGIN", []
    if drawn.draw.random() < 0.2:
        states[who] = "I"
        return drawn.draw.choice(("COMMIT", "ROLLBACK")), []
    text, values = drawn.draw.choice(_STATEMENTS[:_OF_TURNS])
    # Within the bounds of what is there, so that none of it is Python's, whose transactions that
    # have changed something see nothing of what others commit.
    new = drawn.new() if "INSERT" in text else 0  # or they would wait for each other
    key = drawn.draw.randint(1, 20)
    if "SELECT" not in text or " FOR " in text:
        key = 2 * key + who  # odd keys are one client's, even ones the other's
    own = {"i": new, "j": new, "s": drawn.draw.choice(("s7", "s9")), "k": key, "n": 1}
    return text, [own[what] for what in values]


def _insisting(run: Callable[[], None]) -> None:
    with suppress(psycopg.errors.SerializationFailure):
        return run()
    return _insisting(run)


def _counted(con: psycopg.Connection[Any]) -> None:
    """Add one to what a row has, which is read with a lock."""
    with con.transaction():
        read = con.execute("SELECT b FROM p WHERE id = %s FOR UPDATE", (2,), prepare=True)
        (number,) = read.fetchone() or (0,)
        con.execute("UPDATE p SET b = %s WHERE id = %s", (number + 1, 2), prepare=True)


def _transfer(con: psycopg.Connection[Any], draw: random.Random, planned: float) -> None:
    """Move something from one row to another, in the order of their keys."""
    source, target = draw.sample(range(1, 6), 2)
    amounts = sorted(((source, -7), (target, 7)))
    with con.transaction():
        for key, amount in amounts:
            con.execute("SELECT n FROM k WHERE id = %s", (key,), prepare=True)
            con.execute("UPDATE k SET n = n + %s WHERE id = %s", (amount, key), prepare=True)
        if draw.random() < planned:
            con.execute("SELECT sum(n) FROM k WHERE w < 0")
        con.execute("UPDATE p SET b = b + 1 WHERE id = %s", (1,), prepare=True)


def test_nothing_is_lost_where_transactions_meet(door: Door) -> None:
    """Sums stay, and each transaction counts; who is outrun is asked to come again."""
    clients, rounds = 4, 40
    with door.connect() as con:
        _filled(con, " ENC")
    failures = list[BaseException]()

    def work(number: int) -> None:
        draw = random.Random(number)
        try:
            with door.connect() as con:
                for _ in range(rounds):
                    _insisting(partial(_transfer, con, draw, 0.05))
                    _insisting(partial(_counted, con))
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    assert failures == []
    with door.connect() as con:
        total = con.execute("SELECT sum(n) FROM k").fetchone()
        assert total == (_ROWS * (_ROWS + 1) // 2,)
        assert con.execute("SELECT b FROM p WHERE id = 1").fetchone() == (1 + clients * rounds,)
        assert con.execute("SELECT b FROM p WHERE id = 2").fetchone() == (2 + clients * rounds,)


@pytest.mark.parametrize("pool", ["session", "transaction"])
def test_they_run_without_python(tmp_path: Path, pool: str) -> None:
    """What is known is, from BEGIN to COMMIT."""
    monitor = str(tmp_path / "monitor")
    words = ("--metrics", monitor, "--pool", pool, "--pool-size", "1")
    with opened(*words) as door, door.connect() as con:
        _filled(con, " ENC")
        _warm(con)
        before = status.state_of((monitor, None))
        rounds, key = 10, _ROWS + 10
        for _ in range(rounds):
            with con.transaction():
                for text, values in _STATEMENTS:
                    key += "INSERT" in text
                    con.execute(text, _known(key, values), prepare=True)
        after = status.state_of((monitor, None))
        ran = after["direct_total"] - before["direct_total"]
        assert ran >= (rounds - 1) * (len(_STATEMENTS) + 2), (before, after)


def test_a_schema_that_changes_meanwhile(door: Door) -> None:
    """Python takes over, or what reads on does not see it; nothing is stored under an old one."""
    with door.connect() as con, door.connect() as other:
        _filled(con, " ENC")
        _warm(con)
        con.execute("BEGIN")
        read = con.execute("SELECT n, s FROM k WHERE id = %s", (1,), prepare=True)
        assert read.fetchone() == (1, "s1")
        other.execute("ALTER TABLE p ADD COLUMN c bigint DEFAULT 4")
        con.execute("UPDATE k SET n = n + %s WHERE id = %s", (5, 1), prepare=True)
        con.execute("INSERT INTO p VALUES (%s, %s, %s)", (5000, 1, 2), prepare=True)
        con.execute("COMMIT")
        assert con.execute("SELECT n FROM k WHERE id = 1").fetchone() == (6,)
        assert con.execute("SELECT * FROM p WHERE id = 5000").fetchone() == (5000, 1, 2, 4)


def test_cancel_and_a_server_session_that_ends(door: Door) -> None:
    """A statement that waits is cancelled, which ends the transaction; one whose session of the
    server is gone is done again, since nothing was committed.
    """
    with door.connect() as con, door.connect() as other:
        _filled(con, " ENC")
        for at, client in enumerate((con, other)):
            _warm(client, _ROWS + 1 + 10 * at)
        update = "UPDATE k SET n = n + %s WHERE id = %s"
        other.execute("BEGIN")
        other.execute(update, (1, 1), prepare=True)
        con.execute("BEGIN")
        con.execute(update, (1, 2), prepare=True)
        timer = threading.Timer(0.3, con.cancel)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            con.execute(update, (1, 1), prepare=True)
        timer.join()
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            con.execute(update, (1, 2), prepare=True)
        assert con.execute("COMMIT").statusmessage == "ROLLBACK"
        other.execute("COMMIT")
        assert con.execute("SELECT n FROM k WHERE id = 2").fetchone() == (2,)
        con.execute("BEGIN")
        con.execute(update, (1, 2), prepare=True)
        with doors.at_server(door) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        time.sleep(0.2)
        try:
            con.execute(update, (1, 3), prepare=True)
            con.execute("COMMIT")
            expected = 3
        except psycopg.Error:
            con.execute("ROLLBACK")
            expected = 2
        assert con.execute("SELECT n FROM k WHERE id = 2").fetchone() == (expected,)


@pytest.mark.parametrize("begun", [False, True])
def test_texts_are_read_as_the_schema_is_now(door: Door, begun: bool) -> None:
    """Of one that is sent anew the columns are those of now, also behind BEGIN."""
    with doors.plain() as plain, door.connect() as con, door.connect() as other:
        for client, enc in ((plain, ""), (con, " ENC")):
            _filled(client, enc)
        for turn in range(5):
            answers = []
            for client in (plain, con):
                client.execute("BEGIN")
                if begun:
                    client.execute("SELECT a, b FROM p WHERE id = %s", (1,), prepare=False)
                changing = plain if client is plain else other
                if turn == 3:
                    changing.execute("ALTER TABLE k ADD COLUMN z bigint DEFAULT 4")
                read = client.execute("SELECT * FROM k WHERE id = %s", (1,), prepare=False)
                answers.append((read.fetchall(), [c.name for c in read.description or ()]))
                client.execute("COMMIT")
            assert answers[0] == answers[1], turn


@pytest.mark.parametrize(
    "text",
    ["INSERT INTO p VALUES (900, 1, 1); COMMIT AND CHAIN; COMMIT",
     "INSERT INTO p VALUES (901, 1, 1); ROLLBACK AND CHAIN; COMMIT",
     "BEGIN; INSERT INTO p VALUES (902, 1, 1); COMMIT AND CHAIN; COMMIT"],
)  # fmt: skip
def test_chains_of_transactions_that_nobody_began(door: Door, text: str) -> None:
    with doors.plain() as plain, door.connect() as con:
        results = []
        for client in (plain, con):
            _filled(client, "")
            try:
                client.execute(text)
                state = "done"
            except psycopg.Error as error:
                state = error.sqlstate or ""
            results.append((state, client.execute("SELECT count(*) FROM p").fetchone()))
        assert results[0] == results[1]


def test_a_deadlock_ends_one_of_two(door: Door) -> None:
    """With PostgreSQL's own error, where locks are waited for as long as PostgreSQL looks."""
    update, ended = "UPDATE k SET n = n + %s WHERE id = %s", list[str | None]()
    with door.connect() as con, door.connect() as other:
        _filled(con, " ENC")
        for at, client in enumerate((con, other)):
            _warm(client, _ROWS + 1 + 10 * at)
            client.execute("SET lock_timeout = '20s'")
            _warm(client, _ROWS + 30 + 10 * at)
            client.execute("BEGIN")
            client.execute(update, (1, 1 + at), prepare=True)

        def cross(client: psycopg.Connection[Any], key: int) -> None:
            try:
                client.execute(update, (1, key), prepare=True)
                ended.append(None)
            except psycopg.Error as error:
                ended.append(error.sqlstate)
            client.execute("COMMIT")

        thread = threading.Thread(target=cross, args=(other, 1))
        thread.start()
        cross(con, 2)
        thread.join()
    assert sorted(ended, key=str) == ["40P01", None]
