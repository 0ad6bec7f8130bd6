"""Drivers say the types of parameters, bigint of any number and varchar of any text: rows and
errors are PostgreSQL's, of whatever types the columns are.
"""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from tests.front_door import door as doors
from tests.front_door.door import Door

_TABLES = (
    "CREATE TABLE typed (id integer ENC PRIMARY KEY, s smallint ENC, n bigint ENC, t text ENC,"
    " c char(4) ENC, v varchar(4) ENC, m numeric(6,2) ENC)",
    "CREATE TABLE flat (id integer PRIMARY KEY, s smallint, n bigint, t text, c char(4),"
    " v varchar(4), m numeric(6,2))",
)
_COLUMNS = {"id": "n", "s": "n", "n": "n", "t": "t", "c": "t", "v": "t", "m": "n"}
_NUMBERS = (b"1", b"2", b"3", b"-7", b"40000", b"2147483648", b"9223372036854775807", None)
_TEXTS = (b"a", b"ab", b"ab  ", b"abcd", b"abcde", b"abcd ", b"", None)
#: int2, int4, int8, numeric; text, varchar, char(n); unknown.
_TYPES = {"n": (21, 23, 20, 1700, 0), "t": (25, 1043, 1042, 0)}
_REFUSED = b"0A000"
_EARLY = (b"22003", b"22001")
_FORMS = (
    "SELECT id, t FROM {t} WHERE {a} = $1", "SELECT id FROM {t} WHERE {a} IN ($1, $2) AND id > 0",
    "SELECT count(*) FROM {t} WHERE {a} <> $1 AND {a} = $2", "SELECT {a} FROM {t} WHERE $1 = {a}",
    "SELECT id FROM {t} WHERE {a} BETWEEN $1 AND $2", "SELECT id FROM {t} WHERE {a} < $1",
    "SELECT id, {a} FROM {t} WHERE {a} = $1 OR {a} IS NULL ORDER BY id LIMIT 3",
    "UPDATE {t} SET {a} = $1 WHERE {a} = $2", "UPDATE {t} SET {b} = $1 WHERE id = $2",
    "UPDATE {t} SET n = n + 1, {a} = $1 WHERE id = $2 RETURNING {a}",
    "INSERT INTO {t} (id, {b}) VALUES ($2, $1)", "DELETE FROM {t} WHERE {a} = $1 AND id = $2",
    "INSERT INTO {t} (id, {b}) VALUES ($2, $1), ($2, $1) ON CONFLICT DO NOTHING",
    "SELECT id FROM {t} WHERE {a} = $1 AND ({a}, id) = ($1, $2)",
    "SELECT id FROM {t} WHERE {a} IN (($1), $1) AND id = $2",
    "SELECT coalesce({a}, $1) FROM {t} WHERE id = $2",
)  # fmt: skip


def _ran(con: psycopg.Connection[Any], given: Any) -> Any:
    done = con.pgconn.exec_prepared(b"p", given)
    if done.error_message:
        return done.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    rows = [
        [done.get_value(row, column) for column in range(done.nfields)]
        for row in range(done.ntuples)
    ]
    return sorted(map(str, rows)), done.command_status, done.nfields


def _compare(
    sides: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
    sql: str, types: list[int], values: list[list[bytes | None]], *, within: bool,
) -> int:  # fmt: skip
    """All values on both, in transactions or not; how many of them the door refuses."""
    prepared = [con.pgconn.prepare(b"p", sql.encode(), types) for con in sides]
    states = [p.error_field(psycopg.pq.DiagnosticField.SQLSTATE) for p in prepared]
    assert states[0] == states[1] or states[1] == _REFUSED, (sql, types)
    if any(states):
        values = []
    refused = 0
    for given in values:
        for con in sides if within else ():
            con.pgconn.exec_(b"BEGIN")
        plain, own = (_ran(con, given) for con in sides)
        refused += own == _REFUSED
        # Some plans convert a value before it is known that no row gets it.
        pairs = (plain, own), (own, plain)
        early = any(a in _EARLY and b[:2] == ([], b"UPDATE 0") for a, b in pairs)
        assert early or own in (plain, _REFUSED), (sql, types, given, plain, own)
        for con in sides if within else ():
            con.pgconn.exec_(b"COMMIT" if own == plain else b"ROLLBACK")
    for con in sides:
        con.pgconn.exec_(b"DEALLOCATE ALL")
    return refused


@pytest.mark.parametrize("seed", range(4))
def test_what_a_parameter_is_said_to_be(door: Door, seed: int) -> None:
    """Each statement comes with several values, so that it is known without Python."""
    draw = random.Random(seed)
    with doors.plain() as first, door.connect() as second:
        for con in (first, second):
            con.execute("DROP TABLE IF EXISTS typed, flat")
            for sql in _TABLES:
                con.execute(sql.replace(" ENC", "") if con is first else sql)
            for table in ("typed", "flat"):
                con.execute(
                    f"INSERT INTO {table} SELECT i, i, i, (ARRAY['a', 'ab', 'abcd'])[i % 3 + 1],"
                    " (ARRAY['a', 'ab', 'abcd'])[i % 3 + 1], 'ab', i FROM generate_series(1, 9) AS"
                    " g(i)"
                )
        count = 0
        for _ in range(40):
            column = draw.choice(list(_COLUMNS))
            kind = _COLUMNS[column]
            other = draw.choice([c for c in _COLUMNS if c != "id" and _COLUMNS[c] == kind])
            sql = draw.choice(_FORMS).format(t=draw.choice(("typed", "flat")), a=column, b=other)
            both = "{a} = $2" in sql or "IN ($1, $2)" in sql or f"{column} = $2" in sql
            types = [draw.choice(_TYPES[kind])]
            listed = {"n": _NUMBERS, "t": _TEXTS}
            values = [[draw.choice(listed[kind])] for _ in range(8)]
            if "$2" in sql:
                second_kind = kind if both or "BETWEEN" in sql else "n"
                types.append(draw.choice(_TYPES[second_kind]))
                more = listed[second_kind]
                values = [[*own, draw.choice(more)] for own in values]
            # What compares char(n) with other texts may be refused.
            count += _compare(
                (first, second),
                sql,
                types,
                values,
                within=draw.random() < 0.5 or not sql.startswith("SELECT"),
            )
        for table in ("typed", "flat"):
            rows = [con.execute(f"SELECT * FROM {table}").fetchall() for con in (first, second)]
            assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))
        assert count < 100
