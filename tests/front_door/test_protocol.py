"""The protocol, message by message: whatever a client sends, the door answers as PostgreSQL does,
and other clients do not notice.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from tests.front_door import raw
from tests.front_door.door import USER, Door
from tests.front_door.raw import SYNC, Raw, bind, execute, parse, query
from tests.postgres import servers


def _beside() -> Raw:
    """A client of the plaintext server itself."""
    server = servers.shared()
    name = "beside_protocol"
    servers.database_url(name)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(30)
    connection.connect(str(server.folder / f".s.PGSQL.{servers.PORT}"))
    own = Raw(connection)
    own.send(raw.startup(servers.USER, name))
    own.until_ready()
    return own


@pytest.fixture
def both(door: Door) -> Iterator[tuple[Raw, Raw]]:
    """PostgreSQL and the door, each with the same table."""
    first, second = _beside(), Raw.opened(door.port, USER, door.database)
    for own, encrypted in ((first, ""), (second, " ENC")):
        own.letters(query("DROP TABLE IF EXISTS p"))
        own.letters(query(f"CREATE TABLE p (id bigint{encrypted} PRIMARY KEY, s text{encrypted})"))
        own.letters(query("INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, NULL)"))
    yield first, second
    first.close()
    second.close()


#: Messages that are sent at once.
CONVERSATIONS: tuple[tuple[bytes, ...], ...] = (
    (query(""),),
    (query(" -- nothing\n;; "),),
    (query("SELECT 1; SELECT 2; SELECT nope; SELECT 3"),),
    (query("INSERT INTO p VALUES (10); SELECT 1/0"), query("SELECT id FROM p WHERE id = 10")),
    (query("BEGIN; INSERT INTO p VALUES (11)"), query("SELECT 1/0"), query("SELECT 1"),
     query("COMMIT"), query("SELECT id FROM p WHERE id = 11")),
    (query("INSERT INTO p VALUES (12); COMMIT; SELECT 1/0"),
     query("SELECT id FROM p WHERE id = 12"), query("DELETE FROM p WHERE id = 12")),
    (query("SELECT $1"),),
    (parse("SELECT s FROM p WHERE id = $1"), raw.message("D", b"S", raw.text("")), SYNC),
    (parse("SELECT s FROM p WHERE id = $1"), bind(b"1"), raw.message("D", b"P", raw.text("")),
     execute(), SYNC),
    (parse("SELECT id FROM p ORDER BY id"), bind(), execute(1), execute(1), execute(1), execute(1),
     SYNC),
    (parse("SELECT id FROM p ORDER BY id"), bind(), execute(2), SYNC, execute(2), SYNC),
    (query("BEGIN"), parse("SELECT id FROM p ORDER BY id"), bind(portal="c"),
     execute(2, "c"), SYNC, execute(2, "c"), SYNC, execute(2, "c"), SYNC, query("COMMIT"),
     execute(2, "c"), SYNC),
    (parse("SELECT 1", "named"), SYNC, parse("SELECT 2", "named"), SYNC, bind(name="named"),
     execute(), SYNC, raw.message("C", b"S", raw.text("named")), SYNC, bind(name="named"), SYNC),
    (bind(), execute(), SYNC),
    (parse("SELECT $1::int"), bind(), SYNC),
    (parse("SELECT 1; SELECT 2"), SYNC),
    (parse(""), bind(), raw.message("D", b"P", raw.text("")), execute(), SYNC),
    (parse("INSERT INTO p VALUES ($1, $2)"), bind(b"20", b"x"), execute(), bind(b"21", None),
     execute(), bind(b"20", b"x"), execute(), bind(b"22", b"x"), execute(), SYNC,
     query("SELECT id FROM p WHERE id >= 20")),
    (parse("BEGIN"), bind(), execute(), parse("INSERT INTO p VALUES (30)"), bind(), execute(), SYNC,
     query("ROLLBACK"), query("SELECT id FROM p WHERE id = 30")),
    (parse("INSERT INTO p VALUES (31)"), bind(), execute(), execute(), SYNC,
     query("SELECT id FROM p WHERE id = 31")),
    (raw.message("D", b"S", raw.text("unknown")), SYNC),
    (raw.message("D", b"P", raw.text("unknown")), SYNC),
    (raw.message("C", b"P", raw.text("unknown")), SYNC),
    (query("COPY p FROM STDIN"), raw.message("d", b"40\tx\n4"), raw.message("d", b"1\t\\N\n"),
     raw.message("c"), query("SELECT * FROM p WHERE id >= 40 ORDER BY id")),
    (query("COPY p FROM STDIN"), raw.message("d", b"50\tx\n"), raw.message("f", raw.text("no")),
     query("SELECT id FROM p WHERE id = 50")),
    (query("COPY p FROM STDIN"), raw.message("d", b"x\n"), raw.message("d", b"51\ty\n"),
     raw.message("c"), query("SELECT id FROM p WHERE id = 51")),
    (query("COPY (SELECT id, s FROM p WHERE id < 4 ORDER BY id) TO STDOUT"),),
    (parse("COPY p FROM STDIN"), bind(), execute(), SYNC, raw.message("d", b"60\tx\n"),
     raw.message("c"), SYNC, query("SELECT id FROM p WHERE id = 60")),
    (query("SAVEPOINT a"), query("BEGIN"), query("BEGIN"), query("SAVEPOINT a"),
     query("SELECT 1/0"), query("ROLLBACK TO a"), query("SELECT 1"), query("ROLLBACK"),
     query("ROLLBACK")),
    (query("PREPARE a AS SELECT s FROM p WHERE id = $1"), query("EXECUTE a(1)"),
     parse("EXECUTE a(2)"), bind(), raw.message("D", b"P", raw.text("")), execute(), SYNC,
     query("DEALLOCATE a"), query("EXECUTE a(1)")),
    (query("SHOW TimeZone"), query("SET work_mem = '8MB'"), query("RESET ALL"),
     query("DISCARD ALL")),
    (query("VALUES (1, 'a'), (2, NULL)"), query("TABLE p")),
    (query("DELETE FROM p; COMMIT; SELCT"), query("SELECT id FROM p ORDER BY id")),
    (query("DELETE FROM p; SELECT 'unfinished"), query("SELECT id FROM p ORDER BY id")),
    (query("SELECT 1; BEGIN READ ONLY; INSERT INTO p VALUES (70)"), query("ROLLBACK")),
    (query("SELECT 1; BEGIN ISOLATION LEVEL SERIALIZABLE"), query("ROLLBACK")),
    (query("SELECT 1; SAVEPOINT a"), query("SELECT 1; ROLLBACK TO a"), query("SELECT 1")),
    (parse("SELECT 1"), SYNC, parse("SELEC"), SYNC, bind(), execute(), SYNC),
    (query("BEGIN"), parse("SELECT id FROM p ORDER BY id"), bind(portal="c"), execute(1, "c"),
     SYNC, query("SELECT 1/0"), execute(1, "c"), SYNC, query("ROLLBACK")),
    (parse("SELECT 1", "named"), SYNC, query("DEALLOCATE named"), parse("SELECT 2", "named"), SYNC,
     query("DISCARD ALL"), parse("SELECT 3", "named"), bind(name="named"), execute(), SYNC,
     raw.message("C", b"S", raw.text("named")), SYNC),
    (query('WITH "delete" AS (SELECT 1 AS x) SELECT x FROM "delete"'),
     query("BEGIN; SET CONSTRAINTS ALL IMMEDIATE; COMMIT"), query("DISCARD TEMPORARY")),
    (query("CREATE TEMP TABLE made AS SELECT 1 AS a WITH NO DATA"), query("DROP TABLE made"),
     query("CREATE TEMP TABLE made AS SELECT 1 AS a"), query("DROP TABLE made")),
    (query("SELECT"), query("SELECT FROM p"), parse("SELECT FROM p"), bind(), execute(2), SYNC),
    (query("BEGIN"), query("DECLARE d CURSOR FOR SELECT id FROM p ORDER BY id"),
     parse("FETCH 1 FROM D"), bind(), raw.message("D", b"P", raw.text("")), execute(), SYNC,
     query("ROLLBACK")),
    # Statements and cursors have the same names in SQL and in the protocol.
    (parse("SELECT s FROM p WHERE id = $1", "x"), SYNC, query("EXECUTE x(1)"),
     query("PREPARE x AS SELECT 1"), query("EXECUTE x(2)"), query("DEALLOCATE x"),
     query("EXECUTE x(1)"), bind(b"1", name="x"), SYNC, parse("SELECT 5", "x"), SYNC,
     query("EXECUTE x"), raw.message("C", b"S", raw.text("x")), SYNC, query("EXECUTE x")),
    (query("PREPARE y(bigint) AS SELECT s FROM p WHERE id = $1"),
     raw.message("D", b"S", raw.text("y")), bind(b"2", name="y"), execute(), SYNC,
     parse("SELECT 1", "y"), SYNC, raw.message("C", b"S", raw.text("y")), SYNC,
     query("EXECUTE y(1)"), bind(b"1", name="y"), SYNC),
    (query("PREPARE a1 AS SELECT 1"), parse("SELECT $1::int", "a2"), SYNC,
     query("SELECT name, from_sql FROM pg_prepared_statements ORDER BY name"),
     query("DEALLOCATE ALL"), query("SELECT count(*) FROM pg_prepared_statements")),
    (query("BEGIN"), parse("SELECT id, s FROM p ORDER BY id"), bind(portal="c"), execute(1, "c"),
     query("FETCH 1 FROM c"), query("MOVE 1 FROM c"), query("FETCH ALL FROM c"), query("ROLLBACK"),
     query("FETCH 1 FROM c")),
    (query("BEGIN"), parse("SELECT id, s FROM p ORDER BY id"), bind(portal="c"), SYNC,
     query("FETCH 2 FROM c"), execute(0, "c"), SYNC, query("FETCH BACKWARD 1 FROM c"),
     query("ROLLBACK")),
    (query("BEGIN"), parse("SELECT id FROM p"), bind(portal="c"), SYNC,
     query("DECLARE c CURSOR FOR SELECT 1"), query("ROLLBACK")),
    (query("BEGIN"), query("DECLARE c CURSOR FOR SELECT 1"), parse("SELECT id FROM p"),
     bind(portal="c"), SYNC, query("ROLLBACK")),
    (query("BEGIN"), query("DECLARE c CURSOR FOR SELECT id FROM p ORDER BY id"),
     raw.message("D", b"P", raw.text("c")), execute(1, "c"), SYNC, execute(5, "c"), SYNC,
     raw.message("C", b"P", raw.text("c")), SYNC, query("FETCH 1 FROM c"), query("ROLLBACK")),
    (query("BEGIN"), parse("SELECT id FROM p"), bind(portal="c"), SYNC, query("CLOSE c"),
     execute(0, "c"), SYNC, query("ROLLBACK")),
    (query("DELETE FROM p WHERE id > 2"), query("UPDATE p SET s = 'z'"),
     query("INSERT INTO p VALUES (3, 'c') RETURNING id"), query("TRUNCATE p")),
)  # fmt: skip


def _told(own: Raw, messages: tuple[bytes, ...]) -> list[tuple[str, object]]:
    """What is answered: letters, rows, tags, and the states of errors."""
    own.send(*messages, SYNC, query("SELECT 'the end'"))
    results: list[tuple[str, object]] = []
    while True:
        for letter, body in own.until_ready():
            if letter == "D" and b"the end" in body:
                return results[:-1]  # without the description of this
            if not letter:
                raise AssertionError("it closed the connection")
            shown: object = body
            if letter == "E":
                shown = raw.fields(body).get("C")
            elif letter in ("T", "G", "H"):
                shown = struct.unpack(">h", body[:2]) if letter == "T" else len(body)
            results.append((letter, shown))


@pytest.mark.parametrize("number", range(len(CONVERSATIONS)))
def test_a_conversation_goes_as_with_postgresql(both: tuple[Raw, Raw], number: int) -> None:
    first, second = both
    assert _told(second, CONVERSATIONS[number]) == _told(first, CONVERSATIONS[number])
    assert _told(second, (query("SELECT 1"),)) == _told(first, (query("SELECT 1"),))


@pytest.mark.parametrize("seed", range(6))
def test_random_conversations_go_as_with_postgresql(both: tuple[Raw, Raw], seed: int) -> None:
    """Messages in any order, cut into packets anywhere."""
    draw = random.Random(seed)
    single = [m for part in CONVERSATIONS for m in part if b"COPY" not in m and m[:1] not in b"dcf"]
    # The simple protocol of PostgreSQL leaves a portal without a name where it fails.
    single = [m for m in single if m != raw.message("D", b"P", raw.text(""))]
    for _ in range(12):
        chosen = [draw.choice(single) for _ in range(draw.randint(1, 6))]
        answers = []
        for own in both:
            answers.append(_told(own, (*chosen, SYNC, query("ROLLBACK"))))
        assert answers[1] == answers[0], chosen


def test_types_are_those_of_now(door: Door) -> None:
    """Whoever has changed them, and before anything is stored."""
    first, second = (Raw.opened(door.port, USER, door.database) for _ in range(2))
    first.letters(query("CREATE TABLE changed (id bigint ENC PRIMARY KEY, a timestamptz ENC)"))
    first.letters(query("INSERT INTO changed VALUES (1, '2024-01-01 05:00+00')"))
    read = query("SELECT a FROM changed")
    returning = "INSERT INTO changed VALUES ($1) RETURNING *"
    for own in (first, second):
        own.letters(query("SET TimeZone = 'Asia/Tokyo'"), parse(returning, "named"), SYNC)
        own.until_ready()
        own.send(read)
        assert raw.rows(own.until_ready()) == [(b"2024-01-01 14:00:00+09",)]
    changes = query("ALTER TABLE changed ALTER a TYPE timestamp USING a AT TIME ZONE 'UTC'")
    assert first.letters(changes) == "CZI"
    for number, own in enumerate((first, second)):
        own.send(read)
        answers = own.until_ready()
        assert raw.rows(answers) == [(b"2024-01-01 05:00:00",)]
        # Behind the count, a name of one letter, the table and the place in it.
        (described,) = (body for letter, body in answers if letter == "T")
        assert struct.unpack(">I", described[10:14]) == (1114,)
        own.send(bind(b"%d" % (10 + number), name="named"), execute(), SYNC)
        states = [raw.fields(m[1]).get("C") for m in own.until_ready() if m[0] == "E"]
        assert states == ["0A000"]
        own.send(query("SELECT count(*) FROM changed"))
        assert raw.rows(own.until_ready()) == [(b"1",)]
    first.letters(query("DROP TABLE changed"))
    for own in (first, second):
        own.close()


def test_a_value_that_is_none_of_its_type(door: Door) -> None:
    """PostgreSQL says so when it is bound, the door when it is used."""
    own = Raw.opened(door.port, USER, door.database)
    own.send(parse("SELECT $1::int"), bind(b"x"), execute(), SYNC)
    assert ("E", "22P02") in [(m[0], raw.fields(m[1]).get("C")) for m in own.until_ready()]
    assert own.letters(query("SELECT 1")) == "TDCZI"
    own.close()


def test_packets_may_be_cut_anywhere(door: Door) -> None:
    own = Raw.opened(door.port, USER, door.database)
    whole = b"".join((parse("SELECT $1::int + 1"), bind(b"41"), execute(), SYNC))
    for byte in whole:
        own.send(bytes([byte]))
    assert raw.rows(own.until_ready()) == [(b"42",)]
    own.close()


@pytest.mark.parametrize(
    "wrong",
    [
        b"Q\xff\xff\xff\xff", b"Q\0\0\0\x03", b"Q\x7f\xff\xff\xff" + b"x" * 100, b"?\0\0\0\x04",
        b"B\0\0\0\x08\0\0\0\0", b"P\0\0\0\x05\0", b"\0" * 64, b"p\0\0\0\x09SCRAM",
    ],
)  # fmt: skip
def test_bytes_that_are_no_messages_end_one_session(door: Door, wrong: bytes) -> None:
    other = Raw.opened(door.port, USER, door.database)
    own = Raw.opened(door.port, USER, door.database)
    own.send(wrong)
    own.connection.shutdown(socket.SHUT_WR)
    letters = [own.next()[0] for _ in range(4)]
    assert "" in letters
    assert other.letters(query("SELECT 1")) == "TDCZI"
    own.close()
    other.close()


def test_who_goes_leaves_nothing_half_done(door: Door) -> None:
    """In a transaction, in COPY, in the middle of a message, and of an answer."""
    watching = Raw.opened(door.port, USER, door.database)
    watching.letters(query("CREATE TABLE left_behind (id bigint ENC PRIMARY KEY)"))
    insert = query("INSERT INTO left_behind SELECT i FROM generate_series(1, 5) AS s(i)")
    for messages in (
        (query("BEGIN"), insert), (query("BEGIN"), insert, b"Q\0\0"),
        (query("COPY left_behind FROM STDIN"), raw.message("d", b"1\n2\n")),
        (query("SELECT repeat('x', 1000) FROM generate_series(1, 200000)"),),
    ):  # fmt: skip
        own = Raw.opened(door.port, USER, door.database)
        own.send(*messages)
        time.sleep(0.3)
        own.close()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        watching.send(query("SELECT count(*) FROM left_behind"))
        assert raw.rows(watching.until_ready()) == [(b"0",)]
        # Whoever is still there would hold its locks.
        if watching.letters(query("SET lock_timeout = 300; TRUNCATE left_behind")) == "CCZI":
            break
        time.sleep(0.2)
    else:
        raise AssertionError("a client that went still holds its locks")
    watching.close()


def test_a_slow_reader_keeps_nobody_waiting(door: Door) -> None:
    slow = Raw.opened(door.port, USER, door.database)
    slow.send(query("SELECT repeat('x', 1000) FROM generate_series(1, 100000)"))
    other = Raw.opened(door.port, USER, door.database)
    start = time.monotonic()
    for _ in range(20):
        assert other.letters(query("SELECT 1")) == "TDCZI"
    assert time.monotonic() - start < 20
    assert len(raw.rows(slow.until_ready())) == 100_000
    slow.close()
    other.close()


def test_only_the_secret_cancels(door: Door) -> None:
    own = Raw.opened(door.port, USER, door.database)
    process, secret = own.key[:4], own.key[4:]
    own.send(query("SELECT pg_sleep(3)"))
    time.sleep(0.3)
    for given in (bytes(len(secret)), secret[::-1], secret + b"\0", secret):
        with socket.create_connection(("127.0.0.1", door.port)) as connection:
            body = struct.pack(">i", 80877102) + process + given
            connection.sendall(struct.pack(">i", len(body) + 4) + body)
            assert not connection.recv(10)
        if given != secret:
            time.sleep(0.2)
            own.connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                own.connection.recv(1)
            own.connection.settimeout(30)
    letters = [(m[0], raw.fields(m[1]).get("C")) for m in own.until_ready() if m[0] == "E"]
    assert letters == [("E", "57014")]
    own.close()
