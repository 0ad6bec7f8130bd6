"""Changes of one row that come again are done without Python: the same rows, the same errors, and
nothing is lost where clients meet.
"""

from __future__ import annotations

import datetime
import random
import struct
import threading
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import louver
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.client import connect
from tests import shared
from tests.front_door import door as doors
from tests.front_door.door import Door
from tests.postgres import servers

_COLUMNS = (
    ("id", "bigint"), ("a", "smallint"), ("n", "integer"), ("w", "bigint"), ("s", "text"),
    ("d", "date"), ("f", "double precision"), ("t", "timestamp"), ("u", "uuid"), ("x", "bytea"),
    ("o", "boolean"), ("m", "numeric(12,2)"), ("q", "numeric(4,4)"), ("z", "timestamptz"),
    ("v", "varchar(4)"), ("c", "char(4)"),
)  # fmt: skip
_ALL = ", ".join(["%{}"] * len(_COLUMNS))
#: Texts with the columns whose values they take; `{}` is the form in which a value is sent.
_CHANGES = (
    (f"INSERT INTO k VALUES ({_ALL})", [name for name, _ in _COLUMNS]),
    ("INSERT INTO k (id, n, s) VALUES (%{}, %{}, %{})", ["id", "n", "s"]),
    ("INSERT INTO k (id, o, a) VALUES (%{}, TRUE, 7)", ["id"]),
    ("INSERT INTO k (id, s, n) VALUES (%{}, 'it''s', -3)", ["id"]),
    ("INSERT INTO k (s, d, id) VALUES (E'a\\tb', '2024-02-29', %{})", ["id"]),
    ("UPDATE k SET n = n + %{} WHERE id = %{}", ["n", "id"]),
    ("UPDATE k SET a = a - 1, w = %{} WHERE id = %{}", ["w", "id"]),
    ("UPDATE k SET s = %{}, d = %{}, f = %{} WHERE id = %{}", ["s", "d", "f", "id"]),
    ("UPDATE k SET t = %{}, u = %{}, x = %{}, o = NULL WHERE id = %{}", ["t", "u", "x", "id"]),
    ("UPDATE k SET id = %{} WHERE id = %{}", ["id", "id"]),
    ("UPDATE k SET n = a WHERE s = %{}", ["s"]),
    ("UPDATE k SET w = w + w WHERE id = %{}", ["id"]),
    ("INSERT INTO k (id, m, q, v, c) VALUES (%{}, -1.50, 0.5, 'ab', 'c')", ["id"]),
    ("INSERT INTO k (z, t, c, id) VALUES (%{}, %{}, %{}, %{})", ["z", "t", "c", "id"]),
    ("UPDATE k SET m = %{} WHERE id = %{}", ["m", "id"]),
    ("UPDATE k SET m = m + %{}, q = %{} WHERE id = %{}", ["m", "q", "id"]),
    ("UPDATE k SET m = m - %{}, v = %{} WHERE id = %{}", ["m", "v", "id"]),
    ("UPDATE k SET m = m + m, q = q - 0.25 WHERE id = %{}", ["id"]),
    ("UPDATE k SET m = m + 9999999999.99 WHERE id = %{}", ["id"]),
    ("UPDATE k SET z = %{}, c = %{} WHERE id = %{}", ["z", "c", "id"]),
    ("UPDATE k SET v = c, c = v WHERE id = %{}", ["id"]),
    ("DELETE FROM k WHERE id = %{}", ["id"]),
    ("DELETE FROM k WHERE s = %{}", ["s"]),
    (f'INSERT INTO k VALUES ({_ALL}) RETURNING c, z AS "Zone", k.m, id', [n for n, _ in _COLUMNS]),
    ("INSERT INTO k (id, n, s) VALUES (%{}, %{}, %{}) RETURNING *", ["id", "n", "s"]),
    ("INSERT INTO k (id, q, f) VALUES (%{}, 0.5, %{}) RETURNING q, f, q", ["id", "f"]),
    ("UPDATE k SET n = n + %{} WHERE id = %{} RETURNING *", ["n", "id"]),
    ("UPDATE k SET m = m - %{}, v = %{} WHERE id = %{} RETURNING m, v, id", ["m", "v", "id"]),
    ("UPDATE k AS j SET c = %{} WHERE j.id = %{} RETURNING j.c, j.*", ["c", "id"]),
    ("UPDATE k SET t = %{}, u = %{} WHERE id = %{} RETURNING t, u", ["t", "u", "id"]),
    ("UPDATE k SET id = %{} WHERE id = %{} RETURNING id, new.id, old.id", ["id", "id"]),
    ("UPDATE k SET id = %{} WHERE id = %{} RETURNING id", ["id", "id"]),
    ("UPDATE k SET w = %{} WHERE s = %{} RETURNING w", ["w", "s"]),
    ("UPDATE k SET w = %{} WHERE id = %{} RETURNING w + 1, w isnull", ["w", "id"]),
    ("DELETE FROM k WHERE id = %{} RETURNING f, t, d, s AS d, x, o, a, z", ["id"]),
    ("DELETE FROM k WHERE s = %{} RETURNING *", ["s"]),
)
#: psycopg has no infinite dates.
_READ = (
    "SELECT id, a, n, w, s, d::text, f, t::text, u, x, o, m, q, z::text, v, c FROM k"
    " ORDER BY id, s, n, w, a"
)
_ROUNDS = 160
#: What psycopg sends in several forms as well.
_IN_FORMS = (int, bool, Decimal, datetime.date, datetime.datetime, uuid.UUID)


def _number(*more: int) -> Callable[[random.Random], object]:
    return lambda draw: draw.choice((draw.randint(1, 30), draw.randint(-3, 3), *more))


_VALUES: dict[str, Callable[[random.Random], object]] = {
    "id": _number(1, 2, 3, 4, 5),
    "n": _number(2**31 - 1, -(2**31), 2**31),
    "w": _number(2**63 - 1, -(2**63), 2**62),
    "m": lambda draw: draw.choice(
        (1, 2.5, "3.25", "1.005", "9999999999.99", "1e3", "-0.00", 10**10, -7, "1_000",
         Decimal("-0.07"), Decimal("12.5"), Decimal("0.070"), Decimal("-9999999999.99"),
         Decimal("9999999999.995"), Decimal("1E+2"), " 5", "+5", ".5", "0x10")
    ),
    "q": lambda draw: draw.choice(
        (0, 1, Decimal("0.9999"), Decimal("-0.5"), Decimal("0.99995"), "0.1", "1e-5")
    ),
    "z": lambda draw: draw.choice(
        (datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, datetime.UTC), "2024-01-01 10:00",
         datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-5))),
         datetime.datetime(2024, 5, 1, 12, 30), "infinity", "0001-01-01 00:00:00+00",
         "2024-06-30 23:59:60+00", "2024-01-01 10:00:00+15:59", "1800-01-01 10:00:00-05",
         "2024-01-01 10:00:00.1234567+02:30", "2024-03-31 02:30:00 Europe/Paris")
    ),
    "v": lambda draw: draw.choice(("", "a", "äöüß", "äöüß ", "abcde", "it's", "ab  ", b"x")),
    "c": lambda draw: draw.choice(("", "a", "äö  ", "äöüß", "abcd ", "abcde", "ab")),
    "s": lambda draw: draw.choice(("a", "b", "c", "", "ä'", "x" * 3000, "tab\t")),
    "d": lambda draw: draw.choice(
        (datetime.date(2024, 2, 29), "0001-01-01", "infinity", "9999-12-31", "2024-1-5", "epoch")
    ),
    "f": lambda draw: draw.choice((0.0, -0.0, 1.5, 1e300, float("nan"), "5e-324", "1e400", "inf")),
    "t": lambda draw: draw.choice(
        (datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), "2024-01-01", "infinity",
         "1969-12-31 23:59:59.5", "2024-06-01 24:00:00", "0001-01-01 00:00:00"),
    ),
    "u": lambda draw: draw.choice(
        (uuid.UUID(int=draw.getrandbits(128)), "x" * 32, str(uuid.UUID(int=255)).upper())
    ),
    "x": lambda draw: draw.choice((b"", b"\0\xff", "\\x00ff", "abc\\000", "\\xZZ")),
    "o": lambda draw: draw.choice((True, False, "yes", "t")),
    "a": _number(32767, -32768, 32768),
}  # fmt: skip


@pytest.fixture(params=["ENC", "", "some"])
def sides(
    door: Door, request: pytest.FixtureRequest
) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Plaintext and the door, with a table whose columns are encrypted, plain or both."""
    with doors.plain() as first, door.connect() as second:
        for con, enc in ((first, ""), (second, request.param)):
            con.execute("DROP TABLE IF EXISTS k")
            listed = ", ".join(
                f"{name} {type_}" + (" ENC" if enc == "ENC" or (enc and number % 2) else "")
                for number, (name, type_) in enumerate(_COLUMNS)
            )
            con.execute(f"CREATE TABLE k ({listed}, PRIMARY KEY (id))")
            # Of few rows all are read, and of few values none is a new one.
            con.execute(
                "INSERT INTO k (id, n, s, w, a) SELECT i, i, 's' || i, i, i % 100"
                " FROM generate_series(100, 599) AS g(i)"
            )
        yield first, second


def _ran(
    con: psycopg.Connection[Any], text: str, values: list[object], *, binary: bool = False
) -> object:
    """What a statement did, and what it gave back, byte by byte; or its error."""
    try:
        cursor = con.execute(text, values, prepare=True, binary=binary)
    except psycopg.Error as error:
        return error.sqlstate
    if cursor.pgresult is None or cursor.description is None:
        return cursor.statusmessage
    given, width = cursor.pgresult, range(len(cursor.description))
    rows = [[given.get_value(row, at) for at in width] for row in range(given.ntuples)]
    shown = [(column.name, column.type_code) for column in cursor.description]
    return cursor.statusmessage, shown, sorted(map(repr, rows))


def _are_alike(first: object, second: object) -> bool:
    """PostgreSQL fits a value into a column's length or digits while it plans, or for each row, as
    it has planned the text before: where no row gets the value, it is an error only then.
    """
    if first == second:
        return True
    did = [item[0] if isinstance(item, tuple) else item for item in (first, second)]
    return any(did[at] == "UPDATE 0" and did[1 - at] in ("22001", "22003") for at in (0, 1))


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_are_those_of_postgres(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], seed: int,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """Texts, values and forms at random; values that a column takes as they are, and others."""
    draw = random.Random(seed)
    # Where some columns are plain, none of them takes a value of another.
    mixed = request.node.callspec.params["sides"] == "some"
    crossing = ("n = a", "v = c")
    binary = bool(seed % 2)
    changes = [
        item for item in _CHANGES if not mixed or not any(part in item[0] for part in crossing)
    ]
    for _ in range(_ROUNDS):
        text, names = draw.choice(changes)
        values = [None if draw.random() < 0.05 else _VALUES[name](draw) for name in names]
        forms = [draw.choice("sbt") if type(v) in _IN_FORMS else "s" for v in values]
        text = text.format(*forms)
        for _ in range(draw.choice((1, 1, 4))):  # what comes again soon is known
            first, second = (_ran(con, text, values, binary=binary) for con in sides)
            assert _are_alike(first, second), (text, [repr(v)[:40] for v in values])
    rows = [con.execute(_READ).fetchall() for con in sides]
    assert repr(rows[0]) == repr(rows[1])
    assert rows[0]


@pytest.mark.parametrize("enc", ["", " ENC"])
def test_keys_of_two_columns_and_no_keys(door: Door, enc: str) -> None:
    """A table whose rows are found by two columns, and one whose rows are only added."""
    draw = random.Random(enc)
    texts = (
        ("INSERT INTO pair VALUES (%{}, %{}, %{})", ["id", "v", "m"]),
        ("UPDATE pair SET m = m + %{} WHERE b = %{} AND a = %{}", ["m", "v", "id"]),
        ("UPDATE pair SET a = %{} WHERE a = %{} AND b = %{}", ["id", "id", "v"]),
        ("DELETE FROM pair WHERE a = %{} AND b = %{}", ["id", "v"]),
        ("DELETE FROM pair WHERE a = %{}", ["id"]),
        ("INSERT INTO single VALUES (%{}, %{}, %{})", ["m", "z", "s"]),
        ("INSERT INTO single (s) VALUES (%{})", ["s"]),
    )
    with doors.plain() as first, door.connect() as second:
        for con, word in ((first, ""), (second, enc)):
            con.execute("DROP TABLE IF EXISTS pair; DROP TABLE IF EXISTS single")
            con.execute(
                f"CREATE TABLE pair (a int{word}, b varchar(4){word}, m numeric(8,2){word},"
                " PRIMARY KEY (a, b))"
            )
            con.execute(f"CREATE TABLE single (m numeric(9,1){word}, z timestamptz, s text{word})")
            con.execute("INSERT INTO pair SELECT i, 'a', i FROM generate_series(1, 500) AS g(i)")
            con.execute(
                "INSERT INTO single SELECT i, '2024-01-01', 's' || i"
                " FROM generate_series(1, 500) AS g(i)"
            )
        for _ in range(_ROUNDS):
            text, names = draw.choice(texts)
            values = [None if draw.random() < 0.05 else _VALUES[name](draw) for name in names]
            forms = [draw.choice("sbt") if type(v) in _IN_FORMS else "s" for v in values]
            text = text.format(*forms)
            for _ in range(draw.choice((1, 1, 4))):
                ran = [_ran(con, text, values) for con in (first, second)]
                assert _are_alike(*ran), (text, values)
        for sql in ("SELECT * FROM pair ORDER BY 1, 2", "SELECT m, z::text, s FROM single"):
            rows = [sorted(map(repr, con.execute(sql).fetchall())) for con in (first, second)]
            assert rows[0] == rows[1]


def test_nothing_is_lost_where_clients_meet(door: Door) -> None:
    """Sums of a row that several clients add to, and rows that each of them inserts and deletes."""
    clients, rounds = 4, 60
    with door.connect() as con:
        con.execute("DROP TABLE IF EXISTS sums")
        con.execute("CREATE TABLE sums (id bigint ENC PRIMARY KEY, n bigint ENC, s text ENC)")
        con.execute("INSERT INTO sums SELECT i, 0, 'a' FROM generate_series(1, 500) AS g(i)")
    failures = list[BaseException]()

    def work(number: int) -> None:
        try:
            with door.connect() as con:
                for turn in range(rounds):
                    con.execute("UPDATE sums SET n = n + %s WHERE id = %s", (1, 7), prepare=True)
                    new = 1000 * (number + 1) + turn
                    con.execute(
                        "INSERT INTO sums VALUES (%s, %s, %s)", (new, turn, "b"), prepare=True
                    )
                    if turn % 2:
                        done = con.execute(
                            "DELETE FROM sums WHERE id = %s", (new - 1,), prepare=True
                        )
                        assert done.rowcount == 1
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with door.connect() as con:
        row = con.execute("SELECT n FROM sums WHERE id = 7").fetchone()
        assert row == (clients * rounds,)
        row = con.execute("SELECT count(*), count(DISTINCT id) FROM sums").fetchone()
        assert row == (500 + clients * rounds // 2,) * 2


def test_what_shows_is_in_the_ledger(door: Door) -> None:
    """As many changes as the server can see are counted, at least."""
    with door.connect() as con:
        con.execute("DROP TABLE IF EXISTS seen")
        con.execute("CREATE TABLE seen (id bigint ENC PRIMARY KEY, n bigint ENC)")
        con.execute("INSERT INTO seen SELECT i, i FROM generate_series(1, 500) AS g(i)")
        for turn in range(40):
            con.execute("UPDATE seen SET n = %s WHERE id = %s", (turn, 5), prepare=True)
    with louver.connect(door.url, keys=str(shared.key_file())) as own:
        facts = own.leakage().arrow().to_pylist()
    counts = [
        fact["conditions"] or 0
        for fact in facts
        if fact["table_name"].endswith("seen") and "n" in fact["columns"]
    ]
    assert max(counts) >= 40


_KNOWN = (
    ("INSERT INTO k VALUES ($1, $2, $3, 'x')", (5000, 1, "b"), True),
    ("INSERT INTO k (id, n) VALUES ($1, 5)", (5100,), True),
    ("INSERT INTO k (id, n) VALUES ($1, 5 + 1)", (5200,), False),
    ("INSERT INTO k (id, s) VALUES ($1, 's7')", (5500,), True),
    ("INSERT INTO k (id, n) VALUES ($1, '7')", (5600,), False),
    ("INSERT INTO k (id, n) VALUES ($1, 5), ($2, 6)", (5300, 5400), False),
    ("UPDATE k SET n = $1 WHERE id = $2", (5, 7), True),
    ("UPDATE k SET n = n + $1 WHERE id = $2", (5, 7), True),
    ("UPDATE k SET n = n * $1 WHERE id = $2", (1, 7), False),
    ("UPDATE k SET name = $1 WHERE id = $2", ("x", 7), True),
    ("UPDATE k SET n = $1 WHERE n = $2", (5, 7), False),
    ("UPDATE k SET n = $1 WHERE id = $2 RETURNING n", (5, 7), True),
    ("UPDATE k SET n = $1 WHERE id = $2 RETURNING k.*, n AS m", (5, 7), True),
    ("UPDATE k SET n = $1 WHERE id = $2 RETURNING n + 1", (5, 7), False),
    ("UPDATE k SET n = $1 WHERE id = $2 RETURNING old.n", (5, 7), False),
    ("UPDATE k SET n = $1 WHERE id = $2 RETURNING current_user", (5, 7), False),
    ("DELETE FROM k WHERE id = $1 RETURNING s, name", (8,), True),
    ("INSERT INTO k VALUES ($1, $2, $3, 'x') RETURNING *", (7000, 1, "b"), True),
    ("INSERT INTO k VALUES ($1, $2, $3, 'x') RETURNING id + 0", (7100, 1, "b"), False),
    ("INSERT INTO defaults (id) VALUES ($1)", (7200,), True),
    ("INSERT INTO defaults (id, s) VALUES ($1, 'x') RETURNING *", (7300,), True),
    ("INSERT INTO defaults (id, n) VALUES ($1, DEFAULT)", (7400,), True),
    ("INSERT INTO defaults (id, s, v) VALUES ($1::BIGINT, $2::VARCHAR, 'a')", (7600, "x"), True),
    ("INSERT INTO defaults (id, n) VALUES ($1::BIGINT, $2::BIGINT)", (7700, 4), False),
    ("INSERT INTO timed (id) VALUES ($1)", (7500,), False),
    ("DELETE FROM k WHERE id = $1", (9,), True),
    (
        "INSERT INTO m VALUES ($1, $2, $3, $4, $5)",
        (5700, "1.25", "2024-01-02 03:04:05+00", "ab", "c"),
        True,
    ),
    ("INSERT INTO m (id, n, v) VALUES ($1, -2.50, 'abc')", (5800,), True),
    ("INSERT INTO m (id, n, v) VALUES ($1, 2.505, 'abc')", (5900,), False),
    ("INSERT INTO m (id, v) VALUES ($1, 'abc ')", (6000,), False),
    ("UPDATE m SET n = n - $1, z = $2 WHERE id = $3", ("1.25", "2024-01-02 03:04:05+00", 7), True),
    ("UPDATE m SET n = n * $1 WHERE id = $2", ("1.25", 7), False),
    ("UPDATE m SET v = $1, c = $2 WHERE id = $3", ("ab", "c", 7), True),
    ("UPDATE m SET v = c WHERE id = $1", (7,), False),
    ("INSERT INTO pair VALUES ($1, 5, 'x')", (5000,), True),
    ("UPDATE pair SET s = 'y' WHERE a = $1 AND b = $2", (7, 7), True),
    ("DELETE FROM pair WHERE b = $1 AND a = $2", (9, 9), True),
    ("DELETE FROM pair WHERE a = $1", (9,), False),
    ("INSERT INTO single VALUES ($1)", (5000,), True),
)


def test_changes_are_known_without_python() -> None:
    """Which texts are, after a few runs; the ways of the others are not shorter, but as right."""
    url = servers.database_url("door_writing")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"), "anna")
    try:
        for sql in (
            "CREATE TABLE k (id bigint ENC PRIMARY KEY, n bigint ENC, s text ENC, name text ENC)",
            "INSERT INTO k SELECT i, i, 's' || i, 'n' || i FROM generate_series(1, 500) AS g(i)",
            "CREATE TABLE m (id bigint ENC PRIMARY KEY, n numeric(12,2) ENC, z timestamptz ENC,"
            " v varchar(3) ENC, c char(3) ENC)",
            "INSERT INTO m SELECT i, i, '2024-01-01', 'a', 'b' FROM generate_series(1, 500) i",
            "CREATE TABLE pair (a bigint ENC, b bigint ENC, s text, PRIMARY KEY (a, b))",
            "INSERT INTO pair SELECT i, i, 'a' FROM generate_series(1, 500) AS g(i)",
            "CREATE TABLE single (n bigint ENC)",
            "CREATE TABLE defaults (id bigint ENC PRIMARY KEY, s text ENC DEFAULT 'it''s',"
            " n int DEFAULT -5, v varchar(5) ENC DEFAULT 'a', m numeric(8,2) ENC DEFAULT 0.5,"
            " o boolean DEFAULT true, c char(3) ENC DEFAULT 'a')",
            "CREATE TABLE timed (id bigint ENC PRIMARY KEY, z timestamptz DEFAULT now())",
        ):
            client.run(client.prepare(sql, []), [], [], [])
        for sql, values, is_known in _KNOWN:
            prepared = client.prepare(sql, [])
            for turn in range(3):
                given = [
                    struct.pack(">q", value + turn * (value >= 5000))
                    if isinstance(value, int) else str(value).encode()
                    for value in values
                ]  # fmt: skip
                forms = [int(isinstance(value, int)) for value in values]
                client.run(prepared, given, forms, [])
                client.after()
            assert (client.way(prepared) is not None) == is_known, sql
    finally:
        client.close()
        servers.drop_databases()
