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
from louver.wire import records, row_codec
from louver.wire.questions import Field, KeyCodes, Level, Prepared, Slot, SumColumn
from tests.generated import cases

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
    database = duckdb.connect()
    database.execute("SET arrow_lossless_conversion = true")
    database.execute("SET TimeZone = 'UTC'")
    return database


def prepared(fields: tuple[Field, ...], level: Level, **more: Any) -> Prepared:
    codes = KeyCodes((), None, b"", False, 0)
    return Prepared(b"v" * 32, b"s" * 32, b"d" * 32, codes, fields, (level,), level.count, **more)


def sent(encoded: records.Encoded, at: int) -> bytes:
    """What travels of a record; what does not is zero."""
    width = encoded.level.width
    record: bytes = encoded.records[at].tobytes()
    assert len(record) == encoded.level.stored
    assert len(record) % 16 == 0
    assert not any(record[width:])
    return record[:width]


@pytest.mark.parametrize("type_name", VALUES)
def test_every_type_comes_back(type_name: str) -> None:
    database = connection()
    rows = ", ".join(f"(CAST({text} AS {type_name}))" for text in [*VALUES[type_name], "NULL"])
    table = database.execute(f"SELECT x AS c0 FROM (VALUES {rows}) t(x)").to_arrow_table()
    fields = row_codec.fields_of(table, [type_name])
    points = np.zeros(table.num_rows, np.uint64)
    encoded = records.encode(table, fields, points, points + 7, bits=1, most_bytes=1 << 20)
    back = records.decode(sent(encoded, 0), prepared(fields, encoded.level), 0, 7)
    database.register("back", back).register("sent", table)
    assert database.execute("SELECT typeof(c0) FROM back").fetchall()[0] == (type_name,)
    query = "SELECT CAST(c0 AS VARCHAR) FROM {}"
    assert database.execute(query.format("back")).fetchall() == (
        database.execute(query.format("sent")).fetchall()
    )
    slots = row_codec.layout(table, fields)
    assert row_codec.layout(back, fields) == slots
    again = row_codec.matrix(back, fields, slots)
    assert again.tobytes() == row_codec.matrix(table, fields, slots).tobytes()


@settings(max_examples=cases(60), deadline=None)
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
    fields = row_codec.fields_of(table, ["VARCHAR", "BIGINT"])
    points = np.array([row[0] for row in rows], np.uint64)
    marks = np.array([row[1] for row in rows], np.uint64)
    encoded = records.encode(table, fields, points, marks, bits=3, most_bytes=1 << 20)
    assert encoded.points.tolist() == sorted({row[0] for row in rows})
    assert encoded.level.count == len(encoded.points)
    form = prepared(fields, encoded.level)
    for at, point in enumerate(encoded.points.tolist()):
        for mark in range(3):
            back = records.decode(sent(encoded, at), form, 0, mark)
            wanted = [row[2:] for row in rows if row[:2] == (point, mark)]
            assert list(zip(*back.to_pydict().values(), strict=True)) == wanted


def test_too_many_bytes_are_refused_before_they_are_made() -> None:
    table = pa.table({"c0": ["x" * 1000] + [""] * 99})
    fields = row_codec.fields_of(table, ["VARCHAR"])
    points = np.arange(100, dtype=np.uint64)
    with pytest.raises(errors.Error) as caught:
        records.encode(table, fields, points, points, bits=7, most_bytes=50_000)
    assert caught.value.code == "provider.large"


@pytest.mark.parametrize(
    ("type_name", "values", "slot"),
    [
        ("BIGINT", "0, 0", Slot(0, False)),
        ("BIGINT", "0, NULL", Slot(0, True)),
        ("BIGINT", "-1", Slot(1, False)),
        ("BIGINT", "-128, 127", Slot(1, False)),
        ("BIGINT", "128", Slot(2, False)),
        ("BIGINT", "-129, NULL", Slot(2, True)),
        ("UBIGINT", "255", Slot(1, False)),
        ("UHUGEINT", "256", Slot(2, False)),
        ("HUGEINT", "-32769", Slot(3, False)),
        ("DECIMAL(9,2)", "327.68", Slot(3, False)),
        ("DATE", "'2013-05-05'", Slot(2, False)),
        ("BOOLEAN", "false", Slot(0, False)),
        ("DOUBLE", "1.5", Slot(8, False)),
        ("VARCHAR", "'', 'Zürich', NULL", Slot(7, True)),
        ("VARCHAR", "''", Slot(0, False)),
        ("BLOB", "''::BLOB, NULL", Slot(1, True)),
        ("BLOB", "repeat('x', 255)::BLOB", Slot(256, False)),
        ("BLOB", "repeat('x', 256)::BLOB", Slot(258, False)),
    ],
)
def test_columns_are_as_narrow_as_their_values(type_name: str, values: str, slot: Slot) -> None:
    query = f"SELECT CAST(x AS {type_name}) AS c0 FROM (SELECT unnest([{values}]) AS x)"
    table = connection().execute(query).to_arrow_table()
    fields = row_codec.fields_of(table, [type_name])
    assert row_codec.layout(table, fields) == (slot,)
    zeros = np.zeros(table.num_rows, np.uint64)
    encoded = records.encode(table, fields, zeros, None, bits=1, most_bytes=1 << 20)
    assert encoded.level.width == 1 + table.num_rows * (slot.width + slot.nulls)
    back = records.decode(sent(encoded, 0), prepared(fields, encoded.level))
    assert back.to_pylist() == table.to_pylist()


@settings(max_examples=cases(100), deadline=None)
@given(st.lists(st.none() | st.integers(-(2**127), 2**127 - 1) | st.integers(-300, 300)))
def test_integers_keep_their_values(values: list[int | None]) -> None:
    data = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
    valid = np.array([value is not None for value in values], bool)
    flags = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    array = pa.Array.from_buffers(pa.binary(16), len(values), [flags, pa.py_buffer(data)])
    table = pa.table({"p0": array})
    fields = (Field("p0", "HUGEINT"),)
    (slot,) = slots = row_codec.layout(table, fields)
    back = row_codec.read(row_codec.matrix(table, fields, slots), fields, slots)["p0"]
    integers = [value.as_py() for value in back.combine_chunks().storage]
    assert [value and int.from_bytes(value, "little", signed=True) for value in integers] == values
    bounds = [value for value in values if value is not None]
    if slot.width:
        half = 1 << 8 * (slot.width - 1) >> 1
        assert not all(-half <= value < half for value in bounds), "less would have done"


def test_what_does_not_travel_comes_back() -> None:
    for width in (0, 1, 15, 16, 17, 48):
        form = Level(1, 1, 1, width)
        rows = [bytes([n + 1]) * width + bytes(form.stored - width) + b"t" * 16 for n in range(5)]
        less = records.narrowed(b"".join(rows), form, 16)
        assert len(less) == 5 * (width + 16)
        assert records.widened(less, form, 16) == b"".join(rows)


def test_records_of_one_key_hold_no_fingerprint() -> None:
    table = pa.table({"p0": pa.array([3, 300], pa.int64())})
    fields = row_codec.fields_of(table, ["BIGINT"])
    points = np.arange(2, dtype=np.uint64)
    for marks, width in ((None, 3), (points + 7, 11)):
        encoded = records.encode(table, fields, points, marks, bits=1, most_bytes=1 << 20)
        assert (encoded.level.width, encoded.level.marked) == (width, marks is not None)
        assert encoded.records.any(axis=1).all(), "no record is all zero"
        form = prepared(fields, encoded.level)
        assert records.decode(sent(encoded, 1), form, 0, 8)["p0"].to_pylist() == [300]
        absent = records.decode(sent(encoded, 1), form, 0, 9)["p0"].to_pylist()
        assert absent == ([300] if marks is None else [])


FIELDS = tuple(
    Field(f"c{at}", name)
    for at, name in enumerate(
        ("VARCHAR", "HUGEINT", "DECIMAL(4,1)", "TIME", "BOOLEAN", "UUID", "BLOB")
    )
)
WIDTHS = (7, 3, 2, 5, 1, 16, 4)
SLOTS = st.tuples(*(st.builds(Slot, st.just(width), st.booleans()) for width in WIDTHS))
#: What no provider of ours says.
ANY_SLOTS = st.lists(st.builds(Slot, st.integers(0, 40), st.booleans()), max_size=8).map(tuple)


@settings(max_examples=cases(400), deadline=None)
@given(
    st.binary(max_size=120),
    st.one_of(st.none(), st.integers(0, 2**64 - 1)),
    SLOTS | ANY_SLOTS,
    st.booleans(),
    st.sampled_from([0, 1, 3, 255, 256, 65_535]),
)
def test_any_bytes_are_a_record_or_refused(
    data: bytes, mark: int | None, slots: tuple[Slot, ...], marked: bool, rows: int
) -> None:
    form = prepared(FIELDS, Level(1, 1, rows, len(data), marked, slots))
    for record in (data, bytes(8 * marked) + b"\x01" + data):
        with contextlib.suppress(errors.OperationalError):
            records.decode(record, form, 0, mark).to_pydict()


def test_rows_of_nothing_do_not_fill_the_memory() -> None:
    slots = (Slot(0, False),) * 1_000
    fields = tuple(Field(f"p{at}", "HUGEINT") for at in range(1_000))
    form = prepared(fields, Level(1, 1, 65_535, 2, False, slots))
    with pytest.raises(errors.OperationalError) as caught:
        records.decode(b"\xff\xff", form)
    assert caught.value.code == "wire.format"


@pytest.mark.parametrize(
    ("type_name", "slot", "record"),
    [
        ("VARCHAR", Slot(3, False), b"\x01\xffab"),
        ("VARCHAR", Slot(3, False), b"\x01\xc3(\xff"),
        ("BLOB", Slot(3, False), b"\x01\x03ab"),
        ("BLOB", Slot(0, False), b"\x01"),
        ("BIGINT", Slot(9, False), b"\x01" + bytes(9)),
        ("DOUBLE", Slot(4, False), b"\x01" + bytes(4)),
        ("BIGINT", Slot(1, True), b"\x01\x02\x00"),
        ("TIME", Slot(6, False), b"\x01" + b"\x7f" * 6),
        ("DECIMAL(2,1)", Slot(1, False), b"\x01\x7f"),
        ("BIGINT", Slot(1, False), b"\x02\x00"),
        ("BIGINT", Slot(0, False), b"\x02"),
    ],
)
def test_what_no_provider_of_ours_makes_is_refused(
    type_name: str, slot: Slot, record: bytes
) -> None:
    form = prepared((Field("c0", type_name),), Level(1, 1, 1, len(record), False, (slot,)))
    with pytest.raises(errors.OperationalError) as caught:
        records.decode(record, form)
    assert caught.value.code == "wire.format"


def test_sums_are_put_together_from_limbs() -> None:
    groups = pa.table({"g0": ["a", None, "c"]})
    fields = (
        *row_codec.fields_of(groups, ["VARCHAR"]),
        Field("p0", "HUGEINT"),
        Field("p1", "BIGINT"),
    )
    record, level = records.groups_record(groups, fields[:1], 1 << 20)
    form = prepared(
        fields,
        level,
        groups=record,
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
