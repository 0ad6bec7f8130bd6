"""Values go round without loss, whatever their type: judged by the server's own text of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor.local.postgres import values
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from tests.generated import cases

#: Types, and values of them as PostgreSQL reads them.
EXAMPLES: dict[str, list[str]] = {
    "boolean": ["t", "f"],
    "smallint": ["0", "-32768", "32767"],
    "integer": ["0", "-2147483648", "2147483647"],
    "bigint": ["0", "-9223372036854775808", "9223372036854775807"],
    "oid": ["0", "4294967295"],
    "real": ["0", "-0", "1e-45", "3.4028235e38", "NaN", "Infinity", "-Infinity", "0.1"],
    "double precision": ["0", "-0", "5e-324", "1.7976931348623157e308", "NaN", "-Infinity", "0.1"],
    "numeric": ["0", "0.00", "-0.5", "NaN", "Infinity", "-Infinity", "1e-16383", "9" * 200 + ".1",
                "12345678901234567890123456789012345678901234567890", "10000", "0.00010000"],
    "numeric(10,2)": ["0", "-99999999.99", "1.5"],
    "numeric(38,38)": ["0.1", "-0.99999999999999999999999999999999999999"],
    "numeric(50,10)": ["1234567890123456789012345678901234567890.1", "NaN"],
    "numeric(5,-2)": ["12300", "NaN"],
    "numeric(3,5)": ["0.00999"],
    "text": ["", "a", "\u00e4\U0001f600", "a'b\"c\\d\n", " "],
    "varchar(3)": ["", "abc"],
    "character(3)": ["", "a", "abc"],
    "name": ["a", ""],
    '"char"': ["a", ""],
    "bytea": ["", r"\x00ff10", "abc"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "date": ["2000-01-01", "1970-01-01", "infinity", "-infinity", "4713-01-01 BC", "5874897-12-31"],
    "time": ["00:00", "24:00", "12:34:56.789012"],
    "time(0)": ["12:34:56"],
    "timetz": ["00:00+00", "24:00-15:59", "12:34:56.789012+05:30"],
    "timestamp": ["2000-01-01", "infinity", "-infinity", "4713-01-01 BC", "294246-12-31 23:59:59"],
    "timestamptz": ["2000-01-01 12:00+02", "infinity", "-infinity", "1900-01-01 00:00:00.000001"],
    "interval": ["0", "1 mon -2 days 3.000001 s", "infinity", "-infinity", "178000000 years",
                 "-2562047788:00:54.775807"],
    "json": ['{"a":  1}', "null", "[1,2]"],
    "jsonb": ['{"a": 1}', "null", "[1, 2.50]"],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "integer[]": ["{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[2:3]={1,2}"],
    "text[]": ["{}", '{"a b",NULL,"NULL",""}'],
    "numeric(10,2)[]": ["{1.5,NULL}"],
    "int4range": ["empty", "[1,5)", "(,)", "[1,)"],
    "numrange": ["(1.5,2.5]"],
    "tstzrange": ["[2000-01-01 00:00+00,infinity)"],
    "int4multirange": ["{}", "{[1,3),[5,7)}"],
    "inet": ["10.0.0.1", "10.0.0.1/8", "::1"],
    "cidr": ["10.0.0.0/8", "2001:db8::/32"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(4)": ["1010"],
    "bit varying": ["", "10101"],
    "money": ["-12.34", "0"],
    "point": ["(1.5,-2)", "(NaN,Infinity)"],
    "line": ["{1,2,3}"], "lseg": ["[(0,0),(1,1)]"], "box": ["(1,1),(0,0)"],
    "path": ["((0,0),(1,1))", "[(0,0),(1,1)]"], "polygon": ["((0,0),(1,1),(1,0))"],
    "circle": ["<(0,0),1>"],
    "tsvector": ["'a':1A 'b':2", ""], "tsquery": ["'a' & !'b'"],
    "pg_lsn": ["16/B374D848"], "tid": ["(0,1)"], "xid8": ["18446744073709551615"],
    "regclass": ["pg_class"], "regtype": ["integer"],
    "mood": ["sad", "o'k"], "positive": ["1"], "pair": ['(1,"a b")', "(,)"],
    "nested": ['("(1,x)",1.50)'], "floats": ["[1.5,2.5)"],
}  # fmt: skip
_TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'o''k'); CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TYPE pair AS (a integer, b text); CREATE TYPE nested AS (p pair, n numeric(10,2));
CREATE TYPE floats AS RANGE (SUBTYPE = double precision)
"""


def have_types(engine: PostgresLocalEngine) -> None:
    for sql in _TYPES.split(";"):
        engine.workspace.execute(sql)


def gone_round(engine: PostgresLocalEngine, type_: str, texts: list[str | None]) -> None:
    """Texts as values of a type: out, and in again, they are the same to the server."""
    union = " UNION ALL ".join(
        f"SELECT ${ordinal + 1}::{type_}, {ordinal}::bigint" for ordinal in range(len(texts))
    )
    source = f"SELECT v, n FROM ({union}) AS t(v, n)"
    own = engine.workspace.fetchall(f"SELECT v::text, n FROM ({source}) AS t ORDER BY n", texts)
    rows = engine.finish({}, f"SELECT v, n FROM ({source}) AS t ORDER BY n", texts)
    assert rows.num_rows == len(texts)
    columns = [("v", type_), ("n", "bigint")]
    again = engine.finish({("public", "t"): (columns, rows)}, "SELECT v::text, n FROM t ORDER BY n")
    assert engine.python_rows(again) == own
    whole = engine.finish({("public", "t"): (columns, rows)}, "SELECT v, n FROM t ORDER BY n")
    assert values.same(whole, rows)


@pytest.mark.parametrize("type_", EXAMPLES)
def test_every_type_goes_round(engine: PostgresLocalEngine, type_: str) -> None:
    have_types(engine)
    gone_round(engine, type_, [*EXAMPLES[type_], None])
    gone_round(engine, type_, [None])


def test_a_field_says_the_type_of_an_answer(engine: PostgresLocalEngine) -> None:
    for type_ in ("integer", "numeric(10,2)", "numeric", "jsonb", "interval", "time", "uuid"):
        rows = engine.finish({}, f"SELECT NULL::{type_} AS c")
        assert rows.schema.field("c").type == engine.arrow_field(type_).type


def test_a_time_that_arrow_does_not_reach_is_refused(engine: PostgresLocalEngine) -> None:
    with pytest.raises(errors.DataError) as error:
        engine.finish({}, "SELECT '294276-12-31'::timestamp")
    assert error.value.code == "postgres.value"
    assert engine.is_fit()


def test_a_nan_of_a_decimal_is_refused(engine: PostgresLocalEngine) -> None:
    with pytest.raises(errors.DataError) as error:
        engine.finish({}, "SELECT 'NaN'::numeric(10,2)")
    assert error.value.code == "postgres.nan"
    assert engine.python_rows(engine.finish({}, "SELECT 1.50::numeric(10,2)")) == [
        (Decimal("1.50"),)
    ]


_NUMBERS = st.decimals(allow_nan=True, allow_infinity=True, places=None).filter(
    lambda value: not value.is_snan()
)
_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
_TIMES = st.datetimes()


@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1), st.floats(width=64), st.floats(width=32),
            st.decimals("-1e30", "1e30", places=7), _TEXTS, st.binary(max_size=20), st.uuids(),
            st.dates(), _TIMES, st.times(),
            st.timedeltas(timedelta(days=-99_999), timedelta(days=99_999)), st.booleans(),
        ),
        min_size=1, max_size=8,
    )
)  # fmt: skip
@settings(max_examples=cases(40))
def test_python_s_values_go_round(rows: list[tuple[Any, ...]]) -> None:
    engine = shared()
    types = [
        "bigint", "double precision", "real", "numeric", "text", "bytea", "uuid", "date",
        "timestamp", "time", "interval", "boolean",
    ]  # fmt: skip
    texts = [
        "(" + ", ".join(f"${ordinal * 12 + i + 1}::{type_}" for i, type_ in enumerate(types)) + ")"
        for ordinal in range(len(rows))
    ]
    given_values = [value for row in rows for value in row]
    names = [f"c{ordinal}" for ordinal in range(12)]
    sql = f"SELECT * FROM (VALUES {', '.join(texts)}) AS t({', '.join(names)})"
    done = engine.finish({}, sql, given_values)
    for got, expected in zip(engine.python_rows(done), rows, strict=True):
        for value, other in zip(got, expected, strict=True):
            assert value == other or (value != value and other != other)
    columns = list(zip(names, types, strict=True))
    again = engine.finish({("public", "t"): (columns, done)}, "SELECT * FROM t")
    assert values.same(again, done)
    shown = ", ".join(f"{name}::text" for name in names)
    own = engine.workspace.fetchall(f"SELECT {shown} FROM ({sql}) AS t", given_values)
    filled = engine.finish({("public", "t"): (columns, done)}, f"SELECT {shown} FROM t")
    assert engine.python_rows(filled) == own


_SHARED: list[PostgresLocalEngine] = []


def shared() -> PostgresLocalEngine:
    """One engine for all examples of a test."""
    if not _SHARED:
        _SHARED.append(PostgresLocalEngine())
    return _SHARED[0]


def test_python_s_values_are_psycopg_s(engine: PostgresLocalEngine) -> None:
    engine.change_setting("timezone", "SET timezone = 'Asia/Kolkata'")
    (row,) = engine.python_rows(
        engine.finish(
            {},
            "SELECT 1::smallint, 1.5::numeric, 'a'::char(2), '\\x00'::bytea, '2000-01-02'::date,"
            " '2000-01-02 03:04+00'::timestamptz, '1 year 1 mon 1 day'::interval,"
            " '01:02+03:30'::timetz, '{\"a\": 1}'::jsonb, '{1,2}'::int[], '10.0.0.1'::inet,"
            " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL::jsonb",
        )
    )
    assert row == (
        1, Decimal("1.5"), "a ", b"\0", date(2000, 1, 2),
        datetime(2000, 1, 2, 3, 4, tzinfo=UTC), timedelta(days=365 + 30 + 1),
        time(1, 2, tzinfo=timezone(timedelta(hours=3, minutes=30))), {"a": 1}, [1, 2],
        "10.0.0.1/32", UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), None,
    )  # fmt: skip
    assert str(row[5].utcoffset()) == "5:30:00"


@pytest.mark.parametrize("value", ["'infinity'::date", "'24:00'::time", "'1 BC-01-01'::date",
                                   "'-infinity'::timestamptz", "'24:00+00'::timetz"])  # fmt: skip
def test_what_python_has_no_value_for_is_refused(engine: PostgresLocalEngine, value: str) -> None:
    sql = f"SELECT {value}" if "BC" not in value else "SELECT '0001-01-01 BC'::date"
    rows = engine.finish({}, sql)
    with pytest.raises(errors.DataError) as error:
        engine.python_rows(rows)
    assert error.value.code == "postgres.python"


def test_types_that_are_only_printed(engine: PostgresLocalEngine) -> None:
    engine.declare("GRANT SELECT ON pg_class TO pg_monitor")
    sql = (
        'SELECT relacl, relname, relacl AS "Odd x", 1 AS n FROM pg_class'
        " WHERE relname = $1 AND $2 > 0 ORDER BY relname -- a comment"
    )
    rows = engine.ask_schema(sql, ["pg_class", 1])
    assert rows.column_names == ["relacl", "relname", "Odd x", "n"]
    assert "pg_monitor=r/" in rows.column(0)[0].as_py()
    assert rows.column(1)[0].as_py() == "pg_class"
    everything = engine.finish({}, "SELECT * FROM pg_class WHERE oid < $1", [100])
    assert "relacl" in everything.column_names
    with pytest.raises(errors.Error), engine.rehearsal() as connection:
        connection.fetchall("SELECT relacl FROM pg_class")
    assert engine.is_fit()


def test_plain_arrow(engine: PostgresLocalEngine) -> None:
    rows = engine.finish({}, "SELECT '1 mon 2 days 3 s'::interval AS i, 1 AS n UNION ALL SELECT"
                             " NULL, 2 ORDER BY n")  # fmt: skip
    plain = engine.plain_arrow(rows)
    assert plain.schema.field("i").type == pa.month_day_nano_interval()
    assert plain.column("i").to_pylist() == [pa.MonthDayNano([1, 2, 3_000_000_000]), None]
    for text in ("infinity", "3000000 hours"):
        with pytest.raises(errors.DataError):
            engine.plain_arrow(engine.finish({}, f"SELECT '{text}'::interval"))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [(5, "smallint", 5), (1 << 40, "bigint", 1 << 40), (1 << 70, "numeric", 1 << 70),
     (1.5, "double precision", 1.5), (True, "boolean", True), ("a", "text", "a"),
     (b"\1", "bytea", b"\1"), (Decimal("1.5"), "numeric", Decimal("1.5")),
     (timedelta(1), "interval", timedelta(1)), ({"a": 1}, "jsonb", {"a": 1})],
)  # fmt: skip
def test_a_parameter_that_stands_alone_has_its_value_s_type(
    engine: PostgresLocalEngine, value: object, type_: str, expected: object
) -> None:
    done = engine.finish({}, "SELECT $1 AS v", [value])
    assert engine.last_columns == [("v", type_)]
    assert engine.python_rows(done) == [(expected,)]


def test_parameters_have_the_types_that_the_statement_gives_them(
    engine: PostgresLocalEngine,
) -> None:
    # As a bigint it would be refused, as a text it would be compared as one.
    done = engine.finish({}, "SELECT $1 + 1 AS a, $2::date - 1 AS b, ARRAY[1,2] = $3 AS c",
                         [1, date(2000, 1, 2), [1, 2]])  # fmt: skip
    assert engine.python_rows(done) == [(2, date(2000, 1, 1), True)]
    with pytest.raises(errors.Error):
        engine.finish({}, "SELECT $name", {"name": 1})
