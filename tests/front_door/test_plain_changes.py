"""UPDATE and DELETE of plain tables are relayed: rows, counts and errors are PostgreSQL's, whatever
the table demands of its rows, and the catalog knows what it relies on.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import psycopg
import pytest

from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.apps.pgproxy.failures import Failed
from louver.trusted.client import connect
from tests import shared
from tests.front_door import door as doors
from tests.front_door.door import Door
from tests.postgres import servers

_TABLES = (
    "CREATE TABLE a (w integer, d integer, n integer NOT NULL, y numeric(8,2), v varchar(4), c"
    " char(3), s text, t timestamp(3), z timestamptz, o boolean, f double precision, e date,"
    " u uuid, PRIMARY KEY (w, d))",
    "CREATE TABLE b (id bigint PRIMARY KEY, w integer, q integer CHECK (q < 50), m text UNIQUE)",
    "CREATE TABLE child (id integer PRIMARY KEY, b bigint REFERENCES b, n integer)",
    "INSERT INTO a SELECT i / 6, i % 6, i, i / 4.0, 'v' || i % 3, 'c' || i % 3, 's' || i % 5,"
    " timestamp '2024-01-01' + i * interval '1 hour', timestamptz '2024-01-01 00:00+00',"
    " i % 2 = 0, i / 3.0, date '2024-01-01' + i, NULL FROM generate_series(0, 59) AS g(i)",
    "INSERT INTO b SELECT i, i % 7, i % 9, 'm' || i FROM generate_series(1, 40) AS g(i)",
    "INSERT INTO child SELECT i, i, i FROM generate_series(1, 10) AS g(i)",
)
_VALUES: dict[str, tuple[object, ...]] = {
    "n": (0, 1, 7, -5, 10**6, 2**31 - 1, None), "y": ("1.555", 99, "-0.005", "999999.994", None),
    "v": ("a", "abcd", "abcde", "abcd   ", "", None), "c": ("x", "xyz", "wxyz", None),
    "s": ("s1", "ä'\\", "", None), "o": (True, False, None), "f": (1.5, -0.0, float("inf"), None),
    "t": (datetime(2024, 5, 1, 1, 2, 3, 456789), "infinity", None), "u": (None, "0" * 32),
    "z": ("2024-05-01 00:00+02", None), "e": (date(1999, 1, 1), "infinity", None),
    "q": (1, 49, 50, None), "m": ("m3", "new", None),
}  # fmt: skip
_TYPES = {
    "n": "integer", "y": "numeric", "v": "varchar", "c": "char(3)", "s": "text", "o": "boolean",
    "f": "float8", "t": "timestamp", "u": "uuid", "z": "timestamptz", "e": "date",
    "q": "integer", "m": "text",
}  # fmt: skip

#: Where a value of a column, or a number up to one, is to stand.
_MARK = re.compile("<([a-z]|[0-9]+)>")
#: Texts, or what psycopg takes them for.
_FORMS = {"n": "%s", "o": "%s", "f": "%s", "q": "%s", "t": "%s"}


class _Drawn:
    """A change, with what its parameters' values are drawn from."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._of = draw, list[Sequence[object]]()
        text = self._deletes() if draw.random() < 0.2 else self._updates()
        self.text = _MARK.sub(self._placeholder, text)

    def _placeholder(self, mark: re.Match[str]) -> str:
        if mark[1].isdecimal():
            self._of.append(range(int(mark[1]) + 1))
            return self._one("%s", "%b", "%t")
        self._of.append(_VALUES[mark[1]])
        form = _FORMS.get(mark[1], "%t")
        return form if self._draw.random() < 0.8 else f"{form}::{_TYPES[mark[1]]}"

    def _one(self, *items: str) -> str:
        return self._draw.choice(items)

    @staticmethod
    def _number(last: int) -> str:
        return f"<{last}>"

    def values(self) -> list[object]:
        """Others each time."""
        return [self._draw.choice(items) for items in self._of]

    def _new(self, column: str) -> str:
        value = self._draw.choice(_VALUES[column])
        if self._draw.random() < 0.3 and column in ("n", "y", "f"):
            return f"{column} {self._one('+', '-', '*')} {self._number(3)}"
        if self._draw.random() < 0.2 and value is not None:
            return f"'{str(value).replace(chr(39), chr(39) * 2)}'"
        return f"<{column}>"

    def _updates(self) -> str:
        table = self._one("a", "a", "a", "b", "child")
        columns = {"a": "nyvcstzofeu", "b": "wqm", "child": "nb"}[table]
        names = self._draw.sample(columns, self._draw.choice((1, 1, 2)))
        if table == "a":
            sets = [f"{name} = {self._new(name)}" for name in names]
            if self._draw.random() < 0.15:
                sets = [self._one(
                    f"n = CASE WHEN n >= {self._number(9)} THEN n - 1 ELSE n + 9 END",
                    "w = w + 0", "d = d", "n = d, s = v", "s = upper(s)", "v = s", "y = n",
                    "n = (SELECT max(q) FROM b)", "n = DEFAULT", "(n, o) = (1, true)", "c = v",
                )]  # fmt: skip
        else:
            sets = [f"{name} = {self._own(name)}" for name in names]
        alias = self._one("", "", " AS x")
        source = " FROM b AS y" if table == "a" and self._draw.random() < 0.1 else ""
        own = "x" if alias else table
        where = self._condition(table, own) + (f" AND y.id = {own}.n" if source else "")
        return f"UPDATE {table}{alias} SET {', '.join(sets)}{source} WHERE {where}" + (
            self._returning(own)
        )

    def _own(self, name: str) -> str:
        if name in ("w", "b", "n"):
            return self._one(f"{name} + 1", self._number(45), "NULL")
        return self._new(name)

    def _condition(self, table: str, own: str) -> str:
        if table != "a":
            return f"{own}.id = {self._number(42)}"
        return self._one(
            f"{own}.w = {self._number(10)} AND {own}.d = {self._number(6)}",
            f"{own}.w = {self._number(10)} AND d = 3",
            f"{own}.w = {self._number(10)}", f"{own}.n < {self._number(20)}",
            f"{own}.s = 's1' AND {own}.w > {self._number(10)}",
            f"{own}.n IN (SELECT q FROM b WHERE w = {self._number(7)})",
        )  # fmt: skip

    def _returning(self, own: str) -> str:
        if self._draw.random() < 0.5:
            return ""
        return " RETURNING " + self._one("*", f"{own}.*", f"{own}.n, 1 AS one", "n + 1, n", "1")

    def _deletes(self) -> str:
        table = self._one("a", "b", "child")
        return f"DELETE FROM {table} WHERE {self._condition(table, table)}{self._returning(table)}"


@pytest.fixture
def sides(door: Door) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Plaintext and the door, with the same plain tables."""
    with doors.plain() as first, door.connect() as second:
        # What is too long for a row that is not there is an error of some plans, and not of others.
        first.execute("SET plan_cache_mode = force_custom_plan")
        for con in (first, second):
            con.execute("DROP TABLE IF EXISTS child, a, b")
            for sql in _TABLES:
                con.execute(sql)
        yield first, second


def _ran(
    con: psycopg.Connection[Any], text: str, values: Sequence[object], *, binary: bool
) -> object:
    try:
        cur = con.execute(text, values, prepare=True, binary=binary)
    except psycopg.Error as error:
        if not error.sqlstate:
            raise  # nothing was sent
        return error.sqlstate, con.pgconn.transaction_status
    columns = [(item.name, item.type_code) for item in cur.description or ()]
    return columns, sorted(_rows(cur)), cur.statusmessage, con.pgconn.transaction_status


def _rows(cur: psycopg.Cursor[Any]) -> list[list[bytes]]:
    """As they were sent."""
    result = cur.pgresult
    assert result is not None
    numbers = range(result.nfields)
    return [
        [result.get_value(row, column) or b"NULL" for column in numbers]
        for row in range(result.ntuples)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_are_those_of_postgres(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], seed: int
) -> None:
    """Each runs several times, the first ones by Python, in a transaction at the end or not."""
    draw = random.Random(seed)
    reads = [f"SELECT * FROM {table} ORDER BY 1, 2" for table in ("a", "b", "child")]
    for _ in range(60):
        drawn, binary, ends = _Drawn(draw), draw.random() < 0.5, draw.random()
        for turn in range(7):
            begins, values = turn == 6 and ends < 0.6, drawn.values()
            for con in sides if begins else ():
                con.execute("BEGIN")
            expected = _ran(sides[0], drawn.text, values, binary=binary)
            other = _ran(sides[1], drawn.text, values, binary=binary)
            assert other == expected, (turn, drawn.text, values)
            for con in sides if begins else ():
                con.execute("COMMIT" if ends < 0.3 else "ROLLBACK")
        for text in reads:
            rows = [_rows(con.execute(text)) for con in sides]
            assert rows[0] == rows[1], drawn.text


def test_the_catalog_knows_what_values_there_are(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
) -> None:
    """A value beyond what the catalog says of a column goes through Python, which widens that: what
    is planned by it is right.
    """
    for con in sides:
        con.execute("CREATE TABLE IF NOT EXISTS p (id integer PRIMARY KEY, n bigint, m integer)")
        con.execute("DELETE FROM p")
        con.execute("INSERT INTO p VALUES (1, 1, 1), (2, 2, 2)")
        for value in (1, 2, 1, 2, 1 << 40, -(1 << 50), 3, None, 5, None):
            for key in (1, 2):
                con.execute("UPDATE p SET n = %s WHERE id = %s", (value, key), prepare=True)
    for text in (
        "SELECT sum(n), count(n), min(n) FROM p", "SELECT id FROM p WHERE n IS NULL",
        "SELECT count(*) FROM p AS x JOIN p AS y ON x.n = y.n", "SELECT n FROM p ORDER BY n, id",
        "SELECT id FROM p WHERE n < -5", "SELECT id FROM p WHERE n NOT IN (3)",
    ):  # fmt: skip
        rows = [con.execute(text).fetchall() for con in sides]
        assert rows[0] == rows[1], text


_PLANNED = (
    "UPDATE met SET n = n + 1000000 + (random() * 0)::integer WHERE k = 1",
    "INSERT INTO met VALUES (1, 0) ON CONFLICT (k) DO UPDATE SET n = met.n + 1000000",
)


@pytest.mark.parametrize("relayed", ["k = 1", "k <= 1"])
@pytest.mark.parametrize("planned", _PLANNED)
def test_nothing_is_lost_beside_python(door: Door, planned: str, relayed: str) -> None:
    """One client's change is relayed, the other's Python's: it finds that the row has changed."""
    done, end = [0, 0], time.monotonic() + 3
    with door.connect() as con:
        con.execute("DROP TABLE IF EXISTS met")
        con.execute("CREATE TABLE met (k integer PRIMARY KEY, n bigint)")
        con.execute("INSERT INTO met VALUES (1, 0), (2, 100000000000)")

    def run(at: int, text: str) -> None:
        with door.connect() as own:
            while time.monotonic() < end:
                with suppress(psycopg.errors.SerializationFailure, psycopg.errors.LockNotAvailable):
                    own.execute(text, prepare=True)
                    done[at] += 1

    with ThreadPoolExecutor(2) as pool:
        texts = f"UPDATE met SET n = n + 1 WHERE {relayed}", planned
        list(pool.map(run, (0, 1), texts))
    with door.connect() as con:
        ((n,),) = con.execute("SELECT n FROM met WHERE k = 1").fetchall()
    assert [n % 1_000_000, n // 1_000_000] == done


def test_any_number_of_rows_changes(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
) -> None:
    """Few rows are changed by the server, whatever is behind them in the same transaction, and so
    many that their numbers do not last by Python.
    """
    texts = (
        "UPDATE many SET n = n + %s WHERE id <= %s", "UPDATE many SET n = n - 1 WHERE n < %s",
        "DELETE FROM many WHERE n = %s", "UPDATE many SET n = 7 WHERE id %% 500 = %s RETURNING n",
    )  # fmt: skip
    values = ((1, 10), (1, 0), (2, 900), (1, 3), (1, 1500), (3, 1100), (1, 20), (1, 3000), (5, 300))
    for con in sides:
        con.execute("DROP TABLE IF EXISTS many")
        con.execute("CREATE TABLE many (id integer PRIMARY KEY, n integer)")
        con.execute("INSERT INTO many SELECT i, i FROM generate_series(1, 3000) AS g(i)")
    for turn, pair in enumerate(values):
        for con in sides if turn % 2 else ():
            con.execute("BEGIN")
        for text in texts:
            given = pair[: text.count("%s")]
            counts = [con.execute(text, given, prepare=True).statusmessage for con in sides]
            assert counts[0] == counts[1], (text, given)
        for con in sides if turn % 2 else ():
            con.execute("ROLLBACK" if turn % 4 == 1 else "COMMIT")
        rows = [con.execute("SELECT * FROM many ORDER BY id").fetchall() for con in sides]
        assert rows[0] == rows[1], pair


def test_an_empty_table_is_known_to_be_empty(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
) -> None:
    """Rows that are removed so are counted."""
    for con in sides:
        for first in range(0, 60, 20):
            for number in range(first, first + 20):
                con.execute("DELETE FROM a WHERE n = %s", (number,), prepare=True)
        assert con.execute("SELECT count(*), max(n) FROM a").fetchone() == (0, None)
        con.execute("INSERT INTO a (w, d, n) VALUES (1, 2, 3)")
        assert con.execute("SELECT count(*), max(n) FROM a").fetchone() == (1, 3)


_KNOWN = (
    ("UPDATE a SET n = n + 1 WHERE w = $1 AND d = $2", True),
    ("UPDATE a AS x SET v = $1 WHERE x.w = 1 AND 2 = x.d RETURNING x.n - 1, x.*", True),
    ("UPDATE a SET n = CASE WHEN n > $1 THEN 1 ELSE 7 END WHERE d = $2 AND n > 0 AND w = 1", True),
    ("DELETE FROM a WHERE w = $1", True), ("DELETE FROM child WHERE n = $1 RETURNING id", True),
    ("UPDATE child SET n = $1 WHERE id = $2", True), ("UPDATE child SET n = $1", True),
    ("UPDATE a SET n = 1 WHERE w = 1", True), ("UPDATE a SET n = 1 WHERE w = 1 AND d > 2", True),
    ("UPDATE a SET n = 1 WHERE w = 1 OR d = 2 RETURNING n", True),
    ("UPDATE a SET n = 1 WHERE w = d AND d = 1", True),
    ("UPDATE a SET n = b.q FROM b WHERE b.id = 3", False),
    ("UPDATE a SET w = $1", False), ("UPDATE b SET q = $1", False), ("DELETE FROM b", False),
    ("UPDATE b SET m = $1", False), ("UPDATE child SET b = $1", False),
    ("UPDATE a SET z = now() WHERE w = 1 AND d = 2", True),
    ("UPDATE a SET z = now() - z + z WHERE w = 1 AND d = 2", False),
    ("UPDATE a SET s = upper(s)", False),
    ("UPDATE a SET n = $1 WHERE s < 'x'", False), ("UPDATE e SET p = $1 WHERE p = 1", False),
    ("UPDATE a SET n = (SELECT max(p) FROM e)", False), ("UPDATE a SET t = z", False),
    ("UPDATE a SET n = mine(n)", False), ("DELETE FROM of_a", False),
    ("UPDATE g SET n = $1", False), ("UPDATE a SET n = 1 RETURNING old.n", False),
    ("WITH x AS (UPDATE a SET n = 1 RETURNING n) SELECT n FROM x", False),
    ("WITH x AS (SELECT 1) UPDATE a SET n = 1", False), ("UPDATE a SET n = random()", False),
    ("DELETE FROM a WHERE ctid = '(0,1)'", False), ("UPDATE dated SET n = $1", False),
    ("DELETE FROM a USING b WHERE a.n = b.q", True), ("UPDATE ix SET n = $1", False),
)  # fmt: skip


def test_no_other_change_is_passed_on() -> None:
    """What depends on more than the rows that it changes is run by Python."""
    url = servers.database_url("door_plain_changes")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"), "anna")
    try:
        for sql in (
            *_TABLES[:3], "CREATE TABLE e (id bigint ENC PRIMARY KEY, p integer)",
            "CREATE FUNCTION mine(x integer) RETURNS integer IMMUTABLE RETURN x",
            "CREATE VIEW of_a AS SELECT * FROM a", "CREATE DOMAIN dom AS integer",
            "CREATE TABLE g (n integer, m integer GENERATED ALWAYS AS (n + 1) STORED)",
            "CREATE TABLE dated (n dom)", "CREATE TABLE ix (n integer)",
            "CREATE UNIQUE INDEX ON ix ((n % 7))",
        ):  # fmt: skip
            client.run(client.prepare(sql, []), [], [], [])
        for table in ("a", "child", "g", "dated", "ix"):
            columns = {"a": "(1, 2, 3)", "child": "(1, NULL, 1)"}.get(table, "(1)")
            with suppress(Failed):
                client.run(client.prepare(f"INSERT INTO {table} VALUES {columns}", []), [], [], [])
        for sql, passes in _KNOWN:
            with suppress(Failed):
                prepared = client.prepare(sql, [])
                for _ in range(2):
                    values = [b"1"] * len(prepared.parameters)
                    client.run(prepared, values, [0] * len(values), [])
                    client.after()
            way = type(client.way(prepared)).__name__
            assert (way == "PassedChange") == passes, (sql, way)
    finally:
        client.close()
        servers.drop_databases()
