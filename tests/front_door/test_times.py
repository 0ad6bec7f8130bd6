"""Words for the time in the place of new values: a statement's own time, or that of its
transaction, whoever runs it, under the zone of the session.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from louver.trusted.apps.pgproxy import status
from louver.trusted.apps.pgproxy.moments import timed
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from tests.front_door import door as doors
from tests.front_door.door import Door, opened

_COLUMNS = "id integer{0} PRIMARY KEY, n integer{0}, z timestamptz{0}, t timestamp{0}, d date{0}"
_LATE = timedelta(seconds=30)
_NOWS = ("now()", "CURRENT_TIMESTAMP", "transaction_timestamp()", "Now ( )")
_LOCAL = ("LOCALTIMESTAMP", "localtimestamp")


def _insert(draw: random.Random) -> str:
    z, t = draw.choice(_NOWS), draw.choice((*_NOWS, *_LOCAL))
    d = draw.choice((*_NOWS, *_LOCAL, "CURRENT_DATE"))
    values = f"({draw.choice(('%(k)s, %(n)s', '%(n)s, %(k)s'))}, {z}, {t}, {d})"
    names = "(id, n, z, t, d)" if values.startswith("(%(k)s") else "(n, id, z, t, d)"
    return f"INSERT INTO x {names} VALUES {values}"


def _update(draw: random.Random) -> str:
    z, t = draw.choice(_NOWS), draw.choice((*_NOWS, *_LOCAL))
    tail = draw.choice(("", " RETURNING id, n"))
    return f"UPDATE x SET z = {z}, n = %(n)s, t = {t}, d = {z} WHERE id = %(k)s{tail}"


@pytest.fixture(params=[" ENC", ""])
def sides(
    door: Door, request: pytest.FixtureRequest
) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Plaintext and the door, with the same table."""
    with doors.plain() as first, door.connect() as second:
        for con, enc in ((first, ""), (second, request.param)):
            con.execute("DROP TABLE IF EXISTS x")
            con.execute(f"CREATE TABLE x ({_COLUMNS.format(enc)})")
        yield first, second


def _holds(con: psycopg.Connection[Any], key: int, zone: str) -> tuple[object, ...]:
    """Whether a row's times agree with each other, and the rest of it."""
    rows = con.execute(
        "SELECT id, n, t = (z AT TIME ZONE %s), d = (z AT TIME ZONE %s)::date FROM x WHERE id = %s",
        (zone, zone, key),
    ).fetchall()
    return tuple(rows)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_a_statement_has_one_time(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], zone: str
) -> None:
    """Also from the run on from which Python has no part in it."""
    draw = random.Random(zone)
    for con in sides:
        con.execute("SELECT set_config('TimeZone', %s, false)", (zone,))
    key = 0
    for text in (*(_insert(draw) for _ in range(4)), *(_update(draw) for _ in range(4))):
        for turn in range(5):
            key = key + 1 if "INSERT" in text else draw.randint(1, key)
            for con in sides:
                cursor = con.execute(text, {"k": key, "n": turn}, prepare=True)
                assert cursor.rowcount == 1, text
            seen = [_holds(con, key, zone) for con in sides]
            assert seen[0] == seen[1] == ((key, turn, True, True),), (text, seen)
            (times,) = sides[1].execute("SELECT z, now() FROM x WHERE id = %s", (key,)).fetchall()
            assert abs(times[1] - times[0]) < _LATE


@pytest.mark.parametrize("taken_over", ["", "SELECT count(*) FROM x AS a, x AS b", "SAVEPOINT s"])
def test_a_transaction_has_one_time(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], taken_over: str
) -> None:
    """Also once Python has taken over, and the next one has another."""
    con, draw = sides[1], random.Random(taken_over)
    texts = [_insert(draw), _update(draw)]
    before = datetime.min
    for turn in range(8):
        con.execute("BEGIN")
        con.execute(texts[0], {"k": 2 * turn, "n": 1}, prepare=True)
        con.execute(texts[0], {"k": 2 * turn + 1, "n": 1}, prepare=True)
        con.execute(texts[1], {"k": 2 * turn, "n": 5}, prepare=True)
        if taken_over and turn > 3:
            con.execute(taken_over)
        con.execute(texts[1], {"k": 2 * turn + 1, "n": 6}, prepare=True)
        if turn % 2:
            assert con.execute("SELECT now() = z FROM x WHERE id = %s", (2 * turn,)).fetchall() == [
                (True,)
            ]
        con.execute("COMMIT")
        rows = con.execute(
            "SELECT DISTINCT t FROM x WHERE id IN (%s, %s)", (2 * turn, 2 * turn + 1)
        ).fetchall()
        assert len(rows) == 1
        assert rows[0][0] > before
        before = rows[0][0]
    (times,) = con.execute("SELECT now(), clock_timestamp()").fetchall()
    assert times[1] - times[0] < timedelta(seconds=2)  # the time goes on


@pytest.mark.parametrize("enc", [" ENC", ""])
def test_they_run_without_python(tmp_path: Path, enc: str) -> None:
    """In transactions and outside of any."""
    monitor = str(tmp_path / "monitor")
    draw = random.Random(1)
    texts = [_insert(draw), _update(draw).partition(" RETURNING")[0]]
    with opened("--metrics", monitor) as door, door.connect() as con:
        con.execute(f"CREATE TABLE x ({_COLUMNS.format(enc)})")
        # Of a column that has few values the catalog knows each.
        for key in range(100):
            for text in texts:
                con.execute(text, {"k": key, "n": key}, prepare=True)
        for begins in (False, True):
            before = status.state_of((monitor, None))["direct_total"]
            for turn in range(10):
                key = 100 + turn + 10 * begins
                if begins:
                    con.execute("BEGIN")
                for text in texts:
                    con.execute(text, {"k": key, "n": 1}, prepare=True)
                if begins:
                    con.execute("COMMIT")
            ran = status.state_of((monitor, None))["direct_total"] - before
            assert ran >= 12, begins


_TEXTS = (
    ("INSERT INTO x VALUES ($1, now())", 1), ("UPDATE x SET a = now() WHERE b = $1", 1),
    ("INSERT INTO x VALUES (now(), $1), ($2, CURRENT_TIMESTAMP) RETURNING a", 2),
    ("INSERT INTO x VALUES (1, now()) ON CONFLICT DO NOTHING", 1),
    ("INSERT INTO x VALUES (1, now()) ON CONFLICT (a) DO UPDATE SET b = now()", 0),
    ("INSERT INTO x VALUES (f(now()))", 0), ("INSERT INTO x VALUES (now() - $1)", 0),
    ("INSERT INTO x SELECT now()", 0), ("SELECT now()", 0), ("DELETE FROM x WHERE a < now()", 0),
    ("UPDATE x SET a = now() WHERE b < now()", 0), ("UPDATE x SET a = CURRENT_TIMESTAMP(3)", 0),
    ("UPDATE x SET (a, b) = (now(), 1)", 0), ("UPDATE x SET a = b = now()", 0),
    ("UPDATE x SET a = 'now()', b = now()", 1), ('UPDATE x SET a = "now"(), b = now()', 0),
    ("UPDATE x SET a = x.now(), b = 1", 0), ("INSERT INTO x VALUES ('now()') -- now()", 0),
    ("INSERT INTO x VALUES (now() /* now() */, E'\\'now()', $$ now() $$, \"current_date\")", 1),
    ("WITH y AS (SELECT 1) INSERT INTO x VALUES (now())", 0),
    ("UPDATE x SET a = now()::date", 0), ("UPDATE x SET a = CURRENT_DATE, b = now() FROM y", 2),
    ("UPDATE x SET a = b IS DISTINCT FROM now()", 0), ("MERGE INTO x USING y ON now() = 1", 0),
    ("INSERT INTO x (now) VALUES (now())", 1), ("UPDATE x SET now = now() RETURNING now()", 0),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "count"), _TEXTS)
def test_words_that_are_values(sql: str, count: int) -> None:
    """All that a column is set to, or nothing."""
    with speaking(DIALECT):
        (text,) = lexer.split(sql)
        known = timed(text, lexer.tokens(text.plain))
        assert (0 if known is None else len(known.types)) == count
        if known is not None:
            assert known.text.home.count("$") == sql.count("$") + count
