"""The lake's maps of values keep DuckDB's order: of every type, its extremes among them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver.trusted.vault.index_keys import map_bounds, map_values, mappable
from tests.generated import cases

#: Values that every test of a type has, as SQL.
EDGES: dict[str, list[str]] = {
    "BOOLEAN": ["false", "true"],
    "TINYINT": ["-128", "-1", "0", "1", "127"],
    "SMALLINT": ["-32768", "-1", "0", "32767"],
    "INTEGER": ["-2147483648", "-1", "0", "2147483647"],
    "BIGINT": ["-9223372036854775808", "-1", "0", "9223372036854775807"],
    "HUGEINT": [
        f"{sign}{value}"
        for value in (0, 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63, 2**64, 2**90, 2**127 - 1)
        for sign in ("", "-")
    ]
    + ["-170141183460469231731687303715884105728"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "9223372036854775808", "18446744073709551615"],
    "UHUGEINT": [str(v) for v in (0, 2**63 - 1, 2**63, 2**64, 2**90, 2**128 - 1)],
    "DECIMAL(4,1)": ["-999.9", "-0.1", "0", "0.1", "999.9"],
    "DECIMAL(9,2)": ["-9999999.99", "0", "9999999.99"],
    "DECIMAL(18,3)": ["-999999999999999.999", "0", "999999999999999.999"],
    "DECIMAL(38,2)": [
        "-" + "9" * 36 + ".99", "-46116860184273879.05", "-46116860184273879.04", "0.01", "0",
        "46116860184273879.04", "46116860184273879.03", "9" * 36 + ".99",
    ],
    "FLOAT": ["'-inf'", "-1.5", "-1e-45", "'-0.0'", "0.0", "1e-45", "3.4e38", "'inf'", "'nan'"],
    "DOUBLE": ["'-inf'", "-1.5", "'-5e-324'", "'-0.0'", "0.0", "'5e-324'", "'inf'", "'nan'"],
    "DATE": ["'-infinity'", "'0001-01-01'", "'1969-12-31'", "'1970-01-01'", "'infinity'"],
    "TIME": ["'00:00:00'", "'12:34:56.789012'", "'24:00:00'"],
    "TIME_NS": ["'00:00:00'", "'12:34:56.789012345'", "'24:00:00'"],
    "TIMESTAMP": ["'-infinity'", "'1000-01-01'", "'1969-12-31 23:59:59.999999'", "'infinity'"],
    "TIMESTAMP_S": ["'-infinity'", "'1969-12-31 23:59:59'", "'2100-01-01'", "'infinity'"],
    "TIMESTAMP_MS": ["'-infinity'", "'1969-12-31 23:59:59.999'", "'infinity'"],
    "TIMESTAMP_NS": ["'-infinity'", "'1969-12-31 23:59:59.999999999'", "'infinity'"],
    "TIMESTAMP WITH TIME ZONE": ["'-infinity'", "'1970-01-01 00:00:00+02'", "'infinity'"],
    "UUID": [f"'{word}-0000-0000-0000-000000000001'"
             for word in ("00000000", "7fffffff", "80000000", "ffffffff")],
    "ENUM('z', 'it''s', 'a', '')": ["'z'", "'it''s'", "'a'", "''"],
    "VARCHAR": ["''", "'a'", "'Ab'", "'aa'", "'abcdefgh'", "'abcdefghi'", "'é'", "'~'", "'😀'"],
    "BLOB": ["''::BLOB", "'\\x00'::BLOB", "'\\x7F'::BLOB", "'\\x80'::BLOB", "'\\xFF'::BLOB"],
}  # fmt: skip


def _wholes(type_: str) -> st.SearchStrategy[str]:
    sign = 0 if type_.startswith("U") else 1
    sizes = {"TINY": 8, "SMALL": 16, "INTEGER": 32, "BIG": 64, "HUGE": 128}
    bits = next(b for name, b in sizes.items() if type_.removeprefix("U").startswith(name))
    low, high = -(1 << bits - 1) * sign, (1 << bits - sign) - 1
    return st.integers(low, high).map(str)


def _decimals(type_: str) -> st.SearchStrategy[str]:
    digits, scale = map(int, type_[8:-1].split(","))
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(
        lambda v: f"{'-' * (v < 0)}{abs(v) // 10**scale}.{abs(v) % 10**scale:0{scale}d}"
    )


def values(type_: str) -> st.SearchStrategy[str]:
    """Values of a type as SQL."""
    if "INT" in type_:
        return _wholes(type_)
    if type_.startswith("DECIMAL"):
        return _decimals(type_)
    if type_ in ("FLOAT", "DOUBLE"):
        floats = st.floats(width=32) if type_ == "FLOAT" else st.floats()
        return floats.map(lambda v: f"'{v!r}'")
    if type_ == "DATE":
        return st.integers(-700_000, 2_900_000).map(lambda d: f"DATE '1970-01-01' + ({d})")
    if type_.startswith("TIMESTAMP"):
        micros = st.integers(-9_000_000_000_000_000, 9_000_000_000_000_000)
        return micros.map(lambda u: f"make_timestamp(({u})::BIGINT)")
    if type_ == "UUID":
        return st.uuids().map(lambda u: f"'{u}'")
    if type_ == "VARCHAR":
        texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=14)
        return texts.map(lambda t: "'" + t.replace("'", "''") + "'")
    if type_ == "BLOB":
        return st.binary(max_size=12).map(lambda b: f"unhex('{b.hex()}')")
    return st.sampled_from(EDGES[type_])


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"arrow_lossless_conversion": "true"}) as connection:
        connection.execute("SET TimeZone='UTC'")
        yield connection


def ordered(plain: duckdb.DuckDBPyConnection, type_: str, rows: list[str]) -> pa.Table:
    """Values in DuckDB's order, with equal ones numbered alike, as its lossless Arrow has them."""
    given_rows = ", ".join(f"(({row})::{type_})" for row in rows)
    return plain.execute(
        f"SELECT v, dense_rank() OVER (ORDER BY v) AS place FROM (VALUES {given_rows}) AS t(v) "
        "ORDER BY v NULLS FIRST"
    ).to_arrow_table()


def check(plain: duckdb.DuckDBPyConnection, type_: str, rows: list[str], letters: bool) -> None:
    table = ordered(plain, type_, rows)
    mapped = map_values(table["v"], type_, letters).to_pylist()
    assert mapped == sorted(mapped), (type_, rows)
    pairs = itertools.pairwise(zip(table["place"].to_pylist(), mapped, strict=True))
    assert all(a[1] == b[1] for a, b in pairs if a[0] == b[0]), "equal values have one number"
    assert map_bounds(table["v"], type_, letters) == (mapped[0], mapped[-1], 0)
    # A constant has the number that the column's values have.
    for number in range(len(mapped)):
        point = map_values(table["v"].slice(number, 1), type_, letters)[0].as_py()
        assert point == mapped[number]


@pytest.mark.parametrize("type_", EDGES)
def test_edges_keep_duckdbs_order(plain: duckdb.DuckDBPyConnection, type_: str) -> None:
    check(plain, type_, EDGES[type_], letters=False)


@pytest.mark.parametrize("type_", EDGES)
@settings(max_examples=cases(25), deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_any_values_keep_duckdbs_order(
    plain: duckdb.DuckDBPyConnection, type_: str, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(values(type_), min_size=1, max_size=12))
    check(plain, type_, rows + data.draw(st.lists(st.sampled_from(EDGES[type_]))), letters=False)


@settings(max_examples=cases(60), deadline=None, suppress_health_check=[*HealthCheck])
@given(texts=st.lists(st.text("`abz{AZ~é 09", max_size=14), min_size=1, max_size=12))
def test_twelve_letters_keep_duckdbs_order(
    plain: duckdb.DuckDBPyConnection, texts: list[str]
) -> None:
    check(plain, "VARCHAR", [f"'{text}'" for text in [*texts, "Ab", "aa"]], letters=True)


def test_nulls_are_counted_and_stay() -> None:
    column = pa.chunked_array([pa.array([3, None]), pa.array([-1, None, 9])])
    middle = 1 << 63
    assert map_bounds(column, "BIGINT") == (middle - 1, middle + 9, 2)
    assert map_values(column, "BIGINT").to_pylist() == [
        middle + 3, None, middle - 1, None, middle + 9,
    ]  # fmt: skip
    assert map_bounds(pa.array([None, None], pa.int32()), "INTEGER") == (None, None, 2)
    assert map_bounds(pa.array([], pa.int32()), "INTEGER") == (None, None, 0)


@pytest.mark.parametrize("type_", ["INTERVAL", "BIT", "TIME WITH TIME ZONE", "INTEGER[]", "JSON"])
def test_types_without_a_map(type_: str) -> None:
    assert not mappable(type_)
    with pytest.raises(ValueError, match="no order"):
        map_bounds(pa.array([1]), type_)


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (pa.array([1], pa.timestamp("ns")), "TIMESTAMP"),
        (pa.array([1], pa.time32("ms")), "TIME"),
        (pa.array(["1"]), "INTEGER"),
        (pa.array([b"x" * 8], pa.binary(8)), "UUID"),
    ],
)
def test_arrays_of_another_type_are_refused(array: Any, type_: str) -> None:
    with pytest.raises(ValueError, match="is none of DuckDB's type"):
        map_values(array, type_)
