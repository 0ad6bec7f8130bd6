"""Every type goes through the door as PostgreSQL sends it: the same bytes, text and binary, of
columns that the server has sealed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import pq
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.range import Range, RangeInfo, register_range

from tests.front_door import door as doors
from tests.front_door.door import Door

_NUMBERS = ("0", "-1", "1", "7", "32767", "-32768")
#: Types with values as PostgreSQL reads them.
TYPES: dict[str, tuple[str, ...]] = {
    "boolean": ("t", "f"),
    "smallint": _NUMBERS,
    "integer": (*_NUMBERS, "2147483647", "-2147483648"),
    "bigint": (*_NUMBERS, "9223372036854775807", "-9223372036854775808"),
    "numeric": ("0", "-0.00", "1.50", "123456789012345678901234567890.000000001", "1e-20", "-5e30"),
    "numeric(12,2)": ("0", "-0.05", "1.5", "9999999999.99", "-9999999999.99"),
    "numeric(5,0)": ("0", "-99999", "10000"),
    "real": ("0", "-0", "1e-45", "3.4028235e38", "0.1", "1e6", "999999", "1234567", "NaN",
             "-Infinity"),
    "double precision": (
        "0", "-0", "5e-324", "1.7976931348623157e308", "0.1", "1e15", "999999999999999",
        "123456789012345680", "1e-5", "0.0001", "0.00012345", "NaN", "Infinity", "1e20", "-1e-7",
    ),
    "text": ("", "a", "hällo", "a\tb\\n\n", "'quoted'", "x" * 3000, "\U0001f600"),
    "varchar(5)": ("", "abcde", "äöü"),
    "char(4)": ("", "ab", "abcd"),
    "name": ("x",),
    "bytea": ("", "\\x00", "\\xdeadbeef", "\\x5c5c"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
    "date": (
        "2000-01-01", "1970-01-01", "1999-12-31", "0001-01-01", "0044-03-15 BC", "4713-01-01 BC",
        "9999-12-31", "12345-06-07", "5874897-12-31", "infinity", "-infinity", "2024-02-29",
    ),
    "timestamp": (
        "2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:34:56.7",
        "0001-01-01 00:00:00.000001", "0044-03-15 12:00:00 BC", "infinity", "-infinity",
        "1969-12-31 23:59:59.5", "10000-01-01 00:00:00",
    ),
    "timestamptz": (
        "2000-01-01 00:00:00+00", "2024-02-29 12:34:56.7+05:30", "0044-03-15 12:00:00+00 BC",
        "infinity", "-infinity", "1900-01-01 00:00:00.123456+00",
    ),
    "time": ("00:00:00", "23:59:59.999999", "24:00:00", "12:30:00.5"),
    "timetz": ("00:00:00+00", "23:59:59.999999-11:30"),
    "interval": ("0", "1 year 2 mons 3 days 04:05:06.000007", "-1 day", "-00:00:01.5"),
    "json": ('{"a" : 1}', "[]", "null", '"x"'),
    "jsonb": ('{"b": [1, 2.50], "a": null}', "[]", "3"),
    "integer[]": ("{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={5,6}"),
    "text[]": ("{}", '{a,"b c",NULL,"NULL","q\\"x"}'),
    "inet": ("1.2.3.4", "::1/64"),
    "macaddr": ("08:00:2b:01:02:03",),
    "int4range": ("empty", "[1,5)", "(,3)"),
    "tstzrange": ("[2024-01-01 00:00+00,)",),
    "point": ("(1,2)", "(-0,NaN)"),
    "bit(3)": ("101",),
    "varbit": ("", "1"),
    "money": ("12.34", "-0.01"),
    "tsvector": ("'a':1 'b':2",),
    "oid": ("0", "4294967295"),
    "mood": ("sad", "happy"),
    "pair": ('(1,"x y")', "(,)"),
}  # fmt: skip
_STYLES = ("ISO, MDY", "SQL, DMY", "German", "Postgres, YMD")


@pytest.fixture(scope="module")
def both(door: Door) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    """Plaintext and the door, with the user's types."""
    with doors.plain() as first, door.connect() as second:
        for connection in (first, second):
            connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
            connection.execute("CREATE TYPE pair AS (n integer, t text)")
            connection.execute("SET TimeZone = 'UTC'")
        yield first, second


def _bytes(connection: psycopg.Connection, sql: str, form: int) -> list[list[bytes | None]]:
    result = connection.pgconn.exec_params(sql.encode(), [], result_format=form)
    assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
    return [
        [result.get_value(row, column) for column in range(result.nfields)]
        for row in range(result.ntuples)
    ]


def _described(connection: psycopg.Connection, sql: str) -> list[tuple[object, ...]]:
    result = connection.pgconn.exec_params(sql.encode(), [])
    return [
        (result.fname(n), result.ftype(n), result.fsize(n), result.fmod(n), result.ftablecol(n))
        for n in range(result.nfields)
        if int(result.ftype(n)) < 16_384
    ]


@pytest.mark.parametrize("type_", TYPES)
def test_values_are_the_bytes_that_postgresql_sends(
    both: tuple[psycopg.Connection, psycopg.Connection], type_: str
) -> None:
    """Of stored columns with ENC and without, and of constants; `numeric` keeps its digits."""
    first, second = both
    name = "v_" + "".join(c if c.isalnum() else "_" for c in type_)
    first.execute(f"CREATE TABLE {name} (id integer, e {type_}, p {type_})")
    second.execute(f"CREATE TABLE {name} (id integer, e {type_} ENC, p {type_})")
    for number, value in enumerate((*TYPES[type_], None)):
        for connection in both:
            connection.execute(f"INSERT INTO {name} VALUES (%s, %s, %s)", (number, value, value))
    sql = f"SELECT e, p, id FROM {name} ORDER BY id"
    assert _described(first, sql) == _described(second, sql)
    forms = (0,) if type_ in ("mood", "pair") else (0, 1)
    for form in forms:
        assert _bytes(second, sql, form) == _bytes(first, sql, form)
    for value in TYPES[type_]:
        constant = "SELECT '" + value.replace("'", "''") + f"'::{type_}"
        for form in forms:
            assert _bytes(second, constant, form) == _bytes(first, constant, form)


@pytest.mark.parametrize("style", _STYLES)
def test_texts_follow_the_settings(
    both: tuple[psycopg.Connection, psycopg.Connection], style: str
) -> None:
    """Whatever was set, wherever it was undone."""
    first, second = both
    draw = random.Random(style)
    zone = draw.choice(("America/New_York", "Asia/Kolkata", "UTC"))
    settings = [
        f"SET DateStyle = '{style}'", f"SET TimeZone = '{zone}'",
        f"SET bytea_output = {draw.choice(('hex', 'escape'))}",
        f"SET extra_float_digits = {draw.choice((-3, 0, 1, 3))}", "SET IntervalStyle = iso_8601",
    ]  # fmt: skip
    sql = (
        "SELECT '2024-02-29'::date, '2024-02-29 12:34:56.7'::timestamp,"
        " '2024-02-29 12:34:56.7+00'::timestamptz, '\\x00ff61'::bytea, 0.1::float8 + 0.2::float8,"
        " 1.1::float4, '1 day 2 hours'::interval, ARRAY['2024-02-29'::date]"
    )
    for text in settings:
        for connection in both:
            connection.execute(text)
        assert _bytes(second, sql, 0) == _bytes(first, sql, 0)
    for text in ("BEGIN", "SET LOCAL DateStyle = 'ISO'", "ROLLBACK", "RESET ALL"):
        for connection in both:
            connection.execute(text)
        assert _bytes(second, sql, 0) == _bytes(first, sql, 0)
    for connection in both:
        connection.execute("SET TimeZone = 'UTC'")


def test_parameters_are_read_in_both_forms(
    both: tuple[psycopg.Connection, psycopg.Connection],
) -> None:
    """What the server sends in a form, it takes in that form again."""
    first, _ = both
    for type_, values in TYPES.items():
        if type_ in ("mood", "pair", "name", "tsvector"):
            continue
        number = first.execute("SELECT %s::regtype::oid", (type_,)).fetchone()
        assert number is not None
        for value in values:
            text = "SELECT '" + value.replace("'", "''") + f"'::{type_}"
            for form in (0, 1):
                given = _bytes(first, text, form)[0]
                outcomes = []
                for connection in both:
                    result = connection.pgconn.exec_params(
                        f"SELECT $1::{type_}".encode(), given, param_formats=[form],
                        param_types=[number[0]], result_format=1,
                    )  # fmt: skip
                    outcomes.append(
                        (
                            result.status,
                            result.error_message
                            and result.error_field(pq.DiagnosticField.SQLSTATE),
                            result.ntuples and result.get_value(0, 0),
                        )
                    )
                assert outcomes[0] == outcomes[1], (type_, value, form)


def test_types_of_users_bear_the_numbers_that_the_client_knows(door: Door) -> None:
    """In binary form, whoever has written them, and whichever database here has computed them."""
    with door.connect() as first, door.connect() as between, door.connect() as second:
        for sql in (
            "CREATE TYPE fruit AS ENUM ('fig', 'kiwi')", "CREATE TYPE point2 AS (x int, f fruit)",
            "CREATE TYPE span AS RANGE (subtype = float8)",
            "CREATE TABLE owned (id bigint ENC PRIMARY KEY, f fruit ENC, fs fruit[] ENC,"
            " p point2 ENC, ps point2[] ENC, ss span[])",
            "INSERT INTO owned VALUES (1, 'kiwi', '{fig,NULL,kiwi}', '(1,fig)',"
            """ '{"(2,kiwi)",NULL}', '{"[1,2]",empty}'), (2, NULL, '{}', '(,)', '{}', NULL)""",
        ):  # fmt: skip
            first.execute(sql)
        between.execute("CREATE TYPE other AS ENUM ('x')")
        for con in (first, second):
            _require_numbers(con)
        first.execute("DROP TABLE owned; DROP TYPE span, point2, fruit, other")


def _require_numbers(con: psycopg.Connection[Any]) -> None:
    enum = EnumInfo.fetch(con, "fruit")
    composite = CompositeInfo.fetch(con, "point2")
    span = RangeInfo.fetch(con, "span")
    assert enum is not None
    assert composite is not None
    assert span is not None
    register_enum(enum, con)
    register_composite(composite, con)
    register_range(span, con)
    fruit, point = enum.enum, composite.python_type
    assert fruit is not None
    assert point is not None
    fig, kiwi = fruit["fig"], fruit["kiwi"]
    wanted = [
        (kiwi, [fig, None, kiwi], point(1, fig), [point(2, kiwi), None],
         [Range(1.0, 2.0, "[]"), Range(empty=True)]),
        (None, [], point(None, None), [], None),
    ]  # fmt: skip
    listed = "SELECT f, fs, p, ps, ss FROM owned"
    for binary in (False, True):
        assert con.execute(f"{listed} ORDER BY id", binary=binary).fetchall() == wanted
        for _ in range(4):
            row = con.execute(f"{listed} WHERE id = %s", (1,), binary=binary, prepare=True)
            assert row.fetchone() == wanted[0]
        sql = "SELECT ARRAY['fig'::fruit], ARRAY[ARRAY['kiwi'::fruit]], ROW(3, 'kiwi')::point2"
        assert con.execute(sql, binary=binary).fetchone() == ([fig], [[kiwi]], point(3, kiwi))
