"""Records hold what DuckDB holds, whatever the types; bytes that are no records are refused."""

from __future__ import annotations

import contextlib
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire import records
from louver.wire.questions import Field, KeyCodes, Level, Prepared, SumColumn

VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127", "0"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["(-9223372036854775807 - 1)", "9223372036854775807"],
    "UTINYINT": ["255"],
    "USMALLINT": ["65535"],
    "UINTEGER": ["4294967295"],
    "UBIGINT": ["18446744073709551615", "0"],
    "HUGEINT": [
        "170141183460469231731687303715884105727",
        "-170141183460469231731687303715884105727",
    ],
    "UHUGEINT": ["340282366920938463463374607431768211455", "0"],
    "FLOAT": ["1.5", "'nan'", "'-inf'", "'-0.0'"],
    "DOUBLE": ["1e300", "'nan'", "'inf'", "'-0.0'"],
    "DECIMAL(4,1)": ["-999.9", "0.1"],
    "DECIMAL(18,3)": ["-123456789012345.678"],
    "DECIMAL(38,10)": ["-1234567890123456789012345678.0123456789"],
    "DATE": ["'1970-01-01'", "'infinity'", "'0044-03-15 (BC)'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'"],
    "TIMESTAMP": ["'2013-01-01 05:00:00'", "'-infinity'", "'1969-12-31 23:59:59.999999'"],
    "TIMESTAMP_S": ["'2013-01-01 05:00:00'"],
    "TIMESTAMP_MS": ["'2013-01-01 05:00:00.123'"],
    "TIMESTAMP_NS": ["'2013-01-01 05:00:00.123456789'"],
    "TIMESTAMP WITH TIME ZONE": ["'2013-01-01 05:00:00+01'"],
    "INTERVAL": ["'-3 months 4 days 5 microseconds'"],
    "UUID": ["'00112233-4455-6677-8899-aabbccddeeff'"],
    "VARCHAR": ["''", "'Zürich'", "'a' || chr(0) || 'b'", "repeat('x', 300)"],
    "BLOB": ["''::BLOB", "'\\x00\\xFF'::BLOB"],
}


def connection() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("SET arrow_lossless_conversion = true")
    found.execute("SET TimeZone = 'UTC'")
    return found


def prepared(fields: tuple[Field, ...], level: Level, **more: Any) -> Prepared:
    codes = KeyCodes((), None, b"", False, 0)
    return Prepared(b"v" * 32, b"s" * 32, b"d" * 32, codes, fields, (level,), level.count, **more)


@pytest.mark.parametrize("type_name", VALUES)
def test_every_type_comes_back(type_name: str) -> None:
    database = connection()
    rows = ", ".join(f"(CAST({text} AS {type_name}))" for text in [*VALUES[type_name], "NULL"])
    table = database.execute(f"SELECT x AS c0 FROM (VALUES {rows}) t(x)").to_arrow_table()
    fields = records.layout(table, [type_name])
    points = np.zeros(table.num_rows, np.uint64)
    found = records.encode(table, fields, points, points + 7, bits=1, most_bytes=1 << 20)
    assert found.level.width % 16 == 0
    back = records.decode(found.records[0].tobytes(), prepared(fields, found.level), 0, 7)
    database.register("back", back).register("sent", table)
    assert database.execute("SELECT typeof(c0) FROM back").fetchall()[0] == (type_name,)
    query = "SELECT CAST(c0 AS VARCHAR) FROM {}"
    assert database.execute(query.format("back")).fetchall() == (
        database.execute(query.format("sent")).fetchall()
    )
    assert records.matrix(back, fields).tobytes() == records.matrix(table, fields).tobytes()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 2),
            st.one_of(st.none(), st.text(max_size=6)),
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        ),
        max_size=30,
    )
)
def test_each_key_has_its_rows(rows: list[tuple[int, int, str | None, int | None]]) -> None:
    rows.sort(key=lambda row: row[:2])
    table = pa.table(
        {
            "c0": pa.array([row[2] for row in rows], pa.string()),
            "o0": pa.array([row[3] for row in rows], pa.int64()),
        }
    )
    fields = records.layout(table, ["VARCHAR", "BIGINT"])
    points = np.array([row[0] for row in rows], np.uint64)
    marks = np.array([row[1] for row in rows], np.uint64)
    found = records.encode(table, fields, points, marks, bits=3, most_bytes=1 << 20)
    assert found.points.tolist() == sorted({row[0] for row in rows})
    assert found.level.count == len(found.points)
    form = prepared(fields, found.level)
    for at, point in enumerate(found.points.tolist()):
        for mark in range(3):
            back = records.decode(found.records[at].tobytes(), form, 0, mark)
            wanted = [row[2:] for row in rows if row[:2] == (point, mark)]
            assert list(zip(*back.to_pydict().values(), strict=True)) == wanted


def test_too_many_bytes_are_refused_before_they_are_made() -> None:
    table = pa.table({"c0": ["x" * 1000] + [""] * 99})
    fields = records.layout(table, ["VARCHAR"])
    points = np.arange(100, dtype=np.uint64)
    with pytest.raises(errors.Error) as caught:
        records.encode(table, fields, points, points, bits=7, most_bytes=50_000)
    assert caught.value.code == "provider.large"


FIELDS = (
    Field("c0", "VARCHAR", 9),
    Field("p0", "HUGEINT", 16),
    Field("c1", "DECIMAL(4,1)", 16),
    Field("c2", "TIME", 8),
    Field("c3", "BOOLEAN", 1),
    Field("c4", "UUID", 16),
)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=240), st.one_of(st.none(), st.integers(0, 2**64 - 1)))
def test_any_bytes_are_a_record_or_refused(data: bytes, mark: int | None) -> None:
    form = prepared(FIELDS, Level(1, 1, 3, len(data)))
    with contextlib.suppress(errors.OperationalError):
        records.decode(data, form, 0, mark).to_pydict()


def test_sums_are_put_together_from_limbs() -> None:
    groups = pa.table({"g0": ["a", None, "c"]})
    fields = (
        *records.layout(groups, ["VARCHAR"]),
        Field("p0", "HUGEINT", 16),
        Field("p1", "BIGINT", 8),
    )
    form = prepared(
        fields,
        Level(1, 1, 1, 16),
        groups=records.groups_record(groups, fields[:1], 1 << 20),
        group_count=3,
        sums=(SumColumn(0, 0), SumColumn(0, 1), SumColumn(1, 0)),
    )
    database = connection()
    database.register("sums", records.decode_sums(form, [1, 2, 3, 5, -7, 0, 0, 0, -9]))
    rows = database.execute("SELECT g0, p0, p1 FROM sums").fetchall()
    assert rows == [("a", 1 + (2 << 32), 3), (None, 5 - (7 << 32), 0), ("c", 0, -9)]
    with pytest.raises(errors.Error):
        records.decode_sums(form, [1] * 8)
    with pytest.raises(errors.Error):
        records.decode_sums(form, [0, 0, 1 << 70] * 3)
