"""Arrays as Python's lists: PostgreSQL's own JSON of them is the judge; other bytes are refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver.trusted.executor.local.postgres import array_values
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from tests.generated import cases

_SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
_ELEMENTS = {
    "integer": st.integers(-(2**31), 2**31 - 1), "bigint": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "text": st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    "double precision": st.floats(allow_nan=False, allow_infinity=False),
}  # fmt: skip


@settings(_SHARED, max_examples=cases(40))
@given(st.data())
def test_arrays_are_lists(engine: PostgresLocalEngine, data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from([*_ELEMENTS]))
    element = st.none() | _ELEMENTS[type_]
    width = data.draw(st.integers(0, 3))
    flat = st.lists(element, max_size=4)
    nested = st.lists(st.lists(element, min_size=width, max_size=width), min_size=1, max_size=3)
    expected = data.draw(flat if width == 0 else flat | nested)
    (row,) = engine.python_rows(engine.finish({}, f"SELECT $1::{type_}[] AS a", [expected]))
    assert row == (expected,)


def test_elements_of_other_types(engine: PostgresLocalEngine) -> None:
    number = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    sql = f"SELECT ARRAY[date '1999-12-31', NULL], ARRAY['{number}'::uuid], ARRAY[1.50, 2]"
    assert engine.python_rows(engine.finish({}, sql)) == [
        ([date(1999, 12, 31), None], [UUID(number)], "{1.50,2}")
    ]


@settings(_SHARED, max_examples=cases(300))
@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 255))
def test_other_bytes_are_refused_or_read(
    engine: PostgresLocalEngine, noise: bytes, at: int, byte: int
) -> None:
    rows = engine.finish({}, "SELECT '{{1,2},{3,NULL}}'::integer[] AS a")
    genuine = rows.column(0).combine_chunks().storage[0].as_py()
    altered = bytearray(genuine)
    altered[at % len(altered)] = byte
    for value in (noise, genuine[:at], bytes(altered), genuine + noise):
        assert isinstance(value, bytes)
        if array_values.is_known(value):
            with suppress(ValueError, OverflowError):
                assert isinstance(array_values.read(value), list)
    assert array_values.read(genuine) == [[1, 2], [3, None]]
    assert isinstance(rows.schema.field(0).type, pa.OpaqueType)


def test_a_list_that_says_more_than_it_has_is_refused() -> None:
    with pytest.raises(ValueError, match="early"):
        array_values.read(bytes.fromhex("0000000100000000000000177fffffff00000001"))
