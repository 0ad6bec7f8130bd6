"""A point stands for a key, and an interval of points for the keys between two constants."""

from __future__ import annotations

import datetime as dt
import hashlib
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire import keycode, ordinals
from louver.wire.keycode import Column
from louver.wire.ordinals import Position
from tests.generated import cases


def fake_hash(salt: bytes, columns: list[pa.Array]) -> tuple[bytes, bytes]:
    """Like the compiled one: two words for each row."""
    rows = [
        hashlib.blake2b(repr(row).encode(), key=salt, digest_size=16).digest()
        for row in zip(*(column.to_pylist() for column in columns), strict=True)
    ]
    return b"".join(row[:8] for row in rows), b"".join(row[8:] for row in rows)


@pytest.fixture(autouse=True)
def hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    from louver._rust import server

    if not hasattr(server, "fss_hash"):
        monkeypatch.setattr(server, "fss_hash", fake_hash, raising=False)


@cache
def database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET arrow_lossless_conversion = true")
    database.execute("SET TimeZone = 'UTC'")
    return database


def column(type_name: str, values: list[Any], texts: bool = False) -> Column:
    """A column as a provider makes it."""
    rows = ", ".join("(?)" for _ in values)
    sql = f"CAST(x AS {type_name})"
    query = f"SELECT {sql} AS x, {keycode.text_sql(sql, type_name)} AS t FROM (VALUES {rows}) v(x)"
    table = database().execute(query, values).to_arrow_table()
    length = 0
    if type_name == "VARCHAR":
        length = max(len(value.encode()) for value in values)
    bounded = not texts and (ordinals.has_units(type_name) or type_name == "VARCHAR")
    encoded = ordinals.units(table["x"], type_name, length) if bounded else None
    return Column(type_name, encoded, table["t"].combine_chunks(), length)


INTEGERS = {
    "TINYINT": 8,
    "SMALLINT": 16,
    "INTEGER": 32,
    "BIGINT": 64,
    "HUGEINT": 63,
}


@settings(max_examples=cases(60), deadline=None)
@given(st.sampled_from(sorted(INTEGERS)), st.data())
def test_spans_of_integers_are_those_of_brute_force(type_name: str, data: st.DataObject) -> None:
    top = 2 ** (INTEGERS[type_name] - 1)
    step = data.draw(st.sampled_from([1, 2, 5, 60]))
    near = st.one_of(
        st.integers(-(top // step), (top - 1) // step).map(lambda value: value * step),
        st.integers(-3, 3).map(lambda value: max(-top, min(top - 1, value * step))),
        st.sampled_from([-top, top - 1]),
    )
    values = data.draw(st.lists(near, min_size=1, max_size=8))
    encoded = column(type_name, values)
    codes = keycode.choose([], encoded, distinct=1)
    points, _ = keycode.encode(codes, [], encoded, len(values))
    assert codes.bits <= 64
    _agree(data, codes, points, values, [Fraction(value) for value in values])


@settings(max_examples=cases(60), deadline=None)
@given(st.data())
def test_spans_of_texts_are_those_of_brute_force(data: st.DataObject) -> None:
    letters = st.text(st.sampled_from("ab\x01~é"), max_size=4)
    values = data.draw(st.lists(letters, min_size=1, max_size=8))
    encoded = column("VARCHAR", values)
    codes = keycode.choose([], encoded, distinct=1)
    points, _ = keycode.encode(codes, [], encoded, len(values))
    coded = [value.encode() for value in values]
    for _ in range(6):
        constant = data.draw(st.one_of(letters, st.text(max_size=12), st.text("ab\0", max_size=9)))
        position = ordinals.position(constant, "VARCHAR", encoded.length)
        for low in (True, False):
            for inclusive in (True, False):
                span = keycode.span(
                    codes,
                    [],
                    [],
                    position if low else None,
                    None if low else position,
                    low_inclusive=inclusive,
                    high_inclusive=inclusive,
                )
                wanted = [_holds(value, constant.encode(), low, inclusive) for value in coded]
                assert _inside(points, span) == wanted


def _holds(value: Any, constant: Any, low: bool, inclusive: bool) -> bool:
    if inclusive:
        return bool(value >= constant if low else value <= constant)
    return bool(value > constant if low else value < constant)


def _inside(points: Any, span: tuple[int, int] | None) -> list[bool]:
    return [span is not None and span[0] <= point <= span[1] for point in points.tolist()]


def _agree(
    data: st.DataObject, codes: Any, points: Any, values: list[Any], exact: list[Fraction]
) -> None:
    ends = st.one_of(
        st.none(),
        st.sampled_from(values).map(Fraction),
        st.fractions(max_denominator=8),
        st.sampled_from(values).flatmap(
            lambda value: st.sampled_from([-1, 1, Fraction(1, 2)]).map(lambda near: value + near)
        ),
        st.just(Fraction(2**70)),
    )
    for _ in range(8):
        low, high = data.draw(ends), data.draw(ends)
        low_in, high_in = data.draw(st.booleans()), data.draw(st.booleans())
        span = keycode.span(
            codes,
            [],
            [],
            None if low is None else ordinals.position(low, "HUGEINT"),
            None if high is None else ordinals.position(high, "HUGEINT"),
            low_inclusive=low_in,
            high_inclusive=high_in,
        )
        wanted = [
            (low is None or _holds(value, low, True, low_in))
            and (high is None or _holds(value, high, False, high_in))
            for value in exact
        ]
        assert _inside(points, span) == wanted


EQUALS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "UBIGINT": [0, 2**64 - 1, 2**63],
    "BIGINT": [-(2**63), 2**63 - 1, 0],
    "HUGEINT": [-(2**127), 2**127 - 1, 5],
    "DECIMAL(4,1)": [Decimal("-1.5"), Decimal("999.9"), Decimal("0.0")],
    "DECIMAL(38,20)": [Decimal("0.00000000000000000007"), Decimal(100000000000000000)],
    "DATE": [dt.date(1969, 7, 20), dt.date(2013, 1, 1), dt.date(1, 1, 1)],
    "TIMESTAMP": [dt.datetime(2013, 1, 1, 5), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "TIMESTAMP_S": [dt.datetime(2013, 1, 1, 5), dt.datetime(1969, 12, 31, 23, 59, 59)],
    "TIMESTAMP_MS": [dt.datetime(2013, 1, 1, 5, 0, 0, 123000)],
    "TIMESTAMP_NS": [dt.datetime(2013, 1, 1, 5), dt.datetime(1700, 1, 1)],
    "TIMESTAMP WITH TIME ZONE": [dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)],
    "TIME": [dt.time(0), dt.time(23, 59, 59, 999999)],
    "VARCHAR": ["", "a", "Zürich", "a\0b"],
    "UUID": ["00112233-4455-6677-8899-aabbccddeeff"],
}


@pytest.mark.parametrize("type_name", EQUALS)
def test_the_client_finds_the_point_of_every_value(type_name: str) -> None:
    values = EQUALS[type_name]
    encoded = column(type_name, values, texts=type_name == "VARCHAR")
    codes = keycode.choose([encoded], None, distinct=len(values))
    points, marks = keycode.encode(codes, [encoded], None, len(values))
    assert len(set(points.tolist())) == len(values)
    for at, value in enumerate(values):
        texts = [str(encoded.texts[at])] if encoded.texts is not None else []
        numbers = [] if codes.hashed else [ordinals.unit(value, type_name)]
        if encoded.units is not None:
            assert ordinals.unit(value, type_name) % 2**64 == int(encoded.units.wrapped[at])
        assert keycode.point(codes, numbers, texts) == points[at]
        assert keycode.fingerprint(codes, numbers, texts) == marks[at]


def test_what_cannot_be_in_the_table_has_no_point() -> None:
    encoded = column("INTEGER", [10, 20, 40])
    codes = keycode.choose([encoded], None, distinct=3)
    assert (codes.hashed, codes.equal_bits, codes.bits) == (False, 2, 2)
    assert [keycode.point(codes, [value]) for value in (0, 10, 15, 20, 40, 50)] == (
        [None, 0, None, 1, 3, None]
    )


def test_equal_and_bounded_expressions_share_a_point() -> None:
    months, days = (
        column("INTEGER", [1, 2, 2, 3]),
        column("DATE", ["2013-01-01"] * 3 + ["2013-02-01"]),
    )
    codes = keycode.choose([months], days, distinct=3)
    points, marks = keycode.encode(codes, [months], days, 4)
    assert codes.bits == 3
    assert codes.interval is not None
    day = ordinals.unit(dt.date(2013, 1, 15), "DATE")
    assert keycode.span(codes, [2], [], None, day) == (2, 2)
    assert keycode.span(codes, [3], [], day, None) == (5, 5)
    assert keycode.span(codes, [9], [], day, None) is None
    assert points.tolist() == [0, 2, 2, 5]
    assert marks.tolist() == [0, 1, 1, 2]


def test_texts_are_hashed_with_room_to_spare_where_no_record_tells_them_apart() -> None:
    names = column("VARCHAR", [f"name {at}" for at in range(1000)], texts=True)
    codes = keycode.choose([names], None, distinct=1000)
    assert (codes.hashed, codes.bits) == (True, 24)
    assert keycode.choose([names], None, distinct=1000, spare=True).bits == 50
    assert keycode.choose([names], None, distinct=1000, spare=True, most=31).bits == 31
    with pytest.raises(errors.Error):
        keycode.choose([names], None, distinct=1000, spare=True, most=29)
    buckets = keycode.choose_buckets([names], distinct=1000, most=24)
    assert buckets.bits == 11
    points, marks = keycode.encode(buckets, [names], None, 1000)
    assert int(points.max()) < 2**11
    assert len(set(marks.tolist())) == 1000


def test_what_needs_too_many_bits_is_said() -> None:
    wide = column("BIGINT", [-(2**63), 0, 2**63 - 1])
    with pytest.raises(errors.Error) as caught:
        keycode.choose([], column("HUGEINT", [0, 1, 2**64]), distinct=1)
    assert caught.value.code == "provider.wide"
    with pytest.raises(errors.Error):
        keycode.choose([column("VARCHAR", ["a", "b"], texts=True)], wide, distinct=2)
    assert keycode.choose([], wide, distinct=1).bits == 64
    with pytest.raises(errors.Error):
        keycode.choose([], wide, distinct=1, most=24)


def test_all_of_64_bits_are_used() -> None:
    wide = column("BIGINT", [-(2**63), 0, 2**63 - 1])
    codes = keycode.choose([], wide, distinct=1)
    points, _ = keycode.encode(codes, [], wide, 3)
    assert points.tolist() == [0, 2**63, 2**64 - 1]
    assert keycode.span(codes, [], [], None, None) == (0, 2**64 - 1)
    assert keycode.span(codes, [], [], 1, Position(2**63 + 5)) == (2**63 + 1, 2**64 - 1)


def test_without_a_condition_there_is_one_point() -> None:
    codes = keycode.choose([], None, distinct=1)
    assert (codes.bits, keycode.point(codes)) == (1, 0)
    assert keycode.encode(codes, [], None, 2)[0].tolist() == [0, 0]


def test_nulls_and_odd_texts_have_no_units() -> None:
    for values, kind in (([1, None], pa.int32()), (["a\0"], pa.string()), (["abcd"], pa.string())):
        with pytest.raises(ValueError):
            ordinals.units(
                pa.array(values, kind), "VARCHAR" if kind == pa.string() else "INTEGER", 3
            )


@pytest.mark.parametrize(
    ("value", "type_name", "wanted"),
    [
        (1.5, "INTEGER", Position(1, False)),
        (Decimal("1.005"), "DECIMAL(5,2)", Position(100, False)),
        (-1, "DECIMAL(5,2)", Position(-100)),
        (Decimal("-0.001"), "DECIMAL(5,2)", Position(-1, False)),
        (dt.datetime(1970, 1, 2, 12), "DATE", Position(1, False)),
        (dt.date(1970, 1, 2), "TIMESTAMP_S", Position(86400)),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 500000), "TIMESTAMP_S", Position(-1, False)),
    ],
)
def test_a_constant_between_two_values_has_its_place(
    value: object, type_name: str, wanted: Position
) -> None:
    assert ordinals.position(value, type_name) == wanted


def test_an_offset_needs_no_order_of_rows() -> None:
    values = np.random.default_rng(1).integers(-(2**40), 2**40, 1000)
    encoded = column("BIGINT", values.tolist())
    codes = keycode.choose([encoded], None, distinct=1000, spare=True)
    points, _ = keycode.encode(codes, [encoded], None, 1000)
    assert not codes.hashed
    assert (np.argsort(points) == np.argsort(values)).all()
