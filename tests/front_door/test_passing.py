"""Queries over plain columns alone are relayed: the rows are PostgreSQL's, and no others are passed
on than those of which the server tells what PostgreSQL at home would.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
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
    "CREATE TABLE a (id bigint PRIMARY KEY, n integer, s text, m numeric(12,2), v varchar(9),"
    " d date, t timestamp, o boolean, u uuid, f double precision, c char(4), z timestamptz)",
    "CREATE TABLE b (id bigint PRIMARY KEY, a_id bigint, w smallint, s text)",
    "INSERT INTO a SELECT i, i % 7, 's' || i % 5, i / 4.0, 'v' || i % 3,"
    " date '2024-02-28' + i::int, timestamp '2024-01-01 00:00:00.5' + i * interval '1 hour',"
    " i % 2 = 0,"
    " ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, i / 3.0,"
    " 'c' || i % 3, timestamptz '2024-01-01 00:00+00' + i * interval '1 hour'"
    " FROM generate_series(1, 200) AS g(i)",
    "INSERT INTO a (id) SELECT i FROM generate_series(201, 210) AS g(i)",
    "INSERT INTO b SELECT i, i % 40, i % 9, 'b' || i % 4 FROM generate_series(1, 300) AS g(i)",
)
_VALUES: dict[str, tuple[object, ...]] = {
    "n": (0, 1, 3, 6, 100, -1, 2**31 - 1, None),
    "s": ("s1", "s2", "", "ä'\\", None, "S1"),
    "m": ("1.5", "12.25", 3, "1e1", "0.001"),
    "d": ("2024-03-01", "2024-3-5", "01/03/2024", "infinity", None),
    "z": ("2024-01-03 12:00:00+02", datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02", None),
}


class _Drawn:
    """A query with what its parameters are."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self.values = draw, list[object]()
        self._joined = draw.random() < 0.3

    def _one(self, *items: str) -> str:
        return self._draw.choice(items)

    def _value(self, kind: str) -> str:
        value = self._draw.choice(_VALUES[kind])
        if self._draw.random() < 0.4 and value is not None:
            return "'" + str(value).replace("'", "''") + "'"
        self.values.append(value)
        form = "%s" if not isinstance(value, int) else self._one("%s", "%b")
        cast = {"d": "date", "m": "numeric", "s": "text", "z": "timestamptz"}.get(kind)
        return f"{form}::{cast}" if cast else form

    def _number(self) -> str:
        self.values.append(self._draw.choice((1, 2, 7, 300, 70_000, 1 << 40)))
        return self._one("%s", "%b")

    def _scalar(self) -> str:
        return self._one(
            "x.id", "x.n", "x.n + 1", "x.s", "x.m * 2", "coalesce(x.n, 0)", "x.v", "x.d", "x.t",
            "x.o", "x.u", "abs(x.n - 3)", "CASE WHEN x.o THEN x.n ELSE -x.n END", "length(x.s)",
            "x.f", "x.m::integer", "upper(x.s)", "x.d + 1", "x.s || '!'", "nullif(x.n, 3)",
            "(SELECT max(w) FROM b WHERE b.a_id = x.id)", "x.n BETWEEN 1 AND 3", "x.s LIKE 's%%'",
            "round(x.m, 1)", f"{self._number()}::numeric / {self._number()}::numeric",
            f"{self._number()}::bigint << 20", f"{self._number()}::int", f"abs({self._number()})",
            f"sqrt({self._number()})", f"x.n / {self._number()}", "x.t::date",
            "md5(x.s)", "x.n::text", "to_char(x.d, 'YY')", "x.c", "x.z", "coalesce(x.c, x.v)",
            "CASE WHEN x.o THEN x.c ELSE x.v END", "x.c || '!'", "length(x.c)", "x.c::text",
            "x.z::date", "coalesce(x.v, x.c)", "x.c = x.v", "nullif(x.c, x.v)", "x.z - x.z",
        )  # fmt: skip

    def _condition(self) -> str:
        return self._one(
            f"x.n = {self._value('n')}", f"x.s = {self._value('s')}", f"x.m > {self._value('m')}",
            f"x.n IN ({self._value('n')}, 2)", "x.o", "NOT x.o", "x.s IS NULL", "x.id < 20",
            f"x.d >= {self._value('d')}", f"x.v LIKE {self._value('s')}", "x.s < 's3'",
            "EXISTS (SELECT 1 FROM b WHERE b.a_id = x.id AND w > 3)", f"x.n <> {self._value('n')}",
            "x.id IN (SELECT a_id FROM b WHERE s = 'b1')", "x.s IS DISTINCT FROM 's1'",
            "x.c = 'c1'", "x.c IN ('c1', 'c2  ')", "x.c LIKE 'c1%%'", "x.v = x.c", "x.c < 'c2'",
            f"x.c = {self._value('s')}", f"x.z > {self._value('z')}", "x.z = x.t", "x.c <> x.s",
            "x.c = (SELECT max(c) FROM a)", "x.c = ANY(ARRAY['c1', 'c2'])", "x.z > x.d",
        )  # fmt: skip

    def text(self) -> str:
        source = self._one(
            "a AS x", "a AS x", "(SELECT * FROM a WHERE n < 5) AS x",
            "(SELECT id, n, s, o, m FROM a ORDER BY id DESC LIMIT 50) AS x",
        )  # fmt: skip
        if self._joined:
            source = self._one(
                "(a x JOIN b y ON x.id = y.a_id) AS x(id, n, s)", "a AS x (id, n, s, m, v, d)",
                "a AS x JOIN b USING (id) JOIN b AS c USING (id)",
                "a AS x JOIN b AS y ON x.id = y.a_id", "a AS x LEFT JOIN b AS y ON x.id = y.a_id",
                "a AS x NATURAL JOIN b", "a AS x JOIN b USING (id)", "a AS x, b AS y",
            )  # fmt: skip
        tail = ""
        if self._draw.random() < 0.35:
            key = self._one("x.n", "x.s", "x.o", "x.n % 2")
            tail = self._one("", f" HAVING count(*) > {self._draw.randint(0, 30)}")
            items = f"{key}, " + self._one(
                "count(*)", "sum(x.n)", "max(x.id)", "count(DISTINCT x.n)", "min(x.s)",
                "avg(x.n)", "string_agg(x.s, ',' ORDER BY x.s)", "count(x)",
            )  # fmt: skip
            tail = f" GROUP BY {key}{tail}"
        else:
            items = self._one(
                "*", "x.*", ", ".join(self._scalar() for _ in range(3)), "DISTINCT x.n",
                "count(DISTINCT x.c), min(x.z), max(x.d), sum(x.m)", "DISTINCT x.c",
            )  # fmt: skip
            if not self._joined and not items.startswith(("DISTINCT", "count")):
                tail = self._one("", " ORDER BY x.id DESC LIMIT 7", " ORDER BY x.m, x.id OFFSET 9")
        parts = (self._condition() for _ in range(self._draw.randint(0, 3)))
        where = self._one(" AND ", " OR ").join(parts)
        where = f" WHERE {where}" if where else ""
        return f"SELECT {items} FROM {source}{where}{tail}"


@pytest.fixture
def sides(
    door: Door,
) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Plaintext and the door, with the same plain tables."""
    with doors.plain() as first, door.connect() as second:
        for con in (first, second):
            con.execute("DROP TABLE IF EXISTS a; DROP TABLE IF EXISTS b")
            for sql in _TABLES:
                con.execute(sql)
        yield first, second


def _ran(con: psycopg.Connection[Any], drawn: _Drawn, text: str, binary: bool) -> object:
    try:
        cur = con.execute(text, drawn.values, prepare=True, binary=binary)
    except psycopg.Error as error:
        return error.sqlstate
    columns = [(item.name, item.type_code) for item in cur.description or ()]
    return columns, sorted(map(repr, cur.fetchall()))


@pytest.mark.parametrize("seed", range(3))
def test_random_queries_give_the_same(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], seed: int
) -> None:
    """The first runs are Python's, the others of those that are passed are not."""
    draw = random.Random(seed)
    for _ in range(70):
        drawn = _Drawn(draw)
        text, binary = drawn.text(), draw.random() < 0.5
        expected = _ran(sides[0], drawn, text, binary)
        for turn in range(3):
            assert _ran(sides[1], drawn, text, binary) == expected, (turn, text, drawn.values)


def test_what_others_change_is_seen(door: Door) -> None:
    """Also a table that is made anew, encrypted, under the name of a plain one."""
    with door.connect() as con, door.connect() as other:
        con.execute("DROP TABLE IF EXISTS a")
        con.execute("CREATE TABLE a (id bigint, n integer)")
        con.execute("INSERT INTO a VALUES (1, 1)")
        for turn in range(2, 7):
            assert con.execute("SELECT n FROM a WHERE id = 1", prepare=True).fetchone() == (
                turn - 1,
            )
            other.execute("UPDATE a SET n = %s", (turn,))
        other.execute("DROP TABLE a")
        other.execute("CREATE TABLE a (id bigint ENC, n integer ENC)")
        other.execute("INSERT INTO a VALUES (1, 99)")
        for _ in range(4):
            assert con.execute("SELECT n FROM a WHERE id = 1", prepare=True).fetchone() == (99,)


_KNOWN = (
    ("SELECT id, n FROM a WHERE id = $1", True), ("SELECT * FROM a WHERE n < $1", True),
    ("SELECT count(*), sum(n) FROM a JOIN b ON a.id = b.a_id WHERE w = $1", True),
    ("SELECT n FROM a WHERE s = 'x' AND id = $1", True), ("SELECT 1", True),
    ("SELECT $1 + 1", True),
    ("SELECT n FROM a ORDER BY n LIMIT $1", True), ("SELECT n FROM a ORDER BY s", False),
    ("SELECT now(), n FROM a WHERE id = $1", False), ("SELECT ctid FROM a", False),
    ("SELECT a FROM a WHERE id = $1", False), ("SELECT upper(s) FROM a", False),
    ("SELECT n FROM a WHERE s < 'x'", False), ("SELECT n FROM a FOR UPDATE", True),
    ("SELECT n FROM a, b FOR NO KEY UPDATE OF b SKIP LOCKED", True),
    ("SELECT n FROM (SELECT n FROM a) AS x FOR SHARE", False),
    ("SELECT min(s) FROM a", False), ("SELECT k FROM e WHERE id = $1", False),
    ("SELECT a.n FROM a JOIN e ON a.id = e.id", False), ("SELECT random()", False),
    ("SELECT n FROM a WHERE EXISTS (SELECT 1 FROM e)", False), ("SELECT n FROM of_a", False),
    ("SELECT relname FROM pg_class", False), ("SELECT generate_series(1, 3)", False),
    ("SELECT n, row_number() OVER () FROM a", False), ("TABLE a", False),
    ("WITH x AS (SELECT n FROM a) SELECT n FROM x", False), ("VALUES (1)", False),
    ("SELECT d FROM p", False), ("SELECT j FROM p", False), ("SELECT t FROM p", True),
    ("SELECT id FROM p WHERE t > $1", True), ("SELECT c FROM p WHERE c = 'x'", True),
    ("SELECT c FROM p WHERE v = c", False), ("SELECT coalesce(v, c) FROM p", False),
    ("SELECT CASE WHEN id > 1 THEN c ELSE v END FROM p", False),
    ("SELECT p.id FROM p JOIN a USING (id) JOIN b ON b.a_id = a.id", True),
    ("SELECT n FROM (SELECT n, id FROM a WHERE s = 'x') AS x WHERE id = $1", True),
    ("SELECT c FROM p ORDER BY c", False), ("SELECT max(c) FROM p", False),
    ("SELECT x.n FROM (SELECT now() AS n FROM a) AS x", False), ("SELECT t::date FROM p", False),
    ("SELECT x.n FROM (SELECT n FROM of_a) AS x", False), ("SELECT t = d2 FROM p", False),
    ("SELECT n FROM a UNION SELECT n FROM a", False), ("SELECT current_date", False),
    ("SELECT i FROM a AS x(i)", False), ("SELECT x.n FROM a AS x", True),
    ("SELECT a.n FROM a JOIN b ON a.id = b.a_id JOIN e2 ON e2.id = a.id", True),
    ("SELECT id FROM a JOIN e2 USING (id) JOIN a AS c USING (id)", True),
    ("SELECT c.n FROM a JOIN e2 USING (id), a AS c WHERE c.id = 1", True),
    ("SELECT current_setting('work_mem')", False), ("SELECT n FROM mine(1) AS m(n)", False),
    ("SELECT mine(n) FROM a", False), ("SELECT n FROM a TABLESAMPLE SYSTEM (50)", False),
    ("SELECT n FROM a WHERE s = 'x' COLLATE \"C\"", False), ("SELECT DISTINCT s FROM a", True),
    ("SELECT s FROM a GROUP BY s ORDER BY s", False), ("SELECT DISTINCT ON (s) n FROM a", True),
)  # fmt: skip


def test_no_other_query_is_passed_on() -> None:
    """What depends on more than the values of plain columns is run by Python."""
    url = servers.database_url("door_passing")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"), "anna")
    try:
        for sql in (
            "CREATE TABLE a (id bigint PRIMARY KEY, n integer, s text)",
            "CREATE TABLE b (a_id bigint, w integer)", "CREATE TABLE e2 (id bigint)",
            "CREATE VIEW of_a AS SELECT n FROM a",
            "CREATE TABLE e (id bigint ENC PRIMARY KEY, k text)", "CREATE DOMAIN dom AS integer",
            "CREATE TABLE p (id bigint, d dom, j jsonb, t timestamptz, c char(3), v varchar(3),"
            " d2 date)",
            "CREATE FUNCTION mine(x integer) RETURNS integer IMMUTABLE RETURN x",
        ):  # fmt: skip
            client.run(client.prepare(sql, []), [], [], [])
        for sql, passes in _KNOWN:
            prepared = client.prepare(sql, [])
            of_time = 1184
            values = [
                b"2024-01-01 00:00+00" if type_ == of_time else b"1"
                for type_ in prepared.parameters
            ]
            for _ in range(2):
                with suppress(Failed):
                    client.run(prepared, values, [0] * len(values), [])
                client.after()
            assert (type(client.way(prepared)).__name__ == "Pass") == passes, sql
        client.run(client.prepare("CREATE TEMP TABLE c (w integer)", []), [], [], [])
        prepared = client.prepare("SELECT w FROM c", [])
        client.run(prepared, [], [], [])
        client.after()
        assert client.way(prepared) is None
    finally:
        client.close()
        servers.drop_databases()
